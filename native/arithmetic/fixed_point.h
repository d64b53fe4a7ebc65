// Scalar twins of src/bittrue/arithmetic/fixed_point.py: same names, same domains, same ties.
#pragma once

#include <cstdint>

namespace bittrue::arithmetic {

// x modulo 2^32 as a signed number.
inline int64_t wrap_s32(int64_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x)); }

// floor(a*b / 2^31 + 1/2), ties up; the one overflow, both factors -2^31, saturates to 2^31 - 1.
// |a*b| <= 2^62, so the sum with 2^30 fits 64 bits.
inline int64_t doubling_high_multiply_up(int64_t a, int64_t b) {
  const int64_t high = (a * b + (int64_t{1} << 30)) >> 31;
  return high == (int64_t{1} << 31) ? high - 1 : high;
}

// x / 2^right_shift, ties away from zero; 0 <= right_shift <= 62.
inline int64_t divide_by_power_of_two_away(int64_t x, int right_shift) {
  if (right_shift == 0) return x;
  return (x + (int64_t{1} << (right_shift - 1)) - (x < 0 ? 1 : 0)) >> right_shift;
}

// x / 2^right_shift, ties toward plus infinity; 0 <= right_shift <= 62.
inline int64_t divide_by_power_of_two_up(int64_t x, int right_shift) {
  if (right_shift == 0) return x;
  return (x + (int64_t{1} << (right_shift - 1))) >> right_shift;
}

}  // namespace bittrue::arithmetic

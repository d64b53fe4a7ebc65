// Scalar twins of src/bittrue/arithmetic/fixed_point.py: same names, same domains, same ties.
#pragma once

#include <cstdint>

namespace bittrue::arithmetic {

// x modulo 2^32 as a signed number.
inline int64_t wrap_s32(int64_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x)); }

// a + b and a * b modulo 2^64, as NumPy has them: what plan files claim about sizes may be a lie.
inline int64_t wrapping_sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t wrapping_product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// floor(a*b / 2^31 + 1/2), ties up; the one overflow, both factors -2^31, saturates to 2^31 - 1.
// |a*b| <= 2^62, so the sum with 2^30 fits 64 bits.
inline int64_t doubling_high_multiply_up(int64_t a, int64_t b) {
  const int64_t high = wrapping_sum(wrapping_product(a, b), int64_t{1} << 30) >> 31;
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

// Division to nearest, ties away from zero, of x * 2^-right_shift; and saturation of x * 2^exponent for exponent > 0.
// Domain: x of `bits` bits, exponent in -62..31.
inline int64_t saturating_multiply_by_power_of_two(int64_t x, int exponent, int bits = 32) {
  if (exponent <= 0) return divide_by_power_of_two_away(x, -exponent);
  const int64_t limit = int64_t{1} << (bits - 1);
  const int64_t moved = x * (int64_t{1} << exponent);
  return moved < -limit ? -limit : (moved >= limit ? limit - 1 : moved);
}

// The same high product in 16 bits: floor(a*b / 2^15 + 1/2), at most 2^15 - 1.
inline int64_t doubling_high_multiply_up_s16(int64_t a, int64_t b) {
  const int64_t high = (a * b + (int64_t{1} << 14)) >> 15;
  return high == (int64_t{1} << 15) ? high - 1 : high;
}

// Zero bits above the highest one of the 32-bit pattern of x: 32 for 0, 0 for negative x.
inline int count_leading_zeros_s32(int64_t x) {
  const auto pattern = static_cast<uint32_t>(x);
  return pattern == 0 ? 32 : __builtin_clz(pattern);
}

// (a + b) / 2, ties away from zero.
inline int64_t half_sum_away(int64_t a, int64_t b) { return divide_by_power_of_two_away(a + b, 1); }

inline int64_t saturating_add_s32(int64_t a, int64_t b) {
  const int64_t sum = a + b;
  return sum < INT32_MIN ? INT32_MIN : (sum > INT32_MAX ? INT32_MAX : sum);
}

inline int64_t saturating_add_s16(int64_t a, int64_t b) {
  const int64_t sum = a + b;
  return sum < INT16_MIN ? INT16_MIN : (sum > INT16_MAX ? INT16_MAX : sum);
}

}  // namespace bittrue::arithmetic

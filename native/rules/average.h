// Scalar twins of src/bittrue/rules/average.py.
#pragma once

#include <cmath>
#include <cstdint>

#include "arithmetic/fixed_point.h"

namespace bittrue::rules {

// Division in binary64 is exact enough: the quotient of two numbers below 2^31 is 2^-31 or more (relatively) away from
// the next integer that it does not reach.
inline int32_t integer_half_away(int32_t total, int32_t count) {
  const int32_t half = count >> 1;
  const auto nudged = static_cast<int32_t>(static_cast<uint32_t>(total) + static_cast<uint32_t>(total > 0 ? half : -half));
  return static_cast<int32_t>(static_cast<double>(nudged) / static_cast<double>(count));
}

inline int32_t integer_half_up(int32_t total, int32_t count) {
  const int64_t nudged = int64_t{total} + (count >> 1);
  const int64_t quotient = nudged / count;
  return static_cast<int32_t>(quotient - (quotient * count > nudged ? 1 : 0));
}

// floor(n / count) for 0 <= n <= 256 * count, count <= kMostTaps: (n + 1/2) / count is 1/2^13 or more away from every
// integer; n + 1/2 < 2^20 + 1 is exact in binary32, and the two roundings, of 1 / count and of the product (at most 257),
// move it by less than 257 * 2^-22 < 2^-13.
constexpr int64_t kMostTaps = 4096;

struct SmallDivision {
  float inverse;

  explicit SmallDivision(int32_t count) : inverse(1.0f / static_cast<float>(count)) {}
  int32_t operator()(int32_t n) const { return static_cast<int32_t>((static_cast<float>(n) + 0.5f) * inverse); }
};

// A counter in binary32 stops at 2^24.
inline float binary32_divide(float total, int64_t count) {
  return total / static_cast<float>(count < (int64_t{1} << 24) ? count : int64_t{1} << 24);
}

}  // namespace bittrue::rules

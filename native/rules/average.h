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

// A counter in binary32 stops at 2^24.
inline float binary32_divide(float total, int64_t count) {
  return total / static_cast<float>(count < (int64_t{1} << 24) ? count : int64_t{1} << 24);
}

}  // namespace bittrue::rules

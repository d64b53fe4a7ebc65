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
  const int64_t nudged = arithmetic::wrap_s32(int64_t{total} + (total > 0 ? half : -half));
  return static_cast<int32_t>(static_cast<double>(nudged) / static_cast<double>(count));
}

inline int32_t integer_half_up(int32_t total, int32_t count) {
  const int64_t nudged = int64_t{total} + (count >> 1);
  const int64_t quotient = nudged / count;
  return static_cast<int32_t>(quotient - (quotient * count > nudged ? 1 : 0));
}

inline int32_t integer_trunc(int32_t total, int32_t count) { return total / count; }

// The rules on sums |total| <= 256 * count of bytes, count <= kMostTaps, as trunc(total / count + nudge) in binary32.
// The exact nudge is (count div 2) / count; one half over count more (less for a negative total) changes no result, as
// quotients are multiples of 1 / count, and keeps 1 / (2 * count) >= 2^-13 away from every whole number. Rounding moves
// the sum by less: quotients of up to 257 by 1.5 * 257 * 2^-23 < 2^-14, the nudge by 2^-23.
constexpr int64_t kMostTaps = 4096;

struct ByteAverage {
  float inverse, nudge;

  // `trunc`: nothing is added but one half over count.
  explicit ByteAverage(int32_t count, bool trunc = false)
      : inverse(1.0f / static_cast<float>(count)),
        nudge((static_cast<float>(trunc ? 0 : count >> 1) + 0.5f) * inverse) {}

  // integer_half_away (or integer_trunc) before the fraction is dropped.
  float away(float total) const { return total * inverse + std::copysign(nudge, total); }
  // integer_half_up before the fraction is dropped; total >= 0.
  float up(float total) const { return total * inverse + nudge; }
};

// floor(x / count) = ((x + one) * factor >> 16) >> shift in 16 bits, for 0 <= x <= 256 * count. With 2^shift < count <= 2 *
// 2^shift, factor is 2^(16 + shift) / count rounded up: too large by at most (count - 1) / count, and x times that is less
// than 2^(16 + shift) / count. For a count of 1 it would be 2^16.
constexpr int64_t kMostShortCount = 128;

struct ShortQuotient {
  uint16_t factor = 65535, shift = 0, one = 1;

  explicit ShortQuotient(int64_t count) {
    if (count == 1) return;
    one = 0;
    while ((2 << shift) < count) ++shift;
    factor = static_cast<uint16_t>(((int64_t{65536} << shift) + count - 1) / count);
  }
};

// A counter in binary32 stops at 2^24.
inline float binary32_divide(float total, int64_t count) {
  return total / static_cast<float>(count < (int64_t{1} << 24) ? count : int64_t{1} << 24);
}

}  // namespace bittrue::rules

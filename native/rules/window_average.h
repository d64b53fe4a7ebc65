// Scalar twins of src/bittrue/rules/window_average.py.
#pragma once

#include <cmath>
#include <cstdint>

#include "arithmetic/floats.h"

namespace bittrue::rules {

// `factor` is binary32(binary32(input scale / output scale) / count); clamps come later.
inline int32_t average_fused_even(int64_t sum, float factor, int64_t zero_point) {
  const float real = std::fma(static_cast<float>(sum), factor, static_cast<float>(zero_point));
  return arithmetic::truncate_to_s32(std::nearbyint(real));
}

// round_away(sum * multiplier / 2^right) for |sum| < 2^32, multipliers of 24 bits and 1 <= right <= 62.
inline int64_t average_q24_away(int64_t sum, int64_t multiplier, int right) {
  const int64_t magnitude = ((sum < 0 ? -sum : sum) * multiplier + (int64_t{1} << (right - 1))) >> right;
  return sum < 0 ? -magnitude : magnitude;
}

}  // namespace bittrue::rules

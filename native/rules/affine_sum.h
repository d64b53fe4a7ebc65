// Scalar twins of src/bittrue/rules/affine_sum.py: the sum of two bytes with scales of their own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "arithmetic/floats.h"

namespace bittrue::rules {

// Of the first tensor, the second one and the output. Zero points have 16 bits or fewer.
struct AffineSum {
  float scales[3];
  int32_t zero_points[3];
  int32_t low, high;

  // binary32_fused_reciprocal_even
  int32_t by_reciprocal(int32_t a, int32_t b) const {
    const float moved = -(static_cast<float>(zero_points[1]) * scales[1]);
    const float constant = std::fma(-static_cast<float>(zero_points[0]), scales[0], moved);
    const float one = std::fma(static_cast<float>(a), scales[0], constant);
    const float sum = std::fma(static_cast<float>(b), scales[1], one);
    const float real = std::fma(sum, 1.0f / scales[2], static_cast<float>(zero_points[2]));
    return std::min(std::max(arithmetic::truncate_to_s32(std::nearbyint(real)), low), high);
  }

  // binary32_fused_quotient_even
  int32_t by_quotient(int32_t a, int32_t b) const {
    const float start = static_cast<float>(a - zero_points[0]) * scales[0];
    const float sum = std::fma(static_cast<float>(b - zero_points[1]), scales[1], start);
    const float real = std::nearbyint(static_cast<float>(zero_points[2]) + sum / scales[2]);
    const auto least = static_cast<float>(low), most = static_cast<float>(high);
    // NaN becomes the upper end.
    const float limited = real < most ? real : most;
    return static_cast<int32_t>(limited > least ? limited : least);
  }
};

}  // namespace bittrue::rules

// Scalar twins of src/bittrue/rules/affine_scale.py; clamps come later.
#pragma once

#include <cmath>
#include <cstdint>

#include "arithmetic/fixed_point.h"
#include "arithmetic/floats.h"

namespace bittrue::rules {

// binary32_fused_even: `moved` is q - zero point.
inline int64_t affine_scale_even(int32_t moved, float factor, float addend, int64_t zero_point) {
  const float real = std::nearbyint(std::fma(factor, static_cast<float>(moved), addend));
  return arithmetic::wrap_s32(arithmetic::truncate_to_s32(real) + zero_point);
}

// binary32_fused_even_64_bits; `least` is what does not fit 64 bits.
inline int64_t affine_scale_even_64_bits(int32_t moved, float factor, float addend, int64_t zero_point, int64_t least) {
  const float real = std::nearbyint(std::fma(factor, static_cast<float>(moved), addend));
  if (!(std::fabs(real) < 0x1p63f)) return least;
  return static_cast<int64_t>(real < -0x1p40f ? -0x1p40f : real > 0x1p40f ? 0x1p40f : real) + zero_point;
}

}  // namespace bittrue::rules

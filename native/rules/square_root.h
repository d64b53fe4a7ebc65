// Scalar twin of src/bittrue/rules/square_root.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "arithmetic/fixed_point.h"
#include "arithmetic/floats.h"

namespace bittrue::rules {

// The fraction is dropped. Domain: q >= zero_point.
inline int64_t binary32_divide_trunc(int64_t q, float scale, int64_t zero_point, float output_scale,
                                     int64_t output_zero_point, int64_t low, int64_t high) {
  const float real = scale * static_cast<float>(q - zero_point);
  const int64_t steps = arithmetic::truncate_to_s32(std::sqrt(real) / output_scale);
  return std::min(std::max(arithmetic::wrap_s32(steps + output_zero_point), low), high);
}

}  // namespace bittrue::rules

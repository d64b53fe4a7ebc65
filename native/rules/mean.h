// Twins of src/bittrue/rules/mean.py: which rescale rule a mean rule is built on, and the rules for plain numbers.
#pragma once

#include <cmath>
#include <cstdint>

namespace bittrue::rules {

struct MeanRow {
  const char* name;
  const char* rescale;  // applied to the sum, the count being part of the multiplier
};

inline constexpr MeanRow kMean[] = {{"q31_count_folded_two_step_up_away", "q31_two_step_up_away"},
                                    {"q31_count_folded_one_step_up", "q31_one_step_up"}};

// Factor and offset are binary32 numbers; the offset holds the output's zero point. Fused: one rounding to binary32.
inline int64_t binary32_affine_even(int32_t total, float factor, float offset, bool fused) {
  const auto real = static_cast<float>(total);
  const float moved = std::nearbyint(fused ? std::fma(real, factor, offset) : real * factor + offset);
  if (!(moved > -2147483648.0f)) return INT32_MIN;
  return moved < 2147483648.0f ? static_cast<int64_t>(moved) : INT32_MAX;
}

inline int64_t integer_trunc(int64_t total, int64_t count) { return total / count; }

}  // namespace bittrue::rules

// Scalar twins of src/bittrue/rules/to_integer.py, for ends and zero points of up to 32 bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "arithmetic/fixed_point.h"
#include "arithmetic/floats.h"
#include "rules/quantize.h"

namespace bittrue::rules {

enum class ToIntegerRule { away_sum_clamp, clamp_even, even_wrap };

// False where no rule has this name.
inline bool find_rule(const std::string& name, ToIntegerRule& found) {
  constexpr const char* kNames[] = {"away_sum_clamp", "clamp_even", "even_wrap"};
  for (int i = 0; i < 3; ++i) {
    if (name == kNames[i]) return found = static_cast<ToIntegerRule>(i), true;
  }
  return false;
}

inline int64_t to_integer(ToIntegerRule rule, double quotient, int64_t zero_point, int64_t minimum, int64_t maximum) {
  if (rule == ToIntegerRule::clamp_even) {
    const auto low = static_cast<double>(minimum - zero_point), high = static_cast<double>(maximum - zero_point);
    double limited = quotient > low ? quotient : low;
    limited = limited < high ? limited : high;
    return static_cast<int64_t>(std::nearbyint(limited)) + zero_point;
  }
  if (rule == ToIntegerRule::away_sum_clamp) {
    return rules::away_sum_clamp(static_cast<float>(quotient), static_cast<int32_t>(zero_point),
                                 static_cast<int32_t>(minimum), static_cast<int32_t>(maximum));
  }
  const int64_t steps = arithmetic::truncate_to_s32(std::nearbyint(quotient));
  return std::min(std::max(arithmetic::wrap_s32(steps + zero_point), minimum), maximum);
}

}  // namespace bittrue::rules

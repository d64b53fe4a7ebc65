// The slots `rescale` and `store` of element-wise kernels, one element at a time.
#pragma once

#include <cstdint>
#include <string>

#include "core/step.h"
#include "rules/requantize.h"

namespace bittrue {

// rescale(acc) with one prepared multiplier.
struct Rescaling {
  rules::RescaleRule rule = rules::RescaleRule::q31_two_step_up_away;
  rules::Multiplier multiplier{};

  int64_t operator()(int64_t acc) const {
    // The usual rule is inlined.
    if (rule == rules::RescaleRule::q31_two_step_up_away) return rules::q31_two_step_up_away(acc, multiplier);
    return rules::apply(rule, acc, multiplier);
  }
};

// The plan's stored value, not flipped.
struct Storing {
  rules::StoreRule rule = rules::StoreRule::zero_point_then_clamp;
  int64_t zero_point = 0, low = 0, high = 0;

  int64_t operator()(int64_t rescaled) const {
    if (rule == rules::StoreRule::zero_point_then_clamp) {
      return rules::zero_point_then_clamp(rescaled, zero_point, low, high);
    }
    return rules::clamp_then_zero_point(rescaled, zero_point, low, high);
  }
};

// Accumulators of magnitude up to this times any multiplier stay inside 64 bits.
constexpr int64_t kLargestZeroPoint = int64_t{1} << 29;

// The slot's rule and the arrays `<prefix>multiplier` and so on; NoKernel when they are not what plans hold.
[[gnu::cold]] Rescaling rescaling(const Step& step, const std::string& prefix = "");
// The same with a rule by name, for slots that are built on a rescale rule.
[[gnu::cold]] Rescaling rescaling(const Step& step, const std::string& rule, const std::string& prefix);
// The same with rules that cores do not know, some with real results: for `requantization`, or one element at a time.
[[gnu::cold]] Rescaling any_rescaling(const Step& step, const std::string& rule, const std::string& prefix);
// The slot's rule, output_zero_point, low and high.
[[gnu::cold]] Storing storing(const Step& step);
// A requantization with one multiplier whose accumulators are proven to be |acc| <= bound (exact), or wrap.
[[gnu::cold]] rules::Requantize requantization(const Step& step, const Rescaling& rescale, int64_t bound);

}  // namespace bittrue

#include "operators/rescaling.h"

#include <cstdlib>
#include <limits>

namespace bittrue {
namespace {

rules::RescaleRule find_rule(const std::string& name) {
  for (size_t i = 0; i < sizeof(rules::kRescale) / sizeof(rules::kRescale[0]); ++i) {
    if (name == rules::kRescale[i].name) return static_cast<rules::RescaleRule>(i);
  }
  throw NoKernel("no native rescale rule " + name);
}

constexpr int64_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();

}  // namespace

Rescaling rescaling(const Step& step, const std::string& prefix) {
  return rescaling(step, step.rule("rescale"), prefix);
}

Rescaling rescaling(const Step& step, const std::string& rule, const std::string& prefix) {
  Rescaling result;
  result.rule = find_rule(rule);
  result.multiplier = step.multiplier(prefix);
  require(rules::has_vector_form(result.rule), "no native kernel for this rule");
  const bool floating = result.rule == rules::RescaleRule::binary64_multiply_away ||
                        result.rule == rules::RescaleRule::binary32_multiply_even ||
                        result.rule == rules::RescaleRule::q8_one_step_up;
  require(floating == step.has_array(prefix + "factor"), "the multiplier does not suit its rule");
  if (result.rule == rules::RescaleRule::q8_one_step_up) {
    // What the twin converts to an integer and multiplies by an 8-bit difference.
    require(std::abs(result.multiplier.factor) <= 1 << 24, "the multiplier is out of range");
  }
  if (floating) return result;
  // Beyond these the scalar twins would shift by more than a register; plans never hold them.
  const bool narrow = result.rule == rules::RescaleRule::q15_one_step_up;
  const int64_t exponent = step.array(prefix + "exponent").integer(0);
  require(result.multiplier.multiplier >= 0 && result.multiplier.multiplier <= (narrow ? 32767 : kHigh) &&
              exponent >= (narrow ? -47 : -62) && exponent <= (narrow ? 14 : 30),
          "the multiplier is out of range");
  return result;
}

Storing storing(const Step& step) {
  Storing result;
  const std::string& name = step.rule("store");
  if (name == "clamp_then_zero_point") {
    result.rule = rules::StoreRule::clamp_then_zero_point;
  } else if (name != "zero_point_then_clamp") {
    throw NoKernel("no native store rule " + name);
  }
  result.zero_point = step.integer("output_zero_point", kLow, kHigh);
  result.low = step.integer("low", kLow, kHigh);
  result.high = step.integer("high", kLow, kHigh);
  return result;
}

rules::Requantize requantization(const Step& step, const Rescaling& rescale, int64_t bound) {
  const Storing store = storing(step);
  rules::Requantize result;
  result.rescale = rescale.rule;
  result.store = store.rule;
  result.multipliers = {rescale.multiplier};
  result.bound = bound;
  result.wraps = bound > kHigh;
  result.zero_point = static_cast<int32_t>(store.zero_point);
  result.low = static_cast<int32_t>(store.low);
  result.high = static_cast<int32_t>(store.high);
  result.flip = flip_of(step.output().type);
  return result;
}

}  // namespace bittrue

#include "operators/core/rescaling.h"

#include <limits>

namespace bittrue {
namespace {

constexpr int64_t kLeastResult = std::numeric_limits<int32_t>::min(), kMostResult = std::numeric_limits<int32_t>::max();

}  // namespace

Rescaling rescaling(const Step& step, const std::string& prefix) {
  return rescaling(step, step.rule("rescale"), prefix);
}

Rescaling rescaling(const Step& step, const std::string& rule, const std::string& prefix) {
  const Rescaling result = any_rescaling(step, rule, prefix);
  require(rules::has_vector_form(result.rule), "no native kernel for this rule");
  return result;
}

Rescaling any_rescaling(const Step& step, const std::string& rule, const std::string& prefix) {
  Rescaling result;
  if (!rules::find_rule(rule, result.rule)) throw NoKernel("no native rescale rule " + rule);
  const rules::RescaleTraits& traits = rules::traits(result.rule);
  require(traits.has(rules::kElement), "no native kernel for this rule");
  result.multiplier = step.multiplier(prefix);
  require((traits.point == 0) == step.has_array(prefix + "factor"), "the multiplier does not suit its rule");
  require(rules::takes(result.rule, result.multiplier), "the multiplier is out of range");
  return result;
}

Storing storing(const Step& step) {
  Storing result;
  const std::string& name = step.rule("store");
  if (!rules::find_rule(name, result.rule) || rules::is_real(result.rule))
    throw NoKernel("no native store rule " + name);
  result.zero_point = step.integer("output_zero_point", kLeastResult, kMostResult);
  result.low = step.integer("low", kLeastResult, kMostResult);
  result.high = step.integer("high", kLeastResult, kMostResult);
  return result;
}

rules::Requantize requantization(const Step& step, const Rescaling& rescale, int64_t bound) {
  rules::Requantize result;
  const std::string& name = step.rule("store");
  require(rules::find_rule(name, result.store) && rules::is_real(result.store) == rules::is_real(rescale.rule),
          "no native store rule for the rescale rule");
  result.rescale = rescale.rule;
  result.multipliers = {rescale.multiplier};
  result.bound = bound;
  result.wraps = bound > kMostResult;
  result.zero_point = static_cast<int32_t>(step.integer("output_zero_point", kLeastResult, kMostResult));
  result.low = static_cast<int32_t>(step.integer("low", kLeastResult, kMostResult));
  result.high = static_cast<int32_t>(step.integer("high", kLeastResult, kMostResult));
  result.flip = flip_of(step.output().type);
  rules::prefer_vector_form(result);
  return result;
}

}  // namespace bittrue

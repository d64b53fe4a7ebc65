// leaky_relu: x where it is not negative, alpha * x elsewhere, each side with a multiplier of its own.
#include <map>
#include <string>

#include "operators/core/registry.h"
#include "operators/core/rescaling.h"
#include "operators/elementwise/logistic.h"
#include "operators/elementwise/real_loops.h"

namespace bittrue {
namespace {

std::unique_ptr<Kernel> make_leaky_relu(const Step& step, const CoreSet& cores) {
  if (step.arrays.empty()) {
    const auto alpha = static_cast<float>(step.real("alpha"));
    // Which of two NaNs a product keeps is up to the compiler.
    require(alpha == alpha, "the slope is NaN");
    static const std::map<std::string, RealLoop::Function> rules = {
        {"scaled_below_zero", RealLoop::scaled_below_zero},
        {"scaled_by_sign_bit", RealLoop::scaled_by_sign_bit},
        {"scaled_unless_above_zero", RealLoop::scaled_unless_above_zero},
    };
    const auto rule = rules.find(step.rule("slope"));
    require(rule != rules.end(), "no native rule for this slot");
    return make_real_loop(step, cores, {rule->second, alpha});
  }
  if (step.texts.count("form")) return make_leaky_levels(step, cores);
  if (step.has_array("table")) return make_level_table(step, cores);
  const Rescaling identity = rescaling(step, "identity_"), slope = rescaling(step, "alpha_");
  const Storing store = storing(step);
  const int64_t zero_point = step.integer("input_zero_point", -kLargestZeroPoint, kLargestZeroPoint);
  const bool negated = step.integer("negated", 0, 1) != 0;
  const bool before = negated && step.rule("sign") == "before_rounding";
  require(!negated || before || step.rule("sign") == "after_rounding", "no native rule for this slot");
  const int64_t given = before ? -1 : 1, found = negated && !before ? -1 : 1;
  return make_integer_map(step, cores, [=](int64_t q) {
    const int64_t x = q - zero_point;
    return store(x >= 0 ? identity(x) : found * slope(given * x));
  });
}

BITTRUE_OPERATOR(leaky_relu, make_leaky_relu)

}  // namespace
}  // namespace bittrue

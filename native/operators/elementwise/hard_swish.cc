// hard_swish: x * clamp(x / 6 + 1/2, 0, 1), by a table of 256 entries for 8 bits.
#include "arithmetic/fused.h"
#include "operators/core/registry.h"
#include "operators/elementwise/logistic.h"
#include "operators/elementwise/real_loops.h"

namespace bittrue {
namespace {

// x + 3 within [0, 6]; NaN gives 0.
float gate(float x) {
  const float shifted = x + 3.0f;
  const float raised = shifted > 0.0f ? shifted : 0.0f;
  return raised < 6.0f ? raised : 6.0f;
}

std::unique_ptr<Kernel> make_hard_swish(const Step& step, const CoreSet& cores) {
  if (step.has_array("entries")) {
    return is_8bit(step.output().type) ? make_direct_table(step, cores, step.array("entries")) : nullptr;
  }
  if (step.input(0).type != Type::f32 || step.output().type != Type::f32) return nullptr;
  if (step.rules.count("real_function") != 0) {
    if (step.rule("real_function") == "binary32_single_operations") {
      return make_real_loop(step, cores, {RealLoop::hard_swish});
    }
    if (step.rule("real_function") == "binary32_times_sixth") {
      return make_map<float, float>(step, [](float x) { return x * gate(x) * (1.0f / 6.0f); });
    }
    require(step.rule("real_function") == "binary32_fused", "no native rule for this slot");
    return make_map<float, float>(step, [](float x) { return arithmetic::fused::hard_swish(x); });
  }
  return make_map<float, float>(step, [](float x) { return x * gate(x) / 6.0f; });
}

BITTRUE_OPERATOR(hard_swish, make_hard_swish)

}  // namespace
}  // namespace bittrue

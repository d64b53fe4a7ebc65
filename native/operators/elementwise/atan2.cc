// atan2: the angle of the point (second, first).
#include "arithmetic/elementary.h"
#include "operators/core/registry.h"
#include "operators/core/zip.h"

namespace bittrue {
namespace {

std::unique_ptr<Kernel> make_atan2(const Step& step, const CoreSet&) {
  if (step.input(0).type != Type::f32 || step.output().type != Type::f32) return nullptr;
  const std::string& rule = step.rule("multiply_add");
  require(rule == "rounded_twice" || rule == "rounded_once", "no native rule for this slot");
  if (rule == "rounded_once") {
    return make_zip<float, float>(step, [](float y, float x) { return arithmetic::atan2<true>(y, x); });
  }
  return make_zip<float, float>(step, [](float y, float x) { return arithmetic::atan2(y, x); });
}

BITTRUE_OPERATOR(atan2, make_atan2)

}  // namespace
}  // namespace bittrue

// fake_quant: real numbers moved to the nearest of 2^bits evenly spaced ones.
#include <cmath>

#include "operators/core/map.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

std::unique_ptr<Kernel> make_fake_quant(const Step& step, const CoreSet&) {
  if (step.input(0).type != Type::f32 || step.output().type != Type::f32) return nullptr;
  const auto real = [&](const char* key) { return static_cast<float>(step.real(key)); };
  const float low = real("low"), high = real("high"), scale = real("scale"), inverse = 1.0f / scale;
  const bool joined = step.rule("multiply_add") == "rounded_once";
  require(joined || step.rule("multiply_add") == "rounded_twice", "no native rule for this slot");
  return make_map<float, float>(step, [=](float x) {
    const float raised = low < x ? x : low;
    const float clamped = raised < high ? raised : high;
    // The number just below one half keeps 0.49999997 from reaching 1.
    const float steps = (clamped - low) * inverse;
    const float whole = std::trunc(steps + std::copysign(0x1.fffffep-2f, steps));
    return joined ? std::fma(whole, scale, low) : whole * scale + low;
  });
}

BITTRUE_OPERATOR(fake_quant, make_fake_quant)

}  // namespace
}  // namespace bittrue

// relu: a change of scale and a clamp, or only the clamp for real numbers.
#include <limits>

#include "operators/core/registry.h"
#include "operators/elementwise/logistic.h"
#include "operators/elementwise/real_loops.h"
#include "operators/quantization/quantize.h"

namespace bittrue {
namespace {

std::unique_ptr<Kernel> make_relu(const Step& step, const CoreSet& cores) {
  if (step.rules.count("levels")) return make_rectified_levels(step, cores);
  if (!step.arrays.empty()) return make_rescaled(step, cores);
  if (step.input(0).type != Type::f32 || step.output().type != Type::f32) return nullptr;
  const auto low = step.reals.find("low"), high = step.reals.find("high");
  require(low != step.reals.end(), "no lower end");
  const auto least = static_cast<float>(low->second);
  const float most =
      high == step.reals.end() ? std::numeric_limits<float>::infinity() : static_cast<float>(high->second);
  require(!(least > most), "the lower end is above the upper one");
  return make_real_loop(step, cores, {RealLoop::limit, least, most});
}

BITTRUE_OPERATOR(relu, make_relu)

}  // namespace
}  // namespace bittrue

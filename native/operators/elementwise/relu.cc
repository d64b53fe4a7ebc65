// relu: a change of scale and a clamp, or only the clamp for real numbers.
#include <limits>

#include "operators/core/map.h"
#include "operators/core/registry.h"
#include "operators/elementwise/logistic.h"
#include "operators/elementwise/real_loops.h"
#include "operators/quantization/quantize.h"

namespace bittrue {
namespace {

std::unique_ptr<Kernel> make_relu(const Step& step, const CoreSet& cores) {
  if (step.rules.count("levels")) return make_rectified_levels(step, cores);
  if (!step.arrays.empty()) return make_rescaled(step, cores);
  const Type type = step.input(0).type;
  if ((type != Type::f32 && type != Type::f64) || step.output().type != type) return nullptr;
  const auto least = step.reals.find("low"), most = step.reals.find("high");
  require(least != step.reals.end(), "no lower end");
  const double low = least->second;
  const double high = most == step.reals.end() ? std::numeric_limits<double>::infinity() : most->second;
  require(!(low > high), "the lower end is above the upper one");
  if (type == Type::f32) {
    return make_real_loop(step, cores, {RealLoop::limit, static_cast<float>(low), static_cast<float>(high)});
  }
  return make_map<double, double>(step, [low, high](double x) { return x < low ? low : x > high ? high : x; });
}

BITTRUE_OPERATOR(relu, make_relu)

}  // namespace
}  // namespace bittrue

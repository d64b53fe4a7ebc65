// abs: the magnitude of the real number, rescaled when the output scale differs.
#include <cmath>

#include "operators/map.h"
#include "operators/rescaling.h"

namespace bittrue {

std::unique_ptr<Kernel> make_abs(const Step& step, const CoreSet& cores) {
  const Type from = step.input(0).type;
  if (step.texts.count("dtype") == 0) {
    if (from != step.output().type) return nullptr;
    if (from == Type::f32) return make_map<float, float>(step, [](float x) { return std::fabs(x); });
    // The smallest integer wraps to itself.
    return make_integer_map(step, cores, [](int64_t q) { return q < 0 ? -q : q; });
  }
  const Rescaling rescale = rescaling(step);
  const Storing store = storing(step);
  const int64_t zero_point = step.integer("input_zero_point", -kLargestZeroPoint, kLargestZeroPoint);
  return make_integer_map(step, cores, [=](int64_t q) {
    const int64_t x = q - zero_point;
    return store(rescale(x < 0 ? -x : x));
  });
}

}  // namespace bittrue

// thresholded_relu and shrink of real numbers, and bucketize: comparisons with given numbers.
#include <algorithm>
#include <cstring>
#include <vector>

#include "operators/core/map.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

std::unique_ptr<Kernel> make_thresholded_relu(const Step& step, const CoreSet&) {
  require(step.input(0).type == Type::f32 && step.output().type == Type::f32, "no native kernel for these types");
  const auto alpha = static_cast<float>(step.real("alpha"));
  return make_map<float, float>(step, [alpha](float x) { return x > alpha ? x : 0.0f; });
}

std::unique_ptr<Kernel> make_shrink(const Step& step, const CoreSet&) {
  require(step.input(0).type == Type::f32 && step.output().type == Type::f32, "no native kernel for these types");
  const auto bias = static_cast<float>(step.real("bias")), limit = static_cast<float>(step.real("lambda"));
  return make_map<float, float>(step, [bias, limit](float x) {
    const float above = x > limit ? x - bias : 0.0f;
    return x < -limit ? x + bias : above;
  });
}

// How many of the boundaries are not above a number; a NaN is above all of them.
template <class In, class Number>
std::unique_ptr<Kernel> bucketize_of(const Step& step) {
  std::vector<Number> boundaries;
  const Array& given = step.array("boundaries");
  for (int64_t i = 0; i < given.count; ++i) boundaries.push_back(static_cast<Number>(given.real(i)));
  return make_map<In, int32_t>(step, [boundaries](In x) {
    const auto number = static_cast<Number>(x);
    const auto above = std::upper_bound(boundaries.begin(), boundaries.end(), number);
    return static_cast<int32_t>((number != number ? boundaries.end() : above) - boundaries.begin());
  });
}

std::unique_ptr<Kernel> make_bucketize(const Step& step, const CoreSet&) {
  require(step.output().type == Type::s32, "no native kernel for these types");
  switch (step.input(0).type) {
    case Type::f32: return bucketize_of<float, float>(step);
    case Type::f64: return bucketize_of<double, double>(step);
    case Type::s32: return bucketize_of<int32_t, float>(step);
    case Type::s64: return bucketize_of<int64_t, float>(step);
    default: return nullptr;
  }
}

BITTRUE_OPERATOR(bucketize, make_bucketize)
BITTRUE_OPERATOR(shrink, make_shrink)
BITTRUE_OPERATOR(thresholded_relu, make_thresholded_relu)

}  // namespace
}  // namespace bittrue

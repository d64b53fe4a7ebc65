// slice_axes, space_to_depth and depth_to_space: elements read in regular steps, which may run backwards.
#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

class StridedView final : public Kernel {
 public:
  explicit StridedView(const Step& step)
      : copy_(axes(step), type_bytes(step.output().type), step.integer("start") * type_bytes(step.output().type)) {}

  void run(const Run& run) const override { copy_.run(run.inputs[0], run.outputs[0], run.pool); }
  std::string note() const override { return "strided copy"; }

 private:
  static std::vector<CopyAxis> axes(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require_same_type(in, out);
    require(in.dense() && out.dense(), "both sides must be dense");
    const std::vector<int64_t>&dimensions = step.list("sizes"), &steps = step.list("steps");
    require(dimensions.size() == steps.size(), "one step per axis is needed");
    if (out.elements == 0) return {{0, 0, 0}};
    constexpr int64_t kFar = int64_t{1} << 48;
    int64_t low = step.integer("start", 0, kFar), high = low, elements = 1;
    for (size_t a = 0; a < dimensions.size(); ++a) {
      require(dimensions[a] > 0 && dimensions[a] <= out.elements / elements, "the dimensions do not fit");
      elements *= dimensions[a];
      require(steps[a] >= -kFar / dimensions[a] && steps[a] <= kFar / dimensions[a], "a step leaves the tensor");
      (steps[a] < 0 ? low : high) += steps[a] * (dimensions[a] - 1);
      require(low >= 0 && high < in.elements, "a step leaves the tensor");
    }
    require(elements == out.elements && high < in.elements, "the dimensions do not fit");
    const int64_t item = type_bytes(out.type);
    std::vector<CopyAxis> result;
    int64_t target = elements;
    for (size_t a = 0; a < dimensions.size(); ++a) {
      target /= dimensions[a];
      result.push_back({dimensions[a], steps[a] * item, target * item});
    }
    return result;
  }

  StridedCopy copy_;
};

std::unique_ptr<Kernel> make_strided_view(const Step& step, const CoreSet&) {
  return std::make_unique<StridedView>(step);
}

BITTRUE_OPERATOR(depth_to_space, make_strided_view)
BITTRUE_OPERATOR(slice_axes, make_strided_view)
BITTRUE_OPERATOR(space_to_depth, make_strided_view)

}  // namespace
}  // namespace bittrue

// split: one tensor cut along one axis into several.
#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

class Split final : public Kernel {
 public:
  // Output i holds sizes[i] positions along the axis; parts of one position each may lose the axis itself.
  explicit Split(const Step& step) {
    const Operand& in = step.input(0);
    const int64_t axis = step.integer("axis");
    const std::vector<int64_t>& sizes = step.list("sizes");
    const bool drop = step.integer("keeps_axis", 0, 1) == 0;
    require(axis >= 0 && axis < in.rank() && sizes.size() == step.outputs.size(), "the parts do not fit");
    const std::vector<int64_t> source = byte_strides(in);
    int64_t begin = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Operand& out = step.output(i);
      require_same_type(in, out);
      std::vector<int64_t> shape = in.shape;
      require(!drop || sizes[i] == 1, "the parts do not fit");
      require(sizes[i] >= 0 && sizes[i] <= in.shape[axis] - begin, "the parts do not fit");
      shape[axis] = sizes[i];
      if (drop) shape.erase(shape.begin() + axis);
      require(shape == out.shape, "the output's shape differs");
      const std::vector<int64_t> target = byte_strides(out);
      std::vector<CopyAxis> axes;
      for (int a = 0, b = 0; a < in.rank(); ++a) {
        if (drop && a == axis) continue;
        axes.push_back({shape[b], source[a], target[b]});
        ++b;
      }
      parts_.emplace_back(axes, type_bytes(in.type), begin * source[axis]);
      begin += sizes[i];
    }
  }

  void run(const Run& run) const override {
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i].run(run.inputs[0], run.outputs[i], run.pool);
  }
  std::string note() const override { return "strided copies"; }

 private:
  std::vector<StridedCopy> parts_;
};

std::unique_ptr<Kernel> make_split(const Step& step, const CoreSet&) { return std::make_unique<Split>(step); }

BITTRUE_OPERATOR(split, make_split)

}  // namespace
}  // namespace bittrue

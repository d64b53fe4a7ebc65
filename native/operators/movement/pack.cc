// pack: tensors of one shape stacked along a new axis.
#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

class Pack final : public Kernel {
 public:
  explicit Pack(const Step& step) {
    const Operand& out = step.output();
    const int64_t axis = step.integer("axis", 0, out.rank() - 1);
    require(out.shape[axis] == static_cast<int64_t>(step.inputs.size()), "the inputs do not fill the output");
    const std::vector<int64_t> target = byte_strides(out);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const Operand& in = step.input(i);
      require_same_type(in, out);
      std::vector<int64_t> shape = out.shape;
      shape.erase(shape.begin() + axis);
      require(in.shape == shape, "sizes differ");
      const std::vector<int64_t> source = byte_strides(in);
      std::vector<CopyAxis> axes;
      for (int a = 0; a < in.rank(); ++a) axes.push_back({in.shape[a], source[a], target[a < axis ? a : a + 1]});
      parts_.emplace_back(axes, type_bytes(in.type), 0, static_cast<int64_t>(i) * target[axis]);
    }
  }

  void run(const Run& run) const override {
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i].run(run.inputs[i], run.outputs[0], run.pool);
  }
  std::string note() const override { return "strided copies"; }

 private:
  std::vector<StridedCopy> parts_;
};

std::unique_ptr<Kernel> make_pack(const Step& step, const CoreSet&) { return std::make_unique<Pack>(step); }

BITTRUE_OPERATOR(pack, make_pack)

}  // namespace
}  // namespace bittrue

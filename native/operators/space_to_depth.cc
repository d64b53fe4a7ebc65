// space_to_depth and depth_to_space: squares of b x b positions against groups of b * b channels.
#include "core/kernel.h"
#include "operators/strided_copy.h"

namespace bittrue {
namespace {

class SpaceDepth final : public Kernel {
 public:
  // `deep` has the groups of channels, `wide` the squares of positions.
  SpaceDepth(const Step& step, const Operand& wide, const Operand& deep, bool to_depth)
      : copy_(axes(step, wide, deep, to_depth), type_bytes(wide.type)) {
    require_same_type(wide, deep);
  }

  void run(const Run& run) const override { copy_.run(run.inputs[0], run.outputs[0], run.pool); }
  std::string note() const override { return "strided copy"; }

 private:
  static std::vector<CopyAxis> axes(const Step& step, const Operand& wide, const Operand& deep, bool to_depth) {
    const int64_t b = step.integer("block_size", 1, (int64_t{1} << 31) - 1);
    require(wide.rank() == 4 && deep.rank() == 4, "pictures have four axes");
    const int64_t height = deep.shape[1], width = deep.shape[2], depth = wide.shape[3];
    require(wide.shape[0] == deep.shape[0] && wide.shape[1] % b == 0 && wide.shape[1] / b == height &&
                wide.shape[2] % b == 0 && wide.shape[2] / b == width && deep.shape[3] % b == 0 &&
                deep.shape[3] / b % b == 0 && deep.shape[3] / b / b == depth,
            "the shapes do not fit");
    const std::vector<int64_t> w = byte_strides(wide), d = byte_strides(deep);
    // deep[n, y, x, (i * b + j) * depth + c] = wide[n, y * b + i, x * b + j, c], in the target's order.
    std::vector<CopyAxis> result = {
        {wide.shape[0], w[0], d[0]},   {height, w[1] * b, d[1]},          {width, w[2] * b, d[2]},
        {b, w[1], d[3] * depth * b},   {b, w[2], d[3] * depth},           {depth, w[3], d[3]},
    };
    if (!to_depth) {
      std::swap(result[2], result[3]);
      for (CopyAxis& axis : result) std::swap(axis.source, axis.target);
    }
    return result;
  }

  StridedCopy copy_;
};

}  // namespace

std::unique_ptr<Kernel> make_space_to_depth(const Step& step, const CoreSet&) {
  return std::make_unique<SpaceDepth>(step, step.input(0), step.output(), true);
}

std::unique_ptr<Kernel> make_depth_to_space(const Step& step, const CoreSet&) {
  return std::make_unique<SpaceDepth>(step, step.output(), step.input(0), false);
}

}  // namespace bittrue

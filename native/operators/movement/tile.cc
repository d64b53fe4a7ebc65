// tile, broadcast_to and fill: the same elements several times.
#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

class Repeat final : public Kernel {
 public:
  Repeat(const Step& step, size_t input, const std::vector<CopyAxis>& axes)
      : copy_(axes, type_bytes(step.output().type)), input_(input) {
    require_same_type(step.input(input), step.output());
  }

  void run(const Run& run) const override { copy_.run(run.inputs[input_], run.outputs[0], run.pool); }
  bool packs(size_t input) const override { return input != input_; }
  std::string note() const override { return "strided copy"; }

 private:
  StridedCopy copy_;
  size_t input_;
};

std::unique_ptr<Kernel> make_tile(const Step& step, const CoreSet&) {
  const Operand &in = step.input(0), &out = step.output();
  const std::vector<int64_t>& multiples = step.list("multiples");
  const int rank = in.rank();
  require(out.rank() == rank && static_cast<int>(multiples.size()) == rank, "ranks differ");
  const std::vector<int64_t> source = byte_strides(in), target = byte_strides(out);
  std::vector<CopyAxis> axes;
  for (int a = 0; a < rank; ++a) {
    require(multiples[a] >= 0 &&
                (in.shape[a] == 0 ? out.shape[a] == 0
                                  : out.shape[a] % in.shape[a] == 0 && out.shape[a] / in.shape[a] == multiples[a]),
            "the output's shape differs");
    axes.push_back({multiples[a], 0, in.shape[a] * target[a]});
    axes.push_back({in.shape[a], source[a], target[a]});
  }
  // Multiples of an empty tensor may be large: there is nothing to do.
  if (out.elements == 0) axes = {{0, 0, 0}};
  return std::make_unique<Repeat>(step, 0, axes);
}

std::unique_ptr<Kernel> make_broadcast_to(const Step& step, const CoreSet&) {
  const Operand &in = step.input(0), &out = step.output();
  const int ahead = out.rank() - in.rank();
  require(ahead >= 0, "the output has too few axes");
  const std::vector<int64_t> source = byte_strides(in), target = byte_strides(out);
  std::vector<CopyAxis> axes;
  for (int a = 0; a < out.rank(); ++a) {
    const bool repeated = a < ahead || in.shape[a - ahead] == 1;
    require(repeated || in.shape[a - ahead] == out.shape[a], "the output's shape differs");
    axes.push_back({out.shape[a], repeated ? 0 : source[a - ahead], target[a]});
  }
  return std::make_unique<Repeat>(step, 0, axes);
}

std::unique_ptr<Kernel> make_fill(const Step& step, const CoreSet&) {
  const Operand& out = step.output();
  require(step.input(1).elements == 1, "the value must be one element");
  const std::vector<int64_t> target = byte_strides(out);
  std::vector<CopyAxis> axes;
  for (int a = 0; a < out.rank(); ++a) axes.push_back({out.shape[a], 0, target[a]});
  return std::make_unique<Repeat>(step, 1, axes);
}

BITTRUE_OPERATOR(broadcast_to, make_broadcast_to)
BITTRUE_OPERATOR(fill, make_fill)
BITTRUE_OPERATOR(tile, make_tile)

}  // namespace
}  // namespace bittrue

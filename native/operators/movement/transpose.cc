// transpose and slice: the input seen through other strides.
#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

class View final : public Kernel {
 public:
  View(const Step& step, const std::vector<CopyAxis>& axes, int64_t source_offset)
      : copy_(axes, type_bytes(step.output().type), source_offset) {
    require_same_type(step.input(0), step.output());
  }

  void run(const Run& run) const override { copy_.run(run.inputs[0], run.outputs[0], run.pool); }
  bool packs(size_t input) const override { return input != 0; }
  std::string note() const override { return "strided copy"; }

 private:
  StridedCopy copy_;
};

std::unique_ptr<Kernel> make_transpose(const Step& step, const CoreSet&) {
  const Operand &in = step.input(0), &out = step.output();
  const std::vector<int64_t>& order = step.list("permutation");
  const int rank = in.rank();
  require(out.rank() == rank && static_cast<int>(order.size()) == rank, "ranks differ");
  const std::vector<int64_t> source = byte_strides(in), target = byte_strides(out);
  std::vector<bool> used(order.size(), false);
  std::vector<CopyAxis> axes;
  for (int a = 0; a < rank; ++a) {
    const int64_t from = order[a];
    require(from >= 0 && from < rank && !used[from] && in.shape[from] == out.shape[a], "no permutation of the axes");
    used[from] = true;
    axes.push_back({out.shape[a], source[from], target[a]});
  }
  return std::make_unique<View>(step, axes, 0);
}

std::unique_ptr<Kernel> make_slice(const Step& step, const CoreSet&) {
  const Operand &in = step.input(0), &out = step.output();
  const std::vector<int64_t>&begin = step.list("begin"), &size = step.list("size");
  const int rank = in.rank();
  require(static_cast<int>(begin.size()) == rank && size == out.shape && out.rank() == rank, "the box does not fit");
  const std::vector<int64_t> source = byte_strides(in), target = byte_strides(out);
  std::vector<CopyAxis> axes;
  int64_t offset = 0;
  for (int a = 0; a < rank; ++a) {
    require(begin[a] >= 0 && begin[a] <= in.shape[a] && size[a] <= in.shape[a] - begin[a], "the box does not fit");
    axes.push_back({size[a], source[a], target[a]});
    offset += begin[a] * source[a];
  }
  return std::make_unique<View>(step, axes, offset);
}

BITTRUE_OPERATOR(slice, make_slice)
BITTRUE_OPERATOR(transpose, make_transpose)

}  // namespace
}  // namespace bittrue

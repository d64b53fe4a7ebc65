// dynamic_update_slice: a copy of a tensor with a box overwritten, whose corner is known at run time.
#include <algorithm>
#include <cstring>

#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

class DynamicUpdateSlice final : public Kernel {
 public:
  explicit DynamicUpdateSlice(const Step& step)
      : shape_(step.input(0).shape),
        box_(step.input(1).shape),
        strides_(byte_strides(step.output())),
        element_(type_bytes(step.output().type)),
        bytes_(step.output().bytes()),
        rows_(step.input(1).elements),
        wide_(step.input(2).type == Type::s64) {
    if (rows_ != 0 && !box_.empty()) rows_ /= box_.back();
  }

  void run(const Run& run) const override {
    const uint8_t* update = run.inputs[1];
    if (bytes_ != 0) std::memcpy(run.outputs[0], run.inputs[0], static_cast<size_t>(bytes_));
    const auto rank = static_cast<int64_t>(shape_.size());
    int64_t corner = 0;
    for (int64_t a = 0; a < rank; ++a) {
      corner += std::clamp<int64_t>(start(run.inputs[2], a), 0, shape_[a] - box_[a]) * strides_[a];
    }
    const int64_t row_bytes = rank == 0 ? element_ : box_.back() * element_;
    for (int64_t row = 0; row < rows_; ++row) {
      int64_t rest = row, at = corner;
      for (int64_t a = rank - 1; a-- > 0;) {
        at += rest % box_[a] * strides_[a];
        rest /= box_[a];
      }
      std::memcpy(run.outputs[0] + at, update + row * row_bytes, static_cast<size_t>(row_bytes));
    }
  }

 private:
  int64_t start(const uint8_t* stored, int64_t a) const {
    return wide_ ? reinterpret_cast<const int64_t*>(stored)[a] : reinterpret_cast<const int32_t*>(stored)[a];
  }

  std::vector<int64_t> shape_, box_, strides_;
  int64_t element_, bytes_, rows_;
  bool wide_;
};

std::unique_ptr<Kernel> make_dynamic_update_slice(const Step& step, const CoreSet&) {
  const Operand &in = step.input(0), &update = step.input(1), &corner = step.input(2), &out = step.output();
  require_same_type(in, out);
  require_same_type(update, out);
  require(in.dense() && update.dense() && corner.dense() && out.dense(), "all sides must be dense");
  require(in.shape == out.shape && update.rank() == in.rank() && corner.elements == in.rank(), "the shapes do not fit");
  for (int a = 0; a < in.rank(); ++a) require(update.shape[a] <= in.shape[a], "the update is too large");
  require(corner.type == Type::s32 || corner.type == Type::s64, "the corner must be integers");
  return std::make_unique<DynamicUpdateSlice>(step);
}

BITTRUE_OPERATOR(dynamic_update_slice, make_dynamic_update_slice)

}  // namespace
}  // namespace bittrue

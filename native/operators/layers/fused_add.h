// An addition that a pass moved into the layer before it: sums are made while the layer's results are still in cache.
#pragma once

#include <memory>
#include <string>

#include "core/core_set.h"
#include "operators/elementwise/add.h"
#include "operators/elementwise/operand_pairs.h"

namespace bittrue {

class FusedAdd {
 public:
  // Takes the step's `then` when there is one: an 8-bit addition without broadcasting.
  FusedAdd(const Step& step, const CoreSet& cores) : result_first_(step.then_result_first) {
    if (step.then == nullptr) return;
    const Operand& other = *step.inputs.back();
    require(other.shape == step.output().shape, "this cannot be added block by block");
    stride_ = other.row_stride;
    const Step& sum = *step.then;
    core_ = sum.text("form") == "operands" ? cores.fused_sum(fused_sum_spec(sum)) : cores.add(add_spec(sum, false));
  }

  explicit operator bool() const { return core_ != nullptr; }

  // Rows [first, first + count) of the output, `bytes` long and `stride` apart; `other` is the whole operand.
  void apply(uint8_t* rows, int64_t stride, const uint8_t* other, int64_t first, int64_t count, int64_t bytes) const {
    if (core_ == nullptr) return;
    const uint8_t* addend = other + first * stride_;
    if (stride == bytes && stride_ == bytes) {
      count *= bytes;
      bytes = count;
      count = 1;
    }
    for (int64_t r = 0; r < count; ++r, rows += stride, addend += stride_) {
      core_->run(result_first_ ? rows : addend, result_first_ ? addend : rows, rows, bytes);
    }
  }

  std::string note() const { return core_ == nullptr ? "" : ", addition fused"; }

 private:
  bool result_first_;
  int64_t stride_ = 0;
  std::unique_ptr<Elementwise> core_;
};

}  // namespace bittrue

// An addition that a pass moved into the layer before it: sums are made while the layer's results are still in cache.
#pragma once

#include <memory>

#include "core/core_set.h"
#include "operators/elementwise/add.h"
#include "operators/elementwise/operand_pairs.h"
#include "operators/layers/layer_sum.h"

namespace bittrue {

class FusedAdd {
 public:
  // Takes the step's `then` when there is one: an 8-bit addition without broadcasting, unless it is one of sums.
  FusedAdd(const Step& step, const CoreSet& cores) {
    if (step.then == nullptr || is_sum_of_layer(*step.then)) return;
    const Operand& other = *step.inputs.back();
    require(other.shape == step.output().shape, "this cannot be added block by block");
    stride_ = other.row_stride;
    const Step& sum = *step.then;
    result_first_ = &sum.input(1) == &other;
    core_ = sum.text("form") == "operands" ? cores.fused_sum(fused_sum_spec(sum)) : cores.add(add_spec(sum, false));
  }

  explicit operator bool() const { return core_ != nullptr; }

  // Bytes of rows [first, first + count) of the output, `stride` apart; `other` is where row 0 of the operand has the first
  // of them.
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

 private:
  bool result_first_ = true;
  int64_t stride_ = 0;
  std::unique_ptr<Elementwise> core_;
};

}  // namespace bittrue

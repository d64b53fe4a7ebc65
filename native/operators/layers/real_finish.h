// What real and hybrid layers share: rows that are quantized when a run begins, and the way from sums to results.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kernel.h"
#include "rules/quantize_rows.h"

namespace bittrue {

// Weights as binary32: the stored ones, or integers, which it holds exactly.
class RealWeights {
 public:
  explicit RealWeights(const Operand& weights);
  bool constant() const { return constant_; }
  // Element i; `stored` is the operand's memory and not read when the weights are constant.
  float at(const uint8_t* stored, int64_t i) const {
    return constant_ ? values_[i] : reinterpret_cast<const float*>(stored)[i];
  }
  const float* data(const uint8_t* stored) const {
    return constant_ ? values_.data() : reinterpret_cast<const float*>(stored);
  }
  void forget() { values_ = {}; }

 private:
  bool constant_;
  std::vector<float> values_;
};

// The rows of a hybrid layer, quantized: integers without their zero point, as binary32.
class RowQuantizer {
 public:
  // `rows` rows of input `source` share a scale each. Does nothing for layers on real numbers.
  RowQuantizer(const Step& step, int64_t rows, size_t source = 0);
  bool active() const { return active_; }
  // Scratch for the integers and the scales.
  int64_t bytes() const;
  // Throws Undefined for values that are not finite. Returns where the layer shall read.
  const float* run(const Run& run, const float* input, uint8_t* scratch) const;
  const rules::RowScale* scales(const uint8_t* scratch) const;
  // Whether all values of the last run were zeros.
  bool all_zero(const uint8_t* scratch) const;

 private:
  rules::RowScale scale_of(const rules::RowRange& range) const;
  bool usable(const rules::RowRange& range, const rules::RowScale& row) const;
  void convert(const float* x, int64_t count, const rules::RowScale& row, float* out) const;

  void add_up(const float* row, rules::RowScale& scale) const;

  bool active_ = false, symmetric_ = false, away_ = false, wide_ = false, even_ = false;
  bool ties_away_ = false;  // of elements, where zero points are even
  float offset_ = 0;        // that kernels add to weights
  int64_t rows_ = 0, size_ = 0;
};

// From sums to results: scaled back for hybrid layers, plus bias, clamped.
class RealFinish {
 public:
  RealFinish(const Step& step, int64_t channels, bool hybrid);
  bool has_bias() const { return has_bias_; }
  // Sums begin with the bias; what lies outside of an image is left out, unless they are `fused`.
  bool from_bias() const { return fused_ || inside_; }
  // Sums begin with the bias, each product and its sum are rounded once, and what lies outside of an image is zeros.
  bool fused() const { return fused_; }
  // Each product and its sum are rounded once, from +0 on; what lies outside of an image is left out.
  bool joined() const { return joined_; }
  // Channels [first, first + count) of one output position; `bias` is the run's memory of the third input. Returns
  // whether a result is NaN, or -0 where rows have limits of their own behind their fours, which the reference knows.
  bool run(const float* sums, int64_t first, int64_t count, const rules::RowScale* row, const float* bias,
           bool only_bias, float* out) const;

 private:
  enum class Range : uint8_t { clamped, by_signs, open, raised, capped_first, raised_by_fours, rows_by_fours };
  enum class Back : uint8_t {
    product,
    product_joined,
    one_by_one,
    one_by_one_by_fours,
    rows_joined,
    rows_first,
    rows_by_fours
  };

  float offset_start(float moved, float scale, float weight, float start) const;

  bool hybrid_, fused_ = false, inside_ = false, joined_ = false, full_ = true, offset_joined_ = false, single_ = false;
  bool add_, has_bias_;
  Range range_ = Range::clamped;
  Back back_ = Back::product;
  int64_t channels_;
  float low_, high_;
  std::vector<float> scales_, zeros_;  // one per channel
};

}  // namespace bittrue

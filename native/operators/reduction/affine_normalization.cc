// batch_normalization of bytes: a factor and an addend per channel, by the slot `affine_scale`.
#include <algorithm>
#include <vector>

#include "operators/core/blocks.h"
#include "operators/elementwise/operand_pairs.h"
#include "rules/affine_scale.h"

namespace bittrue {
namespace {

class AffineNormalization final : public Kernel {
 public:
  explicit AffineNormalization(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require(is_8bit(in.type) && out.type == in.type && in.elements == out.elements && in.dense() && out.dense() &&
                out.rank() > 0 && in.shape == out.shape,
            "no native kernel for these tensors");
    require(step.rule("affine_scale") == "binary32_fused_even" &&
                step.rule("affine_scale_tail") == "binary32_fused_even_64_bits",
            "no native rule for this slot");
    flip_ = flip_of(in.type);
    channels_ = out.shape.back();
    rows_ = channels_ == 0 ? 0 : out.elements / channels_;
    body_ = step.integer("body", 0, channels_);
    const Array &factors = step.array("factors"), &addends = step.array("addends");
    const Array& zero_points = step.array("zero_points");
    require(factors.count == channels_ && addends.count == channels_ && zero_points.count == 2,
            "numbers of channels differ");
    for (int64_t c = 0; c < channels_; ++c) {
      factors_.push_back(static_cast<float>(factors.real(c)));
      addends_.push_back(static_cast<float>(addends.real(c)));
    }
    for (int i = 0; i < 2; ++i)
      require(zero_points.integer(i) >= -65536 && zero_points.integer(i) <= 65536, "out of range");
    zero_point_ = static_cast<int32_t>(zero_points.integer(0)) + flip_;
    output_zero_point_ = zero_points.integer(1);
    low_ = step.integer("low", -flip_, 255 - flip_), high_ = step.integer("high", -flip_, 255 - flip_);
  }

  void run(const Run& run) const override {
    const auto row = [&](int64_t index, int) {
      const uint8_t* in = run.inputs[0] + index * channels_;
      uint8_t* out = run.outputs[0] + index * channels_;
      for (int64_t c = 0; c < channels_; ++c) {
        const int32_t moved = in[c] - zero_point_;
        const int64_t value =
            c < body_ ? rules::affine_scale_even(moved, factors_[c], addends_[c], output_zero_point_)
                      : rules::affine_scale_even_64_bits(moved, factors_[c], addends_[c], output_zero_point_, low_);
        out[c] = static_cast<uint8_t>(std::min(std::max(value, low_), high_) + flip_);
      }
    };
    if (rows_ * channels_ < Blocks::kParallel) {
      for (int64_t index = 0; index < rows_; ++index) row(index, 0);
    } else {
      run.pool.parallel(rows_, row);
    }
  }

 private:
  std::vector<float> factors_, addends_;
  int64_t channels_ = 0, rows_ = 0, body_ = 0, output_zero_point_ = 0, low_ = 0, high_ = 0;
  int32_t zero_point_ = 0, flip_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_affine_normalization(const Step& step) {
  return std::make_unique<AffineNormalization>(step);
}

}  // namespace bittrue

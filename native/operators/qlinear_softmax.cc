// qlinear_softmax: shares of tabulated exponentials along neighbouring axes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/kernel.h"

namespace bittrue {
namespace {

class QuantizedSoftmax final : public Kernel {
 public:
  explicit QuantizedSoftmax(const Step& step) {
    require(step.rule("affine_softmax") == "binary32_table_even" && step.integer("late", 0, 1) == 0,
            "no native rule for this slot");
    const Operand &in = step.input(0), &out = step.output();
    require(is_8bit(in.type) && in.type == out.type && in.shape == out.shape && in.dense() && out.dense(),
            "no native kernel for these types");
    const std::vector<int64_t>& axes = step.list("axes");
    require(!axes.empty() && axes.front() >= 0 && axes.back() < in.rank(), "no axes");
    for (size_t i = 1; i < axes.size(); ++i) require(axes[i] == axes[i - 1] + 1, "axes are no neighbours");
    for (int64_t i = 0; i < axes.front(); ++i) outer_ *= in.shape[i];
    for (const int64_t axis : axes) length_ *= in.shape[axis];
    for (int64_t i = axes.back() + 1; i < in.rank(); ++i) inner_ *= in.shape[i];
    require(length_ == step.integer("length") || in.elements == 0, "the rows have another length");
    flip_ = flip_of(in.type);
    require(step.integer("low") == -flip_ && step.integer("high") == 255 - flip_, "the clamp is not the type's range");
    const Array &powers = step.array("exponentials"), &factor = step.array("factor"), &point = step.array("output_zero_point");
    require(powers.count == 256 && factor.count == 1 && point.count == 1, "a table has 256 entries");
    for (int i = 0; i < 256; ++i) powers_[i] = static_cast<float>(powers.real(i));
    factor_ = static_cast<float>(factor.real(0));
    zero_point_ = point.integer(0);
    require(zero_point_ >= -255 && zero_point_ <= 255, "a zero point is out of range");
  }

  void run(const Run& run) const override {
    const int64_t rows = outer_ * inner_;
    const auto row = [&](int64_t number, int) {
      const int64_t at = number / inner_ * length_ * inner_ + number % inner_;
      one(run.inputs[0] + at, run.outputs[0] + at);
    };
    if (rows * length_ < 10000) {
      for (int64_t i = 0; i < rows; ++i) row(i, 0);
    } else {
      run.pool.parallel(rows, row);
    }
  }
  std::string note() const override { return "lookup table"; }

 private:
  // A row in steps of `inner_` bytes.
  void one(const uint8_t* in, uint8_t* out) const {
    if (length_ == 0) return;
    uint8_t largest = in[0];
    for (int64_t i = 1; i < length_; ++i) largest = std::max(largest, in[i * inner_]);
    const float* powers = powers_ + 255 - largest;
    float sum = powers[in[0]];
    for (int64_t i = 1; i < length_; ++i) sum += powers[in[i * inner_]];
    if (length_ < 256) {
      for (int64_t i = 0; i < length_; ++i) out[i * inner_] = stored(powers[in[i * inner_]], sum);
      return;
    }
    uint8_t table[256];
    for (int byte = 0; byte <= largest; ++byte) table[byte] = stored(powers[byte], sum);
    for (int64_t i = 0; i < length_; ++i) out[i * inner_] = table[in[i * inner_]];
  }

  uint8_t stored(float power, float sum) const {
    const float share = std::nearbyint(power * factor_ / sum);
    if (flip_ != 0) {
      // The x86 conversion to 32 bits, whose sum with the zero point wraps.
      const bool fits = share >= -2147483648.0f && share < 2147483648.0f;
      const int64_t whole = fits ? static_cast<int64_t>(share) : INT32_MIN;
      const auto moved = static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(whole + zero_point_)));
      return static_cast<uint8_t>(std::min(std::max(moved, -128), 127) + 128);
    }
    // The low half of a conversion to 64 bits; that of what does not fit is 0.
    const bool fits = std::fabs(share) < 9223372036854775808.0f;
    const auto whole = static_cast<uint64_t>(fits ? static_cast<int64_t>(share) : 0);
    return static_cast<uint8_t>(std::min<uint32_t>(static_cast<uint32_t>(whole + static_cast<uint64_t>(zero_point_)), 255));
  }

  int64_t outer_ = 1, length_ = 1, inner_ = 1, zero_point_ = 0;
  int32_t flip_ = 0;
  float powers_[256];
  float factor_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> make_qlinear_softmax(const Step& step, const CoreSet&) {
  return std::make_unique<QuantizedSoftmax>(step);
}

}  // namespace bittrue

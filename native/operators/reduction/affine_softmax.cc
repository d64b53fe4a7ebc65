// softmax with the slot `affine_softmax`: shares of tabulated exponentials along neighbouring axes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "operators/reduction/softmax.h"

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
    const std::vector<int64_t>& view = step.list("view");
    require(view.size() == 3 && view[0] >= 0 && view[1] >= 0 && view[2] >= 0, "the view has three axes");
    outer_ = view[0], length_ = view[1], inner_ = view[2];
    const int64_t some = std::max<int64_t>(1, outer_ * inner_);
    require(in.elements % some == 0 && in.elements / some == length_ && outer_ <= in.elements && inner_ <= in.elements,
            "the view does not fit");
    flip_ = flip_of(in.type);
    require(step.integer("low") == -flip_ && step.integer("high") == 255 - flip_, "the clamp is not the type's range");
    const Array &powers = step.array("exponentials"), &factor = step.array("factor"),
                &point = step.array("output_zero_point");
    require(powers.count == 256 && factor.count == 1 && point.count == 1, "a table has 256 entries");
    for (int i = 0; i < 256; ++i) {
      powers_[i] = static_cast<float>(powers.real(i));
      // The sum is not smaller than any of them then.
      small_ = small_ && powers_[i] >= 0.0f && (i == 0 || powers_[i] >= powers_[i - 1]);
    }
    factor_ = static_cast<float>(factor.real(0));
    small_ = small_ && factor_ > 0.0f && factor_ < 1048576.0f && std::isfinite(powers_[255] * factor_);
    zero_point_ = point.integer(0);
    require(zero_point_ >= -255 && zero_point_ <= 255, "a zero point is out of range");
  }

  void run(const Run& run) const override {
    const int64_t rows = outer_ * inner_;
    const auto some = [&](int64_t task, int) {
      const uint8_t* in[kTogether];
      uint8_t* out[kTogether];
      const int64_t first = task * kTogether, count = std::min<int64_t>(kTogether, rows - first);
      for (int64_t r = 0; r < count; ++r) {
        const int64_t at = (first + r) / inner_ * length_ * inner_ + (first + r) % inner_;
        in[r] = run.inputs[0] + at;
        out[r] = run.outputs[0] + at;
      }
      together(in, out, count);
    };
    const int64_t tasks = (rows + kTogether - 1) / kTogether;
    if (rows * length_ < 10000) {
      for (int64_t i = 0; i < tasks; ++i) some(i, 0);
    } else {
      run.pool.parallel(tasks, some);
    }
  }
  std::string note() const override { return "lookup table"; }

 private:
  // Sums of one row wait for one another: several rows are added up side by side.
  static constexpr int kTogether = 8;
  static constexpr int64_t kTable = 64;  // bytes of a row from which on all results are tabulated first

  // Rows in steps of `inner_` bytes.
  void together(const uint8_t* const* in, uint8_t* const* out, int64_t count) const {
    if (length_ == 0) return;
    const float* powers[kTogether];
    const uint8_t* from[kTogether];
    float sums[kTogether];
    for (int64_t r = 0; r < kTogether; ++r) {
      from[r] = in[r < count ? r : 0];
      const uint8_t largest = inner_ == 1 ? largest_of(from[r], length_, 1) : largest_of(from[r], length_, inner_);
      powers[r] = powers_ + 255 - largest;
      sums[r] = powers[r][from[r][0]];
    }
    if (count == 1) {
      for (int64_t i = 1; i < length_; ++i) sums[0] += powers[0][from[0][i * inner_]];
    } else {
      for (int64_t i = 1; i < length_; ++i) {
        for (int r = 0; r < kTogether; ++r) sums[r] += powers[r][from[r][i * inner_]];
      }
    }
    for (int64_t r = 0; r < count; ++r) finish(in[r], out[r], powers[r], sums[r]);
  }

  static uint8_t largest_of(const uint8_t* from, int64_t count, int64_t step) {
    uint8_t largest = from[0];
    if (step == 1) {
      for (int64_t i = 1; i < count; ++i) largest = std::max(largest, from[i]);
    } else {
      for (int64_t i = 1; i < count; ++i) largest = std::max(largest, from[i * step]);
    }
    return largest;
  }

  void finish(const uint8_t* in, uint8_t* out, const float* powers, float sum) const {
    if (length_ < kTable) {
      for (int64_t i = 0; i < length_; ++i) out[i * inner_] = stored(powers[in[i * inner_]], sum);
      return;
    }
    // Entry 255 of the table of exponentials belongs to the row's largest byte.
    const auto largest = static_cast<int>(255 - (powers - powers_));
    uint8_t table[256];
    if (small_ && sum > 0.0f && std::isfinite(sum)) {
      fill(powers, largest + 1, sum, table);
    } else {
      for (int byte = 0; byte <= largest; ++byte) table[byte] = stored(powers[byte], sum);
    }
    for (int64_t i = 0; i < length_; ++i) out[i * inner_] = table[in[i * inner_]];
  }

  // What `stored` makes of shares below 2^22, whose sum with 1.5 * 2^23 rounds ties to even.
  void fill(const float* powers, int count, float sum, uint8_t* table) const {
    const float factor = factor_;
    const auto moved = static_cast<int32_t>(zero_point_) + flip_ - 0x4B400000;
    for (int i = 0; i < count; ++i) {
      const float share = powers[i] * factor / sum + 12582912.0f;
      int32_t bits;
      std::memcpy(&bits, &share, sizeof bits);
      const int32_t value = bits + moved, raised = value < 0 ? 0 : value;
      table[i] = static_cast<uint8_t>(raised > 255 ? 255 : raised);
    }
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
    return static_cast<uint8_t>(
        std::min<uint32_t>(static_cast<uint32_t>(whole + static_cast<uint64_t>(zero_point_)), 255));
  }

  int64_t outer_ = 1, length_ = 1, inner_ = 1, zero_point_ = 0;
  int32_t flip_ = 0;
  float powers_[256];
  float factor_ = 1;
  // Exponentials grow and stay finite times the factor: none is larger than a row's sum, so that shares are small.
  bool small_ = true;
};

}  // namespace

std::unique_ptr<Kernel> make_quantized_softmax(const Step& step) { return std::make_unique<QuantizedSoftmax>(step); }

}  // namespace bittrue

// Averages of summands of 8-bit integers: binary32 sums in the order of the taps.
#include <algorithm>
#include <cstring>

#include "core/share.h"
#include "operators/pooling/pools.h"
#include "operators/pooling/window_axes.h"

namespace bittrue {
namespace {

constexpr int64_t kParallelAverages = 40000;

class QuantizedAverage final : public Kernel {
 public:
  explicit QuantizedAverage(const Step& step) : w_(step) {
    const bool codes = step.rule("affine_average") == "codes_binary32_even";
    require((codes || step.rule("affine_average") == "binary32_in_order_even") && step.integer("late", 0, 1) == 0,
            "no native rule for this slot");
    const Operand &in = step.input(0), &out = step.output();
    require(is_8bit(in.type) && in.type == out.type, "no native kernel for these types");
    flip_ = flip_of(in.type);
    require(step.integer("low") == -flip_ && step.integer("high") == 255 - flip_, "the clamp is not the type's range");
    if (codes) {
      for (int i = 0; i < 256; ++i) values_[i] = static_cast<float>(i - flip_);
    } else {
      read_scales(step);
    }
    padding_counts_ = step.text("counted") == "taps";
    require(padding_counts_ || step.text("counted") == "inside", "no native count");
    for (const WindowAxis& axis : w_.axes) require(axis.taps <= 65536, "a window is too large");
    // Sums of integers are exact in binary32 up to 2^24.
    require(!codes || w_.taps() <= (1 << 24) / 255, "a window is too large for exact sums");
    find_line();
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }
  std::string note() const override { return line_ ? "sums of rows" : "sums of looked-up rows"; }

  void run(const Run& run) const override {
    const int64_t lines = w_.lines(), rows = w_.planes * lines, columns = w_.w().out;
    const auto row = [&](int64_t task, int worker) {
      auto* sums = reinterpret_cast<float*>(run.scratch + worker * worker_bytes());
      const int64_t z = task % lines / w_.h().out, y = task % w_.h().out;
      for (int64_t x = 0; x < columns; ++x) {
        one(run.inputs[0] + task / lines * w_.plane(), z, y, x, sums, run.outputs[0] + (task * columns + x) * w_.inner);
      }
    };
    run.pool.parallel(rows, rows * columns * w_.inner * w_.taps() < kParallelAverages ? 1 : run.pool.threads(), row);
  }

 private:
  int64_t worker_bytes() const { return round_up(w_.inner * 4, 64); }

  void read_scales(const Step& step) {
    const Array &values = step.array("values"), &scale = step.array("output_scale");
    const Array& point = step.array("output_zero_point");
    require(values.count == 256 && values.type == Type::f32 && scale.count == 1 && point.count == 1,
            "a table has 256 entries");
    for (int i = 0; i < 256; ++i) values_[i] = static_cast<float>(values.real(i));
    scale_ = static_cast<float>(scale.real(0));
    const int64_t zero_point = point.integer(0);
    require(zero_point >= -255 && zero_point <= 255, "a zero point is out of range");
    zero_point_ = static_cast<float>(zero_point);
  }

  // Whether values[i] = f32(slope * (i - origin)): then nothing need be looked up.
  void find_line() {
    int zero = 0;
    while (zero < 256 && values_[zero] != 0.0f) ++zero;
    if (zero == 256) return;
    slope_ = zero < 255 ? values_[zero + 1] : -values_[zero - 1];
    origin_ = zero;
    line_ = true;
    for (int i = 0; i < 256 && line_; ++i) {
      const float value = static_cast<float>(i - zero) * slope_;
      // Zeros of both signs differ: NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
      line_ = std::memcmp(&value, &values_[i], sizeof value) == 0;
    }
  }

  void one(const uint8_t* image, int64_t z, int64_t y, int64_t x, float* sums, uint8_t* out) const {
    const int64_t channels = w_.inner;
    std::fill(sums, sums + channels, 0.0f);
    w_.each_tap(image, z, y, x, [&](const uint8_t* tap) {
      if (line_) {
        for (int64_t c = 0; c < channels; ++c) sums[c] += static_cast<float>(tap[c] - origin_) * slope_;
      } else {
        for (int64_t c = 0; c < channels; ++c) sums[c] += values_[tap[c]];
      }
    });
    const auto count =
        static_cast<float>(padding_counts_ ? w_.taps() : w_.d().inside(z) * w_.h().inside(y) * w_.w().inside(x));
    const float low = static_cast<float>(-flip_), high = static_cast<float>(255 - flip_);
    const float scale = scale_, zero_point = zero_point_;
    const int32_t flip = flip_;
    for (int64_t c = 0; c < channels; ++c) {
      float value = sums[c] / count / scale + zero_point;
      // What does not fit 32 bits, or is NaN, becomes the lowest; ends are integers, so clamps may come first.
      value = value < 2147483648.0f ? value : low;
      value = value > low ? value : low;
      value = value < high ? value : high;
      // Rounds ties to even: the unit in the last place is 1 there.
      value += 12582912.0f;
      int32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      out[c] = static_cast<uint8_t>(bits - 0x4B400000 + flip);
    }
  }

  WindowAxes w_;
  float values_[256];
  float scale_ = 1, zero_point_ = 0, slope_ = 0;
  int32_t flip_ = 0, origin_ = 0;
  bool line_ = false, padding_counts_ = false;
};

}  // namespace

std::unique_ptr<Kernel> make_affine_average(const Step& step) { return std::make_unique<QuantizedAverage>(step); }

}  // namespace bittrue

// audio_spectrogram: twin of src/bittrue/operators/signal/audio_spectrogram.py, two windows at a time.
#include <atomic>
#include <cmath>

#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/core/registry.h"
#include "operators/signal/real_signals.h"

namespace bittrue {
namespace {

class Spectrogram final : public Kernel {
 public:
  explicit Spectrogram(const Step& step)
      : length_(step.integer("length", 2, int64_t{1} << 20)),
        stride_(step.integer("stride", 1, int64_t{1} << 31)),
        squared_(step.integer("squared", 0, 1) != 0),
        joined_(step.rule("multiply_add") == "rounded_once"),
        fourier_(length_ / 2, joined_) {
    const Operand &x = step.input(0), &out = step.output();
    require(
        x.type == Type::f32 && out.type == Type::f32 && x.dense() && out.dense() && x.rank() == 2 && out.rank() == 3,
        "no native kernel for these types");
    require((length_ & (length_ - 1)) == 0, "lengths are powers of two");
    require(joined_ || step.rule("multiply_add") == "rounded_twice", "no native rule for this slot");
    const Array& weights = step.array("weights");
    require(weights.type == Type::f64 && weights.count <= length_, "the weights have another form");
    for (int64_t i = 0; i < weights.count; ++i) weights_.push_back(weights.real(i));
    channels_ = x.shape[1], windows_ = out.shape[1];
    require(windows_ > 0 && out.shape[0] == channels_ && out.shape[2] == length_ / 2 + 1 &&
                (windows_ - 1) * stride_ + weights.count <= x.shape[0],
            "the shapes do not fit");
  }
  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }
  std::string note() const override { return "two windows at a time"; }

  void run(const Run& run) const override {
    std::atomic<bool> finite{true};
    const auto* x = reinterpret_cast<const float*>(run.inputs[0]);
    const int64_t all = channels_ * windows_, half = length_ / 2;
    run.pool.parallel((all + 1) / 2, run.pool.threads_for(all * length_ * 4), [&](int64_t task, int worker) {
      auto* scratch = reinterpret_cast<arithmetic::Pairs*>(run.scratch + worker * worker_bytes());
      const float* from[2];
      for (int64_t which = 0; which < 2; ++which) {
        const int64_t window = std::min(2 * task + which, all - 1);
        from[which] = x + window % windows_ * stride_ * channels_ + window / windows_;
      }
      const arithmetic::Pairs* z = frequencies_of_two(
          fourier_, static_cast<int64_t>(weights_.size()),
          [&](int which, int64_t i) { return static_cast<double>(from[which][i * channels_]) * weights_[i]; }, scratch,
          scratch + half);
      for (int64_t which = 0; which < std::min<int64_t>(2, all - 2 * task); ++which) {
        float* to = reinterpret_cast<float*>(run.outputs[0]) + (2 * task + which) * (half + 1);
        to[0] = static_cast<float>(z[0].re[which] * z[0].re[which]);
        for (int64_t i = 1; i < half; ++i) {
          const double re = z[i].re[which], square = z[i].im[which] * z[i].im[which];
          to[i] = static_cast<float>(joined_ ? std::fma(re, re, square) : re * re + square);
        }
        to[half] = static_cast<float>(z[0].im[which] * z[0].im[which]);
        for (int64_t i = 0; i <= half && !squared_; ++i) to[i] = std::sqrt(to[i]);
        if (!all_finite(to, half + 1)) finite.store(false, std::memory_order_relaxed);
      }
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  int64_t worker_bytes() const { return length_ * static_cast<int64_t>(sizeof(arithmetic::Pairs)); }

  int64_t length_, stride_, channels_ = 0, windows_ = 0;
  bool squared_, joined_;
  arithmetic::Fourier fourier_;
  std::vector<double> weights_;
};

std::unique_ptr<Kernel> make_audio_spectrogram(const Step& step, const CoreSet&) {
  return std::make_unique<Spectrogram>(step);
}

BITTRUE_OPERATOR(audio_spectrogram, make_audio_spectrogram)

}  // namespace
}  // namespace bittrue

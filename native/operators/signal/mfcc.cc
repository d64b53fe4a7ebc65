// mfcc: twin of src/bittrue/operators/signal/mfcc.py, one spectrum after the other.
#include <atomic>
#include <cmath>
#include <cstring>

#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

double mel(double frequency) { return 1127.0 * std::log1p(frequency / 700.0); }

class Cepstra final : public Kernel {
 public:
  explicit Cepstra(const Step& step)
      : channels_(step.integer("channels", 1, kMostCosines)), low_(step.real("low")), high_(step.real("high")) {
    const Operand &x = step.input(0), &rate = step.input(1), &out = step.output();
    require(x.type == Type::f32 && rate.type == Type::s32 && rate.elements == 1 && out.type == Type::f32 && x.dense() &&
                out.dense() && x.rank() == 3 && out.rank() == 3,
            "no native kernel for these types");
    bins_ = x.shape[2], coefficients_ = out.shape[2], spectra_ = x.shape[0] * x.shape[1];
    const Array& cosines = step.array("cosines");
    require(bins_ >= 2 && out.elements == spectra_ * coefficients_ && cosines.type == Type::f64 &&
                coefficients_ <= kMostCosines && cosines.count == coefficients_ * channels_,
            "the shapes do not fit");
    require(0 <= low_ && low_ < high_, "the limits enclose nothing");
    joined_ = step.rule("multiply_add") == "rounded_once";
    require(joined_ || step.rule("multiply_add") == "rounded_twice", "no native rule for this slot");
    cosines_.resize(static_cast<size_t>(cosines.count));
    // By channel: what a channel adds to all coefficients lies side by side.
    for (int64_t i = 0; i < cosines.count; ++i) {
      cosines_[i % channels_ * coefficients_ + i / channels_] = cosines.real(i);
    }
  }
  int64_t scratch_bytes(int threads) const override { return filter_bytes() + threads * worker_bytes(); }
  std::string note() const override { return "one spectrum after the other"; }

  void run(const Run& run) const override {
    int32_t rate;
    std::memcpy(&rate, run.inputs[1], 4);
    // What no recording has is the reference's to tell.
    if (rate <= 0 || 2 * high_ * static_cast<double>(bins_ - 1) / rate >= 2147483646.0) throw Undefined();
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const Filters f = filters(rate, run.scratch);
    // Without the bins that the upper limit asks for.
    if (f.end >= bins_) return std::fill_n(out, spectra_ * coefficients_, 0.0f), void();
    std::atomic<bool> finite{true};
    const int64_t work = 4 * bins_ + channels_ * (coefficients_ + 16);
    const int64_t each = std::max<int64_t>(1, 16384 / work), tasks = (spectra_ + each - 1) / each;
    run.pool.parallel(tasks, run.pool.threads_for(spectra_ * work), [&](int64_t task, int worker) {
      auto* sums = reinterpret_cast<double*>(run.scratch + filter_bytes() + worker * worker_bytes());
      for (int64_t i = task * each; i < std::min(spectra_, (task + 1) * each); ++i) {
        float* to = out + i * coefficients_;
        spectrum(reinterpret_cast<const float*>(run.inputs[0]) + i * bins_, f, sums, to);
        if (!all_finite(to, coefficients_)) finite.store(false, std::memory_order_relaxed);
      }
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr int64_t kMostCosines = 1 << 20;

  // Of every used bin its weight and the channel on whose falling side it lies (-1: none yet).
  struct Filters {
    int64_t start, end;
    double* weights;
    int32_t* places;
  };
  int64_t filter_bytes() const { return round_up(bins_ * 12, 64); }
  int64_t worker_bytes() const { return round_up((channels_ + 2 + coefficients_) * 8, 64); }

  Filters filters(int32_t rate, uint8_t* scratch) const {
    auto* weights = reinterpret_cast<double*>(scratch);
    const double start = mel(low_), spacing = (mel(high_) - start) / static_cast<double>(channels_ + 1);
    const double width = 0.5 * rate / static_cast<double>(bins_ - 1);
    Filters f{static_cast<int64_t>(1.5 + low_ / width), static_cast<int64_t>(high_ / width), weights,
              reinterpret_cast<int32_t*>(weights + bins_)};
    if (f.end >= bins_) return f;
    // The center of channel -1 is where they begin.
    const auto center = [&](int32_t channel) {
      const auto place = static_cast<double>(channel + 1);
      return channel < 0 ? start : joined_ ? std::fma(spacing, place, start) : start + spacing * place;
    };
    int32_t channel = 0;
    for (int64_t i = f.start; i <= f.end; ++i) {
      const double place = mel(static_cast<double>(i) * width);
      while (channel < channels_ && center(channel) < place) ++channel;
      const double below = center(channel - 1);
      weights[i] = (center(channel) - place) / (center(channel) - below);
      f.places[i] = channel - 1;
    }
    return f;
  }

  void spectrum(const float* x, const Filters& f, double* sums, float* to) const {
    // What falls off on both sides of the channels is added to places of its own.
    std::fill_n(sums, channels_ + 2, 0.0);
    for (int64_t i = f.start; i <= f.end; ++i) {
      const double magnitude = std::sqrt(static_cast<double>(x[i])), weighted = magnitude * f.weights[i];
      double* channel = sums + f.places[i] + 1;
      channel[0] += weighted;
      channel[1] += magnitude - weighted;
    }
    double* out = sums + channels_ + 2;
    std::fill_n(out, coefficients_, 0.0);
    for (int64_t c = 0; c < channels_; ++c) {
      const double sum = sums[c + 1], floored = sum < 1e-12 ? 1e-12 : sum;
      const double logarithm = std::log(floored), *cosines = cosines_.data() + c * coefficients_;
      // Of channels that fill no whole four products are joined with their sums.
      const bool joins = joined_ && c >= channels_ / 4 * 4;
      for (int64_t i = 0; i < coefficients_; ++i) {
        out[i] = joins ? std::fma(cosines[i], logarithm, out[i]) : out[i] + cosines[i] * logarithm;
      }
    }
    for (int64_t i = 0; i < coefficients_; ++i) to[i] = static_cast<float>(out[i]);
  }

  int64_t channels_, bins_ = 0, coefficients_ = 0, spectra_ = 0;
  double low_, high_;
  bool joined_;
  std::vector<double> cosines_;  // [channels][coefficients]
};

std::unique_ptr<Kernel> make_mfcc(const Step& step, const CoreSet&) { return std::make_unique<Cepstra>(step); }

BITTRUE_OPERATOR(mfcc, make_mfcc)

}  // namespace
}  // namespace bittrue

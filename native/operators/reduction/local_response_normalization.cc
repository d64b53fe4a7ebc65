// local_response_normalization: every channel times a power of the sum of its neighbours' squares.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "arithmetic/elementary.h"
#include "operators/core/registry.h"
#include "operators/elementwise/real_loops.h"
#include "operators/layers/real_finish.h"

namespace bittrue {
namespace {

class LocalResponseNormalization final : public Kernel {
 public:
  explicit LocalResponseNormalization(const Step& step)
      : bias_(static_cast<float>(step.real("bias"))),
        alpha_(static_cast<float>(step.real("alpha"))),
        beta_(static_cast<float>(step.real("beta"))) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == Type::f32 && out.type == Type::f32 && in.rank() == 4 && in.shape == out.shape && in.dense() &&
                out.dense(),
            "both sides must be real, dense and equal in shape");
    depth_ = in.shape[3];
    rows_ = depth_ > 0 ? in.elements / depth_ : 0;
    radius_ = std::min(depth_, step.integer("radius", -(int64_t{1} << 31), int64_t{1} << 31));
    joined_ = step.rule("sum_of_products") == "binary32_eights_then_fused";
    require(joined_ || step.rule("sum_of_products") == "binary32_in_order", "no native rule for this slot");
  }

  void run(const Run& run) const override {
    std::atomic<bool> odd{false};
    run.pool.parallel(rows_, [&](int64_t row, int) {
      const auto* x = reinterpret_cast<const float*>(run.inputs[0]) + row * depth_;
      auto* out = reinterpret_cast<float*>(run.outputs[0]) + row * depth_;
      for (int64_t c = 0; c < depth_; ++c) {
        float total = 0;
        const int64_t first = std::max<int64_t>(0, c - radius_), last = std::min(depth_, c + radius_);
        const int64_t whole = joined_ ? first + std::max<int64_t>(0, last - first) / 8 * 8 : last;
        for (int64_t i = first; i < whole; ++i) {
          const float square = x[i] * x[i];
          total = total + square;
        }
        for (int64_t i = whole; i < last; ++i) total = std::fma(x[i], x[i], total);
        const double scaled = alpha_ * total;  // exact
        const float result = x[c] * static_cast<float>(std::pow(bias_ + scaled, -beta_));
        // The reference knows the bits of NaN.
        if (result != result) odd = true;
        out[c] = result;
      }
    });
    if (odd) throw Undefined{};
  }

 private:
  double bias_, alpha_, beta_;
  int64_t depth_ = 0, rows_ = 0, radius_ = 0;
  bool joined_ = false;  // squares that fill no eight are joined with their sum
};

// binary32_lanes: channels first, sums of a moving window. Sums that are not positive and finite are left to the reference.
class RunningResponse final : public Kernel {
 public:
  explicit RunningResponse(const Step& step)
      : bias_(static_cast<float>(step.real("bias"))), exponent_(-static_cast<float>(step.real("beta"))) {
    const Operand &in = step.input(0), &out = step.output();
    require(step.rule("real_normalization") == "binary32_lanes", "no native rule for this slot");
    require(in.type == Type::f32 && out.type == Type::f32 && in.rank() >= 2 && in.shape == out.shape && in.dense() &&
                out.dense() && in.elements > 0,
            "both sides must be real, dense and equal in shape");
    size_ = step.integer("size", 1, int64_t{1} << 31);
    channels_ = in.shape[1];
    positions_ = in.elements / in.shape[0] / channels_;
    elements_ = in.elements;
    share_ = static_cast<float>(step.real("alpha")) / static_cast<float>(size_);
    require(std::isfinite(share_) && std::fabs(exponent_) < 0x1p20f, "numbers that are no usual ones");
  }

  void run(const Run& run) const override {
    const int64_t pieces = (positions_ + kPiece - 1) / kPiece, images = elements_ / channels_ / positions_;
    std::atomic<bool> known{true};
    run.pool.parallel(images * pieces, elements_ < kAlone ? 1 : run.pool.threads(), [&](int64_t task, int worker) {
      const int64_t first = task % pieces * kPiece, begin = task / pieces * channels_ * positions_ + first;
      if (!piece(run, worker, begin, std::min(kPiece, positions_ - first))) {
        known.store(false, std::memory_order_relaxed);
      }
    });
    if (!known.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr int64_t kPiece = 1024, kAlone = 20000;

  bool piece(const Run& run, int worker, int64_t begin, int64_t count) const {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const int64_t before = (size_ - 1) / 2, after = size_ - 1 - before;
    float sums[kPiece], powers[kPiece];
    std::fill_n(sums, count, bias_);
    // A channel that is none adds nothing: sums are no zeros.
    const auto add = [&](int64_t channel, float share) {
      if (channel < 0 || channel >= channels_) return;
      const float* x = in + begin + channel * positions_;
      for (int64_t i = 0; i < count; ++i) sums[i] += share * (x[i] * x[i]);
    };
    for (int64_t c = 0; c < std::min(after, channels_); ++c) add(c, share_);
    const int64_t all = elements_ / 4 * 4;
    for (int64_t c = 0; c < channels_; ++c) {
      run.check(worker);
      add(c + after, share_);
      add(c - 1 - before, -share_);
      uint32_t odd = 0;
      for (int64_t i = 0; i < count; ++i) odd |= !((sums[i] > 0) & (sums[i] < __builtin_inff()));
      if (odd != 0) return false;
      real_loops::power_of_positive(sums, exponent_, powers, count);
      const int64_t at = begin + c * positions_;
      // The last one to three of all numbers are the C library's.
      for (int64_t i = std::max<int64_t>(0, all - at); i < count; ++i)
        powers[i] = arithmetic::power(sums[i], exponent_);
      uint32_t missing = 0;
      for (int64_t i = 0; i < count; ++i) {
        out[at + i] = in[at + i] * powers[i];
        missing |= out[at + i] != out[at + i];
      }
      if (missing != 0) return false;
    }
    return true;
  }

  float bias_, exponent_, share_ = 0;
  int64_t size_ = 0, channels_ = 0, positions_ = 0, elements_ = 0;
};

std::unique_ptr<Kernel> make_local_response_normalization(const Step& step, const CoreSet&) {
  if (step.rules.count("real_normalization") != 0) return std::make_unique<RunningResponse>(step);
  return std::make_unique<LocalResponseNormalization>(step);
}

BITTRUE_OPERATOR(local_response_normalization, make_local_response_normalization)

}  // namespace
}  // namespace bittrue

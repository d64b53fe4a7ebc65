// Softmax along an axis, sum and mean of real numbers, in the orders of their rules.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "arithmetic/elementary.h"
#include "core/share.h"
#include "operators/reduction/real_rows.h"
#include "operators/reduction/reduce.h"
#include "operators/reduction/softmax.h"

namespace bittrue {
namespace {

// Rows of [outer, length, inner]; those that are not side by side are worked on in scratch memory.
class RealSoftmaxAlong final : public Kernel {
 public:
  RealSoftmaxAlong(const Step& step, const CoreSet& cores, bool logarithm)
      : core_(cores.softmax_rows()), logarithm_(logarithm), lanes_(softmax_lanes(step)) {
    require_reals(step);
    require(lanes_ != 0, "no native rule for this slot");
    const std::vector<int64_t>& view = step.list("view");
    require(view.size() == 3 && view[0] >= 0 && view[1] >= 0 && view[2] >= 0, "the view has three axes");
    outer_ = view[0], length_ = view[1], inner_ = view[2];
    require(outer_ * length_ * inner_ == step.input(0).elements && step.output().elements == step.input(0).elements,
            "the view does not fit");
  }
  int64_t scratch_bytes(int threads) const override { return inner_ == 1 ? 0 : threads * worker_bytes(); }
  bool packs(size_t input) const override { return input != 0; }

  void run(const Run& run) const override {
    if (length_ == 0) return;
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    for_rows(run, outer_ * inner_, length_, [&](int64_t row, int worker) {
      if (inner_ == 1) return one(in + row * length_, out + row * length_);
      const int64_t at = row / inner_ * length_ * inner_ + row % inner_;
      auto* own = reinterpret_cast<float*>(run.scratch + worker * worker_bytes());
      for (int64_t i = 0; i < length_; ++i) own[i] = in[at + i * inner_];
      const bool defined = one(own, own);
      for (int64_t i = 0; i < length_; ++i) out[at + i * inner_] = own[i];
      return defined;
    });
  }

 private:
  int64_t worker_bytes() const { return round_up(length_ * 4, 64); }

  // False for what is no number.
  bool one(const float* in, float* out) const {
    if (!logarithm_) return core_.row(in, out, length_, lanes_);
    const float largest = core_.largest(in, length_);
    // Powers so small that 8 lanes leave them out change no sum that is 1 or more.
    const float logarithm = arithmetic::log(core_.powers(in, nullptr, length_, largest, lanes_));
    for (int64_t i = 0; i < length_; ++i) out[i] = (in[i] - largest) - logarithm;
    return logarithm == logarithm;
  }

  const SoftmaxRows& core_;
  bool logarithm_;
  int lanes_;
  int64_t outer_ = 0, length_ = 0, inner_ = 0;
};

// [outer, reduced, inner]: packets where nothing lies inside, fours where something lies on both sides, else one after
// the other.
class RealSums final : public Kernel {
 public:
  explicit RealSums(const Step& step) : mean_(step.name == "mean"), alone_(step.integers.count("alone") != 0) {
    require_reals(step);
    require(mean_ || step.text("kind") == "sum", "no native function of sums");
    const Operand& in = step.input(0);
    const std::vector<int64_t>& axes = step.list("axes");
    std::vector<std::pair<bool, int64_t>> pattern;
    for (int i = 0; i < in.rank(); ++i) {
      const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
      if (!pattern.empty() && pattern.back().first == reduced) {
        pattern.back().second *= in.shape[i];
      } else {
        pattern.push_back({reduced, in.shape[i]});
      }
    }
    // A single first dimension that is kept does not count.
    if (pattern.size() > 1 && !pattern[0].first && pattern[0].second == 1) pattern.erase(pattern.begin());
    require(!pattern.empty() && in.elements > 0, "there is nothing to add up");
    if (!pattern[0].first) {
      outer_ = pattern[0].second;
      pattern.erase(pattern.begin());
      several_ = true;
    }
    require(!pattern.empty() && pattern.size() <= 2 && pattern[0].first, "axes lie apart");
    count_ = pattern[0].second;
    if (pattern.size() == 2) inner_ = pattern[1].second, inside_ = true;
    require(step.output().elements == outer_ * inner_, "the shapes do not fit");
    require(!alone_ || !inside_, "rows alone lie one after the other");
  }
  bool packs(size_t input) const override { return input != 0; }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const auto by = static_cast<float>(count_);
    for_rows(run, outer_, count_ * inner_, [&](int64_t row, int) {
      const float* from = in + row * count_ * inner_;
      float* to = out + row * inner_;
      if (!inside_) {
        *to = packet_sum([from](int64_t i) { return from[i]; }, count_, alone_ ? 0 : row * count_);
      } else if (several_) {
        add_fours(from, to);
      } else {
        // Sums begin with 0, which only -0 alone shows.
        for (int64_t i = 0; i < inner_; ++i) to[i] = 0.0f + from[i];
        for (int64_t k = 1; k < count_; ++k) {
          for (int64_t i = 0; i < inner_; ++i) to[i] += from[k * inner_ + i];
        }
      }
      if (mean_) {
        for (int64_t i = 0; i < inner_; ++i) to[i] /= by;
      }
      bool defined = true;
      for (int64_t i = 0; i < inner_; ++i) defined = defined && to[i] == to[i];
      return defined;
    });
  }

 private:
  void add_fours(const float* from, float* to) const {
    for (int64_t i = 0; i < inner_; ++i) to[i] = 0.0f;
    int64_t k = 0;
    for (const int64_t width : {4, 2, 1}) {
      for (; count_ - k >= width; k += width) {
        const float* part = from + k * inner_;
        for (int64_t i = 0; i < inner_; ++i) {
          float sum = part[i];
          for (int64_t w = 1; w < width; ++w) sum += part[w * inner_ + i];
          to[i] = sum + to[i];
        }
      }
    }
  }

  bool mean_, alone_, several_ = false, inside_ = false;
  int64_t outer_ = 1, count_ = 1, inner_ = 1;
};

// Functions of sums, in packets where everything is reduced, else one element after the other.
class FunctionOfSums final : public Kernel {
 public:
  explicit FunctionOfSums(const Step& step) : reduction_(step), kind_(step.text("kind")) {
    require_reals(step);
    require(kind_ == "sum_square" || kind_ == "l1" || kind_ == "l2" || kind_ == "log_sum",
            "no native function of sums");
  }
  int64_t scratch_bytes(int threads) const override { return reduction_.scratch_bytes(threads); }

  void run(const Run& run) const override {
    if (kind_ == "l1") return sums(run, [](float x) { return std::fabs(x); });
    if (kind_ == "log_sum") return sums(run, [](float x) { return x; });
    sums(run, [](float x) { return x * x; });
  }

 private:
  template <class Before>
  void sums(const Run& run, const Before& before) const {
    struct Sum {
      const Before& before;
      float start = 0.0f;
      float operator()(float sum, float x) const { return sum + before(x); }
    };
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    std::atomic<bool> defined{true};
    const auto finish = [&](const float* sum, int64_t first, int64_t size) {
      bool found = true;
      for (int64_t i = 0; i < size; ++i) {
        out[first + i] = kind_ == "l2" ? std::sqrt(sum[i]) : kind_ == "log_sum" ? arithmetic::log(sum[i]) : sum[i];
        found = found && out[first + i] == out[first + i];
      }
      if (!found) defined.store(false, std::memory_order_relaxed);
    };
    if (reduction_.whole()) {
      const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
      const float sum = packet_sum([&](int64_t i) { return before(in[i]); }, reduction_.count(), 0);
      finish(&sum, 0, 1);
    } else {
      reduction_.run<float, float>(run, Sum{before}, false, finish);
    }
    if (!defined.load(std::memory_order_relaxed)) throw Undefined();
  }

  Reduction reduction_;
  std::string kind_;
};

// In binary64, limited to the type. Where a sum could be inexact, its order matters, which the reference knows.
template <class T>
class IntegerSums final : public Kernel {
 public:
  explicit IntegerSums(const Step& step) : reduction_(step) {
    require(step.output().type == step.input(0).type, "no native kernel for these types");
    size_ = step.input(0).elements;
    require(sizeof(T) == 8 || reduction_.count() < int64_t{1} << 21, "a sum may be inexact");
  }
  int64_t scratch_bytes(int threads) const override { return reduction_.scratch_bytes(threads); }

  void run(const Run& run) const override {
    struct Sum {
      double start = 0;
      double operator()(double a, double b) const { return a + b; }
    };
    if (sizeof(T) == 8 && !exact(reinterpret_cast<const T*>(run.inputs[0]))) throw Undefined();
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    reduction_.run<T, double>(run, Sum(), false, [&](const double* sum, int64_t first, int64_t size) {
      constexpr auto kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
      for (int64_t i = 0; i < size; ++i) {
        const bool above = sum[i] >= static_cast<double>(kHigh), below = sum[i] <= static_cast<double>(kLow);
        out[first + i] = above ? kHigh : below ? kLow : static_cast<T>(sum[i]);
      }
    });
  }

 private:
  bool exact(const T* from) const {
    const int64_t most = (int64_t{1} << 53) / std::max<int64_t>(1, reduction_.count());
    bool beyond = false;
    for (int64_t i = 0; i < size_; ++i) beyond |= from[i] > most || from[i] < -most;
    return !beyond;
  }

  Reduction reduction_;
  int64_t size_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_softmax_along(const Step& step, const CoreSet& cores, bool logarithm) {
  return std::make_unique<RealSoftmaxAlong>(step, cores, logarithm);
}

std::unique_ptr<Kernel> make_real_sum(const Step& step, const CoreSet&) {
  const std::string& rule = step.rule("real_sum");
  const Type type = step.input(0).type;
  if (rule == "binary64_trunc_saturate" && step.name == "sum" && step.text("kind") == "sum") {
    if (type == Type::s32) return std::make_unique<IntegerSums<int32_t>>(step);
    if (type == Type::s64) return std::make_unique<IntegerSums<int64_t>>(step);
  }
  require(rule == "binary32_packets_4", "no native rule for this slot");
  if (step.name == "mean" || step.text("kind") == "sum") return std::make_unique<RealSums>(step);
  return std::make_unique<FunctionOfSums>(step);
}

}  // namespace bittrue

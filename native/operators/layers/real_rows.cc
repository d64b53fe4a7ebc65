// Softmax along an axis, sum and mean of real numbers, in the orders of their rules.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arithmetic/elementary.h"
#include "arithmetic/rational_wide.h"
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

// Axes that are reduced, or kept, and their sizes; neighbours that are alike are one.
struct AxisPattern {
  explicit AxisPattern(const Step& step, bool without_single = true) {
    const Operand& in = step.input(0);
    const std::vector<int64_t>& axes = step.list("axes");
    for (int i = 0; i < in.rank(); ++i) {
      const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
      if (!parts.empty() && parts.back().first == reduced) {
        parts.back().second *= in.shape[i];
      } else {
        parts.push_back({reduced, in.shape[i]});
      }
    }
    // A single first dimension that is kept does not count.
    single = without_single && parts.size() > 1 && !parts[0].first && parts[0].second == 1;
    if (single) parts.erase(parts.begin());
  }

  // Whether axes lie apart and are added up one element after the other.
  bool in_turn() const {
    const auto reduced = std::count_if(parts.begin(), parts.end(), [](const auto& part) { return part.first; });
    return reduced > 1 && (parts.size() > 3 || single || parts[1].second == 1);
  }

  std::vector<std::pair<bool, int64_t>> parts;
  bool single = false;
};

// Axes as [outer, reduced, inner].
struct ReducedMiddle {
  explicit ReducedMiddle(const Step& step) {
    const Operand& in = step.input(0);
    std::vector<std::pair<bool, int64_t>> pattern = AxisPattern(step).parts;
    require(!pattern.empty() && in.elements > 0, "there is nothing to add up");
    if (!pattern[0].first) {
      outer = pattern[0].second;
      pattern.erase(pattern.begin());
      several = true;
    }
    require(!pattern.empty() && pattern.size() <= 2 && pattern[0].first, "axes lie apart");
    count = pattern[0].second;
    if (pattern.size() == 2) inner = pattern[1].second, inside = true;
    require(step.output().elements == outer * inner, "the shapes do not fit");
  }

  bool several = false, inside = false;  // whether there are axes outside and inside
  int64_t outer = 1, count = 1, inner = 1;
};

// Packets where nothing lies inside, fours of binary32 numbers where something lies on both sides, else one after the other.
template <class T>
class RealSums final : public Kernel {
 public:
  explicit RealSums(const Step& step)
      : mean_(step.name == "mean"), alone_(step.integers.count("alone") != 0), m_(step) {
    require_reals<T>(step);
    require(!alone_ || !m_.inside, "rows alone lie one after the other");
  }
  bool packs(size_t input) const override { return input != 0; }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const T*>(run.inputs[0]);
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    const auto by = static_cast<T>(m_.count);
    for_rows(run, m_.outer, m_.count * m_.inner, [&](int64_t row, int) {
      const T* from = in + row * m_.count * m_.inner;
      T* to = out + row * m_.inner;
      if (!m_.inside) {
        *to = packet_sum([from](int64_t i) { return from[i]; }, m_.count, alone_ ? 0 : row * m_.count);
      } else if (m_.several && std::is_same_v<T, float>) {
        add_fours(from, to);
      } else {
        // Sums begin with 0, which only -0 alone shows.
        for (int64_t i = 0; i < m_.inner; ++i) to[i] = T{0} + from[i];
        for (int64_t k = 1; k < m_.count; ++k) {
          for (int64_t i = 0; i < m_.inner; ++i) to[i] += from[k * m_.inner + i];
        }
      }
      if (mean_) {
        for (int64_t i = 0; i < m_.inner; ++i) to[i] /= by;
      }
      bool defined = true;
      for (int64_t i = 0; i < m_.inner; ++i) defined = defined && to[i] == to[i];
      return defined;
    });
  }

 private:
  void add_fours(const T* from, T* to) const {
    for (int64_t i = 0; i < m_.inner; ++i) to[i] = 0;
    int64_t k = 0;
    for (const int64_t width : {4, 2, 1}) {
      for (; m_.count - k >= width; k += width) {
        const T* part = from + k * m_.inner;
        for (int64_t i = 0; i < m_.inner; ++i) {
          T sum = part[i];
          for (int64_t w = 1; w < width; ++w) sum += part[w * m_.inner + i];
          to[i] = sum + to[i];
        }
      }
    }
  }

  bool mean_, alone_;
  ReducedMiddle m_;
};

// Sums along the first and the last axes: those of runs by packets, one after the other.
template <class T>
class RunSums final : public Kernel {
 public:
  explicit RunSums(const Step& step) : mean_(step.name == "mean") {
    require_reals<T>(step);
    const std::vector<std::pair<bool, int64_t>> parts = AxisPattern(step).parts;
    require(parts.size() == 3 && parts[0].first && !parts[1].first && parts[2].first, "axes lie apart");
    runs_ = parts[0].second, kept_ = parts[1].second, length_ = parts[2].second;
    require(runs_ > 0 && length_ > 0 && step.output().elements == kept_, "the shapes do not fit");
  }
  bool packs(size_t input) const override { return input != 0; }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const T*>(run.inputs[0]);
    for_rows(run, kept_, runs_ * length_, [&](int64_t row, int worker) {
      T total = 0;
      for (int64_t k = 0; k < runs_; ++k) {
        run.check(worker);
        const int64_t begin = (k * kept_ + row) * length_;
        // Sums begin with 0, which only -0 alone shows.
        total += packet_sum([from = in + begin](int64_t i) { return from[i] + T{0}; }, length_, begin);
      }
      const T result = mean_ ? total / static_cast<T>(runs_ * length_) : total;
      reinterpret_cast<T*>(run.outputs[0])[row] = result;
      return result == result;
    });
  }

 private:
  bool mean_;
  int64_t runs_ = 1, kept_ = 1, length_ = 1;
};

// The C library's.
float power_of(float x) { return arithmetic::exp(x); }
double power_of(double x) { return arithmetic::rational_wide::library_exp(x); }
float logarithm_of(float x) { return arithmetic::log(x); }
double logarithm_of(double x) { return arithmetic::rational_wide::library_log(x); }

// The logarithm of a sum of powers, which are added one after the other, less the largest number where that is finite.
template <class T>
class LogSumExps final : public Kernel {
 public:
  explicit LogSumExps(const Step& step) : m_(step) { require_reals<T>(step); }
  bool packs(size_t input) const override { return input != 0; }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const T*>(run.inputs[0]);
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    const int64_t parts = (m_.inner + kColumns - 1) / kColumns;
    for_rows(run, m_.outer * parts, m_.count * std::min(kColumns, m_.inner), [&](int64_t task, int worker) {
      const int64_t first = task % parts * kColumns, count = std::min(kColumns, m_.inner - first);
      const T* from = in + task / parts * m_.count * m_.inner + first;
      T largest[kColumns], sums[kColumns] = {};
      std::fill(largest, largest + count, -std::numeric_limits<T>::infinity());
      for (int64_t k = 0; k < m_.count; ++k) {
        for (int64_t i = 0; i < count; ++i) largest[i] = std::max(largest[i], from[k * m_.inner + i]);
      }
      for (int64_t i = 0; i < count; ++i) largest[i] = std::isfinite(largest[i]) ? largest[i] : T{0};
      for (int64_t k = 0; k < m_.count; ++k) {
        run.check(worker);
        for (int64_t i = 0; i < count; ++i) sums[i] += power_of(from[k * m_.inner + i] - largest[i]);
      }
      bool defined = true;
      for (int64_t i = 0; i < count; ++i) {
        const T result = logarithm_of(sums[i]) + largest[i];
        out[task / parts * m_.inner + first + i] = result;
        defined = defined && result == result;
      }
      return defined;
    });
  }

 private:
  static constexpr int64_t kColumns = 256;  // that are worked on together
  ReducedMiddle m_;
};

// The same along axes that lie apart.
template <class T>
class LogSumExpsApart final : public Kernel {
 public:
  explicit LogSumExpsApart(const Step& step) : reduction_(step) { require_reals<T>(step); }
  bool packs(size_t input) const override { return input != 0; }

  void run(const Run& run) const override {
    struct Sum {
      T shift, sum;
    };
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    std::atomic<bool> defined{true};
    reduction_.run_elements<T>(
        run, [](int64_t) { return -std::numeric_limits<T>::infinity(); }, [](T a, T b) { return std::max(a, b); },
        [&](int64_t output, T largest) { out[output] = std::isfinite(largest) ? largest : T{0}; });
    reduction_.run_elements<T>(
        run, [&](int64_t output) { return Sum{out[output], 0}; },
        [](const Sum& kept, T x) { return Sum{kept.shift, kept.sum + power_of(x - kept.shift)}; },
        [&](int64_t output, const Sum& kept) {
          out[output] = logarithm_of(kept.sum) + kept.shift;
          if (out[output] != out[output]) defined.store(false, std::memory_order_relaxed);
        });
    if (!defined.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  Reduction reduction_;
};

// Sums along axes that lie apart, and functions of sums and products: in packets where everything is reduced, else one
// element after the other.
template <class T>
class FunctionOfSums final : public Kernel {
 public:
  explicit FunctionOfSums(const Step& step) : reduction_(step), kind_(step.text("kind")) {
    require_reals<T>(step);
    require(kind_ == "sum_square" || kind_ == "l1" || kind_ == "l2" || kind_ == "prod" || kind_ == "log_sum",
            "no native function of sums");
  }
  // A sum or a mean.
  FunctionOfSums(const Step& step, bool mean) : reduction_(step), kind_(mean ? "mean" : "sum") {
    require_reals<T>(step);
  }
  int64_t scratch_bytes(int threads) const override { return reduction_.scratch_bytes(threads); }
  bool packs(size_t input) const override { return input != 0; }

  void run(const Run& run) const override {
    const auto add = [](T a, T b) { return a + b; };
    const auto itself = [](T x) { return x; };
    if (kind_ == "prod") return fold(run, T{1}, itself, [](T a, T b) { return a * b; });
    if (kind_ == "l1") return fold(run, T{0}, [](T x) { return std::fabs(x); }, add);
    if (kind_ == "log_sum" || kind_ == "sum" || kind_ == "mean") return fold(run, T{0}, itself, add);
    fold(run, T{0}, [](T x) { return x * x; }, add);
  }

 private:
  template <class Before, class Join>
  struct Folded {
    T start;
    const Before& before;
    const Join& join;
    T operator()(T kept, T x) const { return join(kept, before(x)); }
  };

  template <class Before, class Join>
  void fold(const Run& run, T start, const Before& before, const Join& join) const {
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    std::atomic<bool> defined{true};
    const auto finish = [&](const T* kept, int64_t first, int64_t size) {
      bool found = true;
      for (int64_t i = 0; i < size; ++i) {
        out[first + i] = kind_ == "l2"        ? std::sqrt(kept[i])
                         : kind_ == "log_sum" ? logarithm_of(kept[i])
                         : kind_ == "mean"    ? kept[i] / static_cast<T>(reduction_.count())
                                              : kept[i];
        found = found && out[first + i] == out[first + i];
      }
      if (!found) defined.store(false, std::memory_order_relaxed);
    };
    if (reduction_.whole()) {
      const auto* in = reinterpret_cast<const T*>(run.inputs[0]);
      const T kept = packet_fold([&](int64_t i) { return before(in[i]); }, reduction_.count(), 0, join);
      finish(&kept, 0, 1);
    } else {
      reduction_.run<T, T>(run, Folded<Before, Join>{start, before, join}, false, finish);
    }
    if (!defined.load(std::memory_order_relaxed)) throw Undefined();
  }

  Reduction reduction_;
  std::string kind_;
};

// Logarithms of libraries differ in their last bits, which shows where one is next to an integer, or to a half that is
// added to a large one. 1 has none of them.
bool is_sure(double x, double logarithm) {
  return !(x > 0) || x == 1 || std::fabs(2 * logarithm - std::nearbyint(2 * logarithm)) > 1e-9;
}

// In binary64 without the fraction, limited to the type; no number becomes the smallest one.
template <class T>
T saturated(double x) {
  constexpr auto kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  const bool above = x >= static_cast<double>(kHigh), inside = x > static_cast<double>(kLow);
  return above ? kHigh : inside ? static_cast<T>(x) : kLow;
}

// Sums of integers, of their sizes or squares, and functions of those. Where all additions are exact, their order does not
// matter; else they are compensated, but for some sums and means, which go in order.
template <class T>
class IntegerSums final : public Kernel {
 public:
  explicit IntegerSums(const Step& step)
      : reduction_(step),
        kind_(step.text("kind")),
        squares_(kind_ == "sum_square" || kind_ == "l2"),
        sizes_(kind_ == "l1") {
    require(step.output().type == step.input(0).type, "no native kernel for these types");
    require(squares_ || kind_ == "sum" || kind_ == "mean" || sizes_ || kind_ == "log_sum" || kind_ == "prod",
            "no native function of sums");
    size_ = step.input(0).elements;
    const std::vector<std::pair<bool, int64_t>> parts = AxisPattern(step, false).parts;
    const auto is = [&](std::initializer_list<bool> reduced) {
      return std::equal(parts.begin(), parts.end(), reduced.begin(), reduced.end(),
                        [](const auto& part, bool one) { return part.first == one; });
    };
    in_order_ = is({false, true}) && kind_ == "mean";
    in_order_ |= is({false, true, false}) && parts[0].second > 1;
    in_order_ |= is({true, false, true}) && parts[1].second > 1;
    in_order_ |= is({true, false}) && parts[0].second > kFew;
    in_order_ &= kind_ == "sum" || kind_ == "mean";
  }
  int64_t scratch_bytes(int threads) const override { return reduction_.scratch_bytes(threads); }
  bool packs(size_t input) const override { return input != 0; }

  void run(const Run& run) const override {
    std::atomic<bool> sure{true};
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    const auto one = [&](int64_t output, double total) {
      double result = total;
      if (kind_ == "mean") result = total / static_cast<double>(reduction_.count());
      if (kind_ == "l2") result = std::sqrt(total);
      if (kind_ == "log_sum") result = std::log(total);
      if (kind_ == "log_sum" && !is_sure(total, result)) sure.store(false, std::memory_order_relaxed);
      out[output] = saturated<T>(result);
    };
    const auto finish = [&](const double* totals, int64_t first, int64_t size) {
      for (int64_t i = 0; i < size; ++i) one(first + i, totals[i]);
    };
    if (kind_ == "prod") {
      reduction_.run<T, double>(run, Product(), false, finish);
    } else if (exact(reinterpret_cast<const T*>(run.inputs[0]))) {
      if (squares_) {
        reduction_.run<T, double>(run, Squares(), false, finish);
      } else if (sizes_) {
        reduction_.run<T, double>(run, Sizes(), false, finish);
      } else {
        reduction_.run<T, double>(run, Sum(), false, finish);
      }
    } else {
      reduction_.run_elements<T>(
          run, [](int64_t) { return Total{}; }, [&](Total total, T x) { return added(total, static_cast<double>(x)); },
          [&](int64_t output, Total total) { one(output, total.sum); });
    }
    if (!sure.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr int64_t kFew = 256;

  struct Sum {
    double start = 0;
    double operator()(double a, double b) const { return a + b; }
  };
  struct Sizes {
    double start = 0;
    double operator()(double a, double b) const { return a + std::fabs(b); }
  };
  struct Squares {
    double start = 0;
    double operator()(double a, double b) const { return a + b * b; }
  };
  struct Product {
    double start = 1;
    double operator()(double a, double b) const { return a * b; }
  };
  struct Total {
    double sum = 0, lost = 0;
  };

  Total added(const Total& total, double x) const {
    const double term = squares_ ? x * x : sizes_ ? std::fabs(x) : x;
    if (in_order_) return {total.sum + term, 0};
    const double summand = term - total.lost, following = total.sum + summand;
    return {following, (following - total.sum) - summand};
  }

  bool exact(const T* from) const {
    const int64_t most = (int64_t{1} << 53) / std::max<int64_t>(1, reduction_.count());
    const auto limit = static_cast<T>(std::min<int64_t>(
        squares_ ? static_cast<int64_t>(std::sqrt(static_cast<double>(most))) : most, std::numeric_limits<T>::max()));
    if (!squares_ && sizeof(T) == 4 && most > std::numeric_limits<int32_t>::max()) return true;
    bool beyond = false;
    for (int64_t i = 0; i < size_; ++i) beyond |= from[i] > limit || from[i] < -limit;
    return !beyond;
  }

  Reduction reduction_;
  std::string kind_;
  bool squares_, sizes_, in_order_ = false;
  int64_t size_ = 0;
};

// Powers of differences from the largest integer are integers, too: 1 and 0.
template <class T>
class IntegerLogSumExps final : public Kernel {
 public:
  explicit IntegerLogSumExps(const Step& step) : reduction_(step) {
    require(step.output().type == step.input(0).type, "no native kernel for these types");
  }
  bool packs(size_t input) const override { return input != 0; }

  void run(const Run& run) const override {
    struct Largest {
      T value = std::numeric_limits<T>::min();
      int64_t count = 0;  // of those that are as large
    };
    std::atomic<bool> sure{true};
    const auto element = [](const Largest& largest, T x) {
      if (x > largest.value) return Largest{x, 1};
      return Largest{largest.value, largest.count + (x == largest.value ? 1 : 0)};
    };
    reduction_.run_elements<T>(
        run, [](int64_t) { return Largest{}; }, element,
        [&](int64_t output, const Largest& largest) {
          const auto count = static_cast<double>(largest.count);
          const double logarithm = std::log(count);
          if (!is_sure(count, logarithm)) sure.store(false, std::memory_order_relaxed);
          reinterpret_cast<T*>(run.outputs[0])[output] = saturated<T>(logarithm + static_cast<double>(largest.value));
        });
    if (!sure.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  Reduction reduction_;
};

template <class T>
std::unique_ptr<Kernel> make_integer_sums(const Step& step) {
  if (step.text("kind") == "log_sum_exp") return std::make_unique<IntegerLogSumExps<T>>(step);
  return std::make_unique<IntegerSums<T>>(step);
}

}  // namespace

std::unique_ptr<Kernel> make_softmax_along(const Step& step, const CoreSet& cores, bool logarithm) {
  return std::make_unique<RealSoftmaxAlong>(step, cores, logarithm);
}

std::unique_ptr<Kernel> make_real_sum(const Step& step, const CoreSet&) {
  const std::string &rule = step.rule("real_sum"), &kind = step.text("kind");
  const Type type = step.input(0).type;
  if (rule == "binary64_trunc_saturate") {
    if (type == Type::s64) return make_integer_sums<int64_t>(step);
    return type == Type::s32 ? make_integer_sums<int32_t>(step) : nullptr;
  }
  const bool wide = rule == "binary64_packets_2";
  require(wide || rule == "binary32_packets_4", "no native rule for this slot");
  if (kind == "sum" || kind == "mean") {
    if (step.integers.count("alone") == 0 && AxisPattern(step).in_turn()) {
      if (wide) return std::make_unique<FunctionOfSums<double>>(step, kind == "mean");
      return std::make_unique<FunctionOfSums<float>>(step, kind == "mean");
    }
    const AxisPattern pattern(step);
    if (step.integers.count("alone") == 0 && pattern.parts.size() == 3 && pattern.parts[0].first) {
      if (wide) return std::make_unique<RunSums<double>>(step);
      return std::make_unique<RunSums<float>>(step);
    }
    if (wide) return std::make_unique<RealSums<double>>(step);
    return std::make_unique<RealSums<float>>(step);
  }
  if (kind == "log_sum_exp") {
    const std::vector<std::pair<bool, int64_t>> parts = AxisPattern(step).parts;
    if (std::count_if(parts.begin(), parts.end(), [](const auto& part) { return part.first; }) > 1) {
      if (wide) return std::make_unique<LogSumExpsApart<double>>(step);
      return std::make_unique<LogSumExpsApart<float>>(step);
    }
    if (wide) return std::make_unique<LogSumExps<double>>(step);
    return std::make_unique<LogSumExps<float>>(step);
  }
  if (wide) return std::make_unique<FunctionOfSums<double>>(step);
  return std::make_unique<FunctionOfSums<float>>(step);
}

}  // namespace bittrue

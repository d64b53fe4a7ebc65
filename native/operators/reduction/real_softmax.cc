#include "operators/reduction/softmax.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "arithmetic/elementary.h"
#include "arithmetic/fused.h"
#include "arithmetic/rational.h"
#include "arithmetic/rational_wide.h"
#include "arithmetic/short_functions.h"
#include "operators/elementwise/real_loops.h"
#include "operators/reduction/four_lanes.h"

namespace bittrue {
namespace {

// Number and length of rows that lie side by side and fill both sides.
[[gnu::cold]] std::pair<int64_t, int64_t> rows_of(const Step& step) {
  const Operand &in = step.input(0), &out = step.output();
  const std::vector<int64_t>& view = step.list("view");
  require(view.size() == 3 && view[0] > 0 && view[1] > 0 && view[2] == 1 && in.elements / view[1] == view[0] &&
              in.elements % view[1] == 0 && in.elements == out.elements && in.dense() && out.dense(),
          "rows must lie side by side and fill both sides");
  return {view[0], view[1]};
}

constexpr int64_t kParallelReals = 4000;

// Sums run from the first element to the last; with binary32_fused_16_lanes and binary32_fused_8_lanes in lanes.
class RealSoftmax final : public Kernel {
 public:
  RealSoftmax(const Step& step, bool logarithm) : logarithm_(logarithm) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == Type::f32 && out.type == Type::f32, "no native kernel for these types");
    const std::string& rule = step.rule("real_softmax");
    if (!logarithm) lanes_ = rule == "binary32_fused_16_lanes" ? 16 : rule == "binary32_fused_8_lanes" ? 8 : 0;
    require(lanes_ != 0 || rule == "binary32_in_order", "no native rule for this slot");
    std::tie(rows_, length_) = rows_of(step);
    if (!logarithm) beta_ = static_cast<float>(step.real("beta"));
  }

  void run(const Run& run) const override {
    const auto task = [&](int64_t row, int) {
      one(reinterpret_cast<const float*>(run.inputs[0]) + row * length_,
          reinterpret_cast<float*>(run.outputs[0]) + row * length_);
    };
    if (rows_ * length_ < kParallelReals) {
      for (int64_t row = 0; row < rows_; ++row) task(row, 0);
    } else {
      run.pool.parallel(rows_, task);
    }
    if (lanes_ != 8) return;
    // Which of several NaNs is kept depends on the order inside of vectors; the reference has it.
    bool nan = false;
    for (int64_t row = 0; row < rows_; ++row)
      nan |= std::isnan(reinterpret_cast<float*>(run.outputs[0])[row * length_]);
    if (nan) throw Undefined();
  }

 private:
  // Of two NaNs the first one stays; compilers are free to exchange the operands of an addition.
  static float plus(float sum, float x) { return std::isnan(sum) ? sum : sum + x; }

  void one(const float* in, float* out) const {
    if (lanes_ == 16) return in_lanes<16>(in, out);
    if (lanes_ == 8) return in_lanes<8>(in, out);
    float largest = std::numeric_limits<float>::lowest();
    for (int64_t i = 0; i < length_; ++i) largest = largest < in[i] ? in[i] : largest;
    float sum = 0.0f;
    if (logarithm_) {
      for (int64_t i = 0; i < length_; ++i) sum = plus(sum, arithmetic::exp(in[i] - largest));
      const float log_sum = arithmetic::log(sum);
      for (int64_t i = 0; i < length_; ++i) out[i] = in[i] - largest - log_sum;
      return;
    }
    for (int64_t i = 0; i < length_; ++i) {
      const float power = arithmetic::exp((in[i] - largest) * beta_);
      out[i] = power;
      sum = plus(sum, power);
    }
    for (int64_t i = 0; i < length_; ++i) out[i] /= sum;
  }

  template <int64_t kLanes>
  void in_lanes(const float* in, float* out) const {
    namespace fused = arithmetic::fused;
    // As NumPy's maximum: NaN wins.
    float largest = fused::flush(in[0]);
    for (int64_t i = 1; i < length_; ++i) {
      const float x = fused::flush(in[i]);
      if (!(largest >= x) && !std::isnan(largest)) largest = x;
    }
    float lanes[2][kLanes] = {};
    const int64_t in_turn = length_ / (4 * kLanes) * (4 * kLanes);
    for (int64_t i = 0; i < length_; ++i) {
      if (i == in_turn) fold(lanes[0], lanes[1], kLanes);
      out[i] = fused::exp_on_negative(fused::flush(in[i]) - largest);
      lanes[i < in_turn ? i / kLanes % 2 : 0][i % kLanes] += out[i];
    }
    if (length_ == in_turn) fold(lanes[0], lanes[1], kLanes);
    for (int64_t half = kLanes / 2; half > 0; half /= 2) fold(lanes[0], lanes[0] + half, half);
    if (std::isnan(lanes[0][0])) {
      std::fill(out, out + length_, first_nan(in));
      return;
    }
    const float inverse = 1.0f / lanes[0][0];
    for (int64_t i = 0; i < length_; ++i) out[i] = fused::flush(out[i] * inverse);
  }

  // What rows become that hold NaN, an infinity, or nothing but negative infinities.
  float first_nan(const float* in) const {
    const float* first =
        std::find_if(in, in + length_, [](float x) { return std::isnan(x) || (std::isinf(x) && x > 0); });
    return first != in + length_ && std::isnan(*first) ? *first + *first : arithmetic::fused::from_bits(0xFFC00000);
  }

  static void fold(float* to, const float* from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) to[i] += from[i];
  }

  bool logarithm_;
  int lanes_ = 0;  // 0: in order
  float beta_ = 1.0f;
  int64_t rows_ = 0, length_ = 1;
};

// binary32_rational_lanes_4, and with kFused binary32_fused_rational_lanes_4. Rows with NaN, or without a finite largest
// number, are left to the reference.
template <bool kFused>
class FoursSoftmax final : public Kernel {
 public:
  FoursSoftmax(const Step& step, bool logarithm) : logarithm_(logarithm) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == Type::f32 && out.type == Type::f32, "no native kernel for these types");
    std::tie(rows_, length_) = rows_of(step);
    if (!logarithm) beta_ = static_cast<float>(step.real("beta"));
  }

  int64_t scratch_bytes(int threads) const override { return logarithm_ ? threads * row_bytes() : 0; }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    std::atomic<bool> known{true};
    run.pool.parallel(rows_, rows_ * length_ < kParallelReals ? 1 : run.pool.threads(), [&](int64_t row, int worker) {
      const float* x = in + row * length_;
      float* y = out + row * length_;
      const bool is_known = logarithm_ ? logarithms(x, y, reinterpret_cast<float*>(run.scratch + worker * row_bytes()))
                                       : shares(x, y, row * length_);
      if (!is_known) known.store(false, std::memory_order_relaxed);
    });
    if (!known.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  float largest(const float* in) const { return *std::max_element(in, in + length_); }

  // Fours are those of all rows, which lie behind each other.
  bool shares(const float* in, float* out, int64_t begin) const {
    const int64_t end = begin + length_, fours = rows_ * length_ / 4 * 4;
    const int64_t whole = std::max(int64_t{0}, std::min(end, fours) - begin);
    const float most = largest(in);
    for (int64_t i = 0; i < whole; ++i) out[i] = arithmetic::rational::exp_of_any<kFused>((in[i] - most) * beta_);
    for (int64_t i = whole; i < length_; ++i) out[i] = arithmetic::exp((in[i] - most) * beta_);
    const float sum = sum_in_four_lanes<kFused>(out, length_, (4 - begin % 4) % 4), inverse = 1.0f / sum;
    for (int64_t i = 0; i < length_; ++i) out[i] *= inverse;
    return sum == sum;
  }

  bool logarithms(const float* in, float* out, float* powers) const {
    const int64_t whole = length_ / 4 * 4;
    const float most = largest(in);
    for (int64_t i = 0; i < length_; ++i) out[i] = in[i] - most;
    for (int64_t i = 0; i < whole; ++i) powers[i] = arithmetic::rational::exp_of_any<kFused>(out[i]);
    for (int64_t i = whole; i < length_; ++i) powers[i] = arithmetic::exp(out[i]);
    const float sum = sum_in_four_lanes<kFused>(powers, length_, 0), log_sum = arithmetic::log(sum);
    for (int64_t i = 0; i < length_; ++i) out[i] -= log_sum;
    return sum == sum;
  }

  int64_t row_bytes() const { return (4 * length_ + 63) / 64 * 64; }

  bool logarithm_;
  float beta_ = 1.0f;
  int64_t rows_ = 0, length_ = 1;
};

// binary32_short_8_lanes. Rows with NaN or infinity are left to the reference.
class HalfSoftmax final : public Kernel {
 public:
  explicit HalfSoftmax(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == Type::f16 && out.type == Type::f16, "no native kernel for these types");
    require(step.real("beta") == 1, "no native factor");
    std::tie(rows_, length_) = rows_of(step);
  }
  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const uint16_t*>(run.inputs[0]);
    auto* out = reinterpret_cast<uint16_t*>(run.outputs[0]);
    std::atomic<bool> known{true};
    run.pool.parallel(rows_, rows_ * length_ < kParallelReals ? 1 : run.pool.threads(), [&](int64_t row, int worker) {
      auto* own = reinterpret_cast<float*>(run.scratch + worker * worker_bytes());
      if (!one(in + row * length_, out + row * length_, own)) known.store(false, std::memory_order_relaxed);
    });
    if (!known.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  bool one(const uint16_t* in, uint16_t* out, float* powers) const {
    bool finite = true;
    float largest = std::numeric_limits<float>::lowest();
    for (int64_t i = 0; i < length_; ++i) {
      powers[i] = arithmetic::half_to_float(in[i]);
      finite &= std::isfinite(powers[i]);
      largest = largest < powers[i] ? powers[i] : largest;
    }
    if (!finite) return false;
    float lanes[8] = {};
    const int64_t whole = length_ / 8 * 8;
    for (int64_t i = 0; i < length_; ++i) powers[i] = arithmetic::short_functions::exp_on_negative(powers[i] - largest);
    for (int64_t i = 0; i < whole; ++i) lanes[i % 8] += powers[i];
    for (int64_t k = 0; k < 4; ++k) lanes[k] += lanes[k + 4];
    int64_t i = whole;
    for (int64_t count = 4; count > 0; count /= 2) {
      if (((length_ - whole) & count) == 0) continue;
      for (int64_t k = 0; k < count; ++k) lanes[k] += powers[i + k];
      i += count;
    }
    const float sum = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
    const float inverse = arithmetic::short_functions::half(1.0f / sum);
    for (int64_t k = 0; k < length_; ++k) {
      out[k] = arithmetic::float_to_half(arithmetic::short_functions::half(powers[k]) * inverse);
    }
    return true;
  }

  int64_t worker_bytes() const { return (4 * length_ + 63) / 64 * 64; }

  int64_t rows_ = 0, length_ = 1;
};

// binary64_in_pairs. Rows with NaN, or without a finite largest number, are left to the reference.
class WideSoftmax final : public Kernel {
 public:
  WideSoftmax(const Step& step, bool logarithm) : logarithm_(logarithm) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == Type::f64 && out.type == Type::f64, "no native kernel for these types");
    require(logarithm || step.real("beta") == 1, "no native factor");
    const std::vector<int64_t>& view = step.list("view");
    require(view.size() == 3 && view[0] > 0 && view[1] > 0 && view[2] > 0 &&
                in.elements / view[1] / view[2] == view[0] && in.elements % (view[1] * view[2]) == 0 &&
                in.elements == out.elements && in.dense() && out.dense(),
            "rows must fill both sides");
    inner_ = view[2], rows_ = view[0] * inner_, length_ = view[1];
  }
  // Rows that do not lie side by side are worked on in scratch memory.
  int64_t scratch_bytes(int threads) const override { return inner_ == 1 ? 0 : threads * worker_bytes(); }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const double*>(run.inputs[0]);
    auto* out = reinterpret_cast<double*>(run.outputs[0]);
    std::atomic<bool> known{true};
    run.pool.parallel(rows_, rows_ * length_ < kParallelReals ? 1 : run.pool.threads(), [&](int64_t row, int worker) {
      const bool odd_end = row == rows_ - 1 && rows_ * length_ % 2 != 0;
      const int64_t at = row / inner_ * length_ * inner_ + row % inner_;
      auto* own = reinterpret_cast<double*>(run.scratch + worker * worker_bytes());
      for (int64_t i = 0; inner_ != 1 && i < length_; ++i) own[i] = in[at + i * inner_];
      const double* from = inner_ == 1 ? in + at : own;
      if (!one(run, worker, from, inner_ == 1 ? out + at : own + length_, odd_end)) {
        known.store(false, std::memory_order_relaxed);
      }
      for (int64_t i = 0; inner_ != 1 && i < length_; ++i) out[at + i * inner_] = own[length_ + i];
    });
    if (!known.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr int64_t kPiece = 1024;

  bool one(const Run& run, int worker, const double* in, double* out, bool odd_end) const {
    double largest = in[0];
    bool numbers = true;
    for (int64_t i = 0; i < length_; ++i) {
      numbers &= in[i] == in[i];
      largest = largest < in[i] ? in[i] : largest;
    }
    if (!numbers || !std::isfinite(largest)) return false;
    // Lanes of pairs: of a single row four sets in turn.
    const int64_t sets = rows_ == 1 ? 4 : 1, whole = length_ / 2 * 2;
    double lanes[4][2] = {}, last = 0;
    for (int64_t begin = 0; begin < length_; begin += kPiece) {
      run.check(worker);
      const int64_t count = std::min(kPiece, length_ - begin);
      double powers[kPiece];
      for (int64_t i = 0; i < count; ++i) powers[i] = in[begin + i] - largest;
      if (logarithm_) std::copy_n(powers, count, out + begin);
      const bool ends = odd_end && begin + count == length_;
      const double difference = powers[count - 1];
      real_loops::wide_function(real_loops::WideFunction::exp, powers, powers, count);
      if (ends) powers[count - 1] = arithmetic::rational_wide::library_exp(difference);
      if (!logarithm_) std::copy_n(powers, count, out + begin);
      for (int64_t i = 0; i < count; i += 2) {
        if (begin + i == whole) {
          last = powers[i];
          break;
        }
        // Adding to 0 leaves the first powers as they are: none is -0.
        double* lane = lanes[(begin + i) / 2 % sets];
        lane[0] += powers[i], lane[1] += powers[i + 1];
      }
    }
    const int64_t used = std::min(sets, whole / 2);
    for (int64_t set = used - 1; set > 0; --set) {
      for (int64_t k = 0; k < 2; ++k) lanes[set - 1][k] += lanes[set][k];
    }
    double sum = lanes[0][0] + lanes[0][1];
    if (whole < length_) sum += last;
    if (!logarithm_) {
      for (int64_t i = 0; i < length_; ++i) out[i] /= sum;
      return true;
    }
    const double log_sum = arithmetic::rational_wide::library_log(std::max(sum, static_cast<double>(1e-20f)));
    for (int64_t i = 0; i < length_; ++i) out[i] -= log_sum;
    return true;
  }

  int64_t worker_bytes() const { return 16 * length_; }

  bool logarithm_;
  int64_t rows_ = 0, length_ = 1, inner_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> make_real_softmax(const Step& step, const CoreSet& cores, bool logarithm) {
  if (step.rule("real_softmax") == "binary64_in_pairs") return std::make_unique<WideSoftmax>(step, logarithm);
  if (step.rule("real_softmax") == "binary32_rational_lanes_4") {
    return std::make_unique<FoursSoftmax<false>>(step, logarithm);
  }
  if (step.rule("real_softmax") == "binary32_fused_rational_lanes_4") {
    return std::make_unique<FoursSoftmax<true>>(step, logarithm);
  }
  if (softmax_lanes(step) != 0) return make_softmax_along(step, cores, logarithm);
  return std::make_unique<RealSoftmax>(step, logarithm);
}

}  // namespace bittrue

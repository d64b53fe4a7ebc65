// lp_normalization: every row divided by its length: the last axis by the Euclidean one, or any axis by that or by the sum of
// magnitudes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/core/rescaling.h"
#include "operators/reduction/real_rows.h"
#include "rules/normalize.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

struct NormalizedRows {
  int64_t rows = 0, length = 0;

  explicit NormalizedRows(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.rank() >= 1 && in.elements > 0 && in.elements == out.elements && in.type == out.type && in.dense() &&
                out.dense(),
            "both sides must be dense and equal in shape");
    length = in.shape.back();
    rows = in.elements / length;
  }
};

using Rule = int64_t (*)(int64_t, const arithmetic::InverseRoot&);

class NormalizeBytes final : public Kernel {
 public:
  NormalizeBytes(const Step& step, Rule rule) : rows_(step), rule_(rule) {
    constexpr int64_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
    flip_ = flip_of(step.input(0).type);
    zero_point_ = step.integer("input_zero_point", -32000, 32000) + flip_;
    output_zero_point_ = step.integer("output_zero_point", kLow, kHigh);
    low_ = step.integer("low", kLow, kHigh);
    high_ = step.integer("high", kLow, kHigh);
  }

  void run(const Run& run) const override {
    run.pool.parallel(rows_.rows, [&](int64_t row, int) {
      const uint8_t* in = run.inputs[0] + row * rows_.length;
      uint8_t* out = run.outputs[0] + row * rows_.length;
      uint32_t squares = 0;
      for (int64_t i = 0; i < rows_.length; ++i) {
        const auto x = static_cast<int32_t>(in[i] - zero_point_);
        squares += static_cast<uint32_t>(x) * static_cast<uint32_t>(x);
      }
      const arithmetic::InverseRoot root = rules::inverse_length(static_cast<int32_t>(squares));
      if (rows_.length < 256) {
        for (int64_t i = 0; i < rows_.length; ++i) out[i] = stored(in[i], root);
        return;
      }
      uint8_t table[256];
      for (int byte = 0; byte < 256; ++byte) table[byte] = stored(byte, root);
      for (int64_t i = 0; i < rows_.length; ++i) out[i] = table[in[i]];
    });
  }

 private:
  uint8_t stored(int byte, const arithmetic::InverseRoot& root) const {
    const int64_t value = rule_(byte - zero_point_, root) + output_zero_point_;
    return static_cast<uint8_t>(std::min(std::max(value, low_), high_) + flip_);
  }

  NormalizedRows rows_;
  Rule rule_;
  int64_t flip_ = 0, zero_point_ = 0, output_zero_point_ = 0, low_ = 0, high_ = 0;
};

class NormalizeReal final : public Kernel {
 public:
  // Squares are rounded, or with `eights` those behind the last whole eight joined with their sum; NaN is the reference's
  // then.
  NormalizeReal(const Step& step, bool eights) : rows_(step), eights_(eights) {}

  void run(const Run& run) const override {
    for (int64_t row = 0; row < rows_.rows; ++row) {
      const auto* in = reinterpret_cast<const float*>(run.inputs[0]) + row * rows_.length;
      auto* out = reinterpret_cast<float*>(run.outputs[0]) + row * rows_.length;
      float squares = in[0] * in[0];  // from left to right
      const int64_t whole = eights_ ? rows_.length / 8 * 8 : rows_.length;
      for (int64_t i = 1; i < whole; ++i) {
        const float square = in[i] * in[i];
        squares = rules::keep_first_nan(squares + square, squares, square);
      }
      for (int64_t i = std::max<int64_t>(1, whole); i < rows_.length; ++i) squares = std::fma(in[i], in[i], squares);
      if (eights_ && !std::isfinite(squares)) throw Undefined();
      const float length = rules::length_or_epsilon(squares);
      for (int64_t i = 0; i < rows_.length; ++i) out[i] = rules::keep_first_nan(in[i] / length, in[i], length);
    }
  }

 private:
  NormalizedRows rows_;
  bool eights_;
};

// binary32_lanes, binary32_joined and binary64_running: along any axis, sums in order, of fused squares if joined; rows
// without a length become zeros.
template <class T>
class NormalizeAlong final : public Kernel {
 public:
  explicit NormalizeAlong(const Step& step) : magnitudes_(step.integer("p", 1, 2) == 1) {
    require_reals<T>(step);
    constexpr bool kWide = sizeof(T) == 8;
    const std::string& rule = step.rule("real_normalization");
    fused_ = rule == "binary32_joined";
    require(fused_ || rule == (kWide ? "binary64_running" : "binary32_lanes"), "no native rule for this slot");
    const Operand& in = step.input(0);
    require(in.elements > 0 && in.shape == step.output().shape, "there is nothing to do");
    const int64_t axis = step.integer("axis", 0, in.rank() - 1);
    for (int i = 0; i < in.rank(); ++i) (i < axis ? outer_ : i > axis ? inner_ : length_) *= in.shape[i];
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const T*>(run.inputs[0]);
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    const int64_t parts = (outer_ * inner_ + kTogether - 1) / kTogether;
    for_rows(run, parts, length_ * kTogether, [&](int64_t part, int) {
      // Several rows at once, whose sums do not wait for one another.
      const int64_t first = part * kTogether, count = std::min(kTogether, outer_ * inner_ - first);
      int64_t at[kTogether];
      T sums[kTogether] = {};
      for (int64_t r = 0; r < kTogether; ++r) {
        const int64_t row = std::min(first + r, outer_ * inner_ - 1);
        at[r] = row / inner_ * length_ * inner_ + row % inner_;
      }
      for (int64_t i = 0; i < length_; ++i) {
        for (int64_t r = 0; r < kTogether; ++r) {
          const T x = in[at[r] + i * inner_];
          if (magnitudes_) {
            sums[r] += std::fabs(x);
          } else {
            sums[r] = fused_ ? std::fma(x, x, sums[r]) : sums[r] + x * x;
          }
        }
      }
      bool numbers = true;
      for (int64_t r = 0; r < count; ++r) {
        const T length = magnitudes_ ? sums[r] : std::sqrt(sums[r]);
        const T* x = in + at[r];
        T* to = out + at[r];
        uint32_t odd = 0;
        for (int64_t i = 0; i < length_; ++i) {
          const T share = length == 0 ? T{0} : x[i * inner_] / length;
          odd |= share != share;
          to[i * inner_] = share;
        }
        numbers &= odd == 0;
      }
      return numbers;
    });
  }

 private:
  static constexpr int64_t kTogether = 8;
  bool magnitudes_, fused_ = false;
  int64_t outer_ = 1, length_ = 1, inner_ = 1;
};

std::unique_ptr<Kernel> make_lp_normalization(const Step& step, const CoreSet&) {
  const Type type = step.input(0).type;
  if (step.rules.count("real_normalization")) {
    if (type == Type::f64) return std::make_unique<NormalizeAlong<double>>(step);
    return std::make_unique<NormalizeAlong<float>>(step);
  }
  const std::string& rule = step.rule("normalize");
  const bool eights = rule == "binary32_divide_by_eights_then_fused";
  if (type == Type::f32 && (eights || rule == "binary32_divide")) return std::make_unique<NormalizeReal>(step, eights);
  if (!is_8bit(type)) return nullptr;
  if (rule == "q31_exponent_plus_7_two_step_up_away") {
    return std::make_unique<NormalizeBytes>(step, rules::q31_exponent_plus_7_two_step_up_away);
  }
  if (rule == "q31_exponent_plus_7_one_step_up") {
    return std::make_unique<NormalizeBytes>(step, rules::q31_exponent_plus_7_one_step_up);
  }
  if (rule == "q31_times_128_two_step_up_away") {
    return std::make_unique<NormalizeBytes>(step, rules::q31_times_128_two_step_up_away);
  }
  return nullptr;
}

BITTRUE_OPERATOR(lp_normalization, make_lp_normalization)

}  // namespace
}  // namespace bittrue

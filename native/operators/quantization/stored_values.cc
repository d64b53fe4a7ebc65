// Functions of quantized values that real numbers or 8 bits hold: 8-bit inputs by a table with one entry per value, sums by a table for each
// operand, averages with channels last, and real numbers that become quantized values of 8 bits.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/share.h"
#include "operators/core/registry.h"
#include "operators/core/window.h"
#include "operators/elementwise/add.h"
#include "operators/elementwise/logistic.h"
#include "operators/pooling/pools.h"
#include "operators/quantization/level_kernel.h"
#include "rules/rescale.h"

namespace bittrue {
namespace {

// Quantized values beyond this are limited anyway, and binary32 holds every integer and half up to here.
constexpr float kFar = 1048576.0f;

// Nearest integer, ties away from zero, of |x| <= kFar: the float below one half keeps numbers below a tie there.
inline int32_t nearest_away(float x) { return static_cast<int32_t>(x + std::copysign(0.49999997f, x)); }

// Ties to even: the unit in the last place is 1 at 1.5 * 2^23.
inline int32_t nearest_even(float x) {
  const float moved = x + 12582912.0f;
  return static_cast<int32_t>(moved - 12582912.0f);
}

inline float not_far(float x) { return std::min(std::max(x, -kFar), kFar); }

// Limits of a result of 8 bits, which its type holds.
struct Limits {
  int32_t low, high, flip;

  uint8_t stored(int64_t level) const {
    return static_cast<uint8_t>(std::min<int64_t>(std::max<int64_t>(level, low), high) + flip);
  }
};

Limits limits_of(const Step& step) {
  const Type type = step.output().type;
  require(is_8bit(type), "the result has no 8 bits");
  const int32_t flip = flip_of(type);
  const double low = step.real("low"), high = step.real("high");
  require(low >= -flip && high <= 255 - flip && low <= high && low == std::floor(low) && high == std::floor(high),
          "the limits are no values of the type");
  return {static_cast<int32_t>(low), static_cast<int32_t>(high), flip};
}

int64_t whole(double value, const char* what) {
  require(value == std::floor(value) && std::abs(value) <= 65536.0, what);
  return static_cast<int64_t>(value);
}

// The table of a step whose input has 8 bits. Entries ascend with the value, so they lie as stored bytes do.
std::unique_ptr<Kernel> from_table(const Step& step, const CoreSet& cores) {
  const Array& entries = step.array("table");
  if (step.output().type != Type::f32) return make_direct_table(step, cores, entries);
  require(is_8bit(step.input(0).type) && entries.type == Type::f32 && entries.count == 256,
          "one entry per 8-bit value is needed");
  std::array<float, 256> table;
  std::memcpy(table.data(), entries.data, sizeof table);
  return std::make_unique<WideTable<float>>(step, table);
}

// Finish: uint8_t operator()(int64_t sum) const.
template <class Finish>
class SumOfTables final : public BlockKernel {
 public:
  SumOfTables(const Step& step, const std::array<int64_t, 256>& first, const std::array<int64_t, 256>& second,
              Finish finish)
      : BlockKernel(step, 2), finish_(finish) {
    for (int byte = 0; byte < 256; ++byte) {
      first_[byte] = first[byte];
      second_[byte] = second[byte];
    }
  }

  std::string note() const override { return "a table for each operand"; }

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    for (int64_t i = 0; i < count; ++i) out[i] = finish_(first_[in[0][i]] + second_[in[1][i]]);
  }

  std::array<int64_t, 256> first_, second_;
  Finish finish_;
};

template <class Finish>
std::unique_ptr<Kernel> make_sum_of_tables(const Step& step, const std::array<int64_t, 256>& first,
                                           const std::array<int64_t, 256>& second, Finish finish) {
  return std::make_unique<SumOfTables<Finish>>(step, first, second, finish);
}

struct ZeroPoints {
  int64_t first, second, output;
};

ZeroPoints zero_points_of(const Step& step) {
  const Array& points = step.array("zero_points");
  require(points.count == 3, "three zero points are needed");
  const auto at = [&](int i) { return whole(static_cast<double>(points.integer(i)), "a zero point is out of range"); };
  return {at(0), at(1), at(2)};
}

rules::Multiplier multiplier_of(const Step& step, const std::string& prefix) {
  const rules::Multiplier m = step.multiplier(prefix);
  require(m.exponent >= -31 && m.exponent <= 30 && m.multiplier >= -INT32_MAX && m.multiplier <= INT32_MAX,
          "a multiplier is out of range");
  return m;
}

std::unique_ptr<Kernel> sum_by_shifts(const Step& step) {
  const Limits limits = limits_of(step);
  const ZeroPoints points = zero_points_of(step);
  std::array<int64_t, 256> tables[2];
  int64_t most = 0;
  for (int operand = 0; operand < 2; ++operand) {
    const rules::Multiplier m = multiplier_of(step, operand == 0 ? "first_" : "second_");
    const int64_t zero_point = operand == 0 ? points.first : points.second;
    require(m.exponent <= 0, "an operand is enlarged");
    int64_t largest = 0;
    for (int byte = 0; byte < 256; ++byte) {
      const int64_t moved = value_of_byte(step.input(operand).type, byte) - zero_point;
      require(moved >= -2048 && moved < 2048, "a quantized value leaves 32 bits when it is shifted");
      tables[operand][byte] = rules::q31_two_step_up_away(moved * 1048576, m);
      largest = std::max(largest, std::abs(tables[operand][byte]));
    }
    most += largest;
  }
  const rules::Multiplier output = multiplier_of(step, "output_");
  require((most << std::max(output.exponent, 0)) <= INT32_MAX, "a sum leaves 32 bits");
  return make_sum_of_tables(step, tables[0], tables[1], [limits, output, points](int64_t sum) {
    return limits.stored(rules::q31_two_step_up_away(sum, output) + points.output);
  });
}

std::unique_ptr<Kernel> sum_of_21_bits(const Step& step) {
  const Limits limits = limits_of(step);
  const ZeroPoints points = zero_points_of(step);
  const Array &multipliers = step.array("multipliers"), &shift = step.array("right_shift");
  require(multipliers.count == 2 && shift.count == 1, "two multipliers are needed");
  const int64_t bits = shift.integer(0);
  require(bits >= 0 && bits <= 30, "a shift is out of range");
  std::array<int64_t, 256> tables[2];
  for (int operand = 0; operand < 2; ++operand) {
    const int64_t m = multipliers.integer(operand);
    require(m >= 0 && m <= INT32_MAX, "a multiplier is out of range");
    for (int byte = 0; byte < 256; ++byte) {
      const int64_t zero_point = operand == 0 ? points.first : points.second;
      tables[operand][byte] = (value_of_byte(step.input(operand).type, byte) - zero_point) * m;
    }
  }
  const float unit = std::ldexp(1.0f, -static_cast<int>(bits));
  return make_sum_of_tables(step, tables[0], tables[1], [limits, unit, points](int64_t sum) {
    return limits.stored(nearest_away(not_far(static_cast<float>(sum) * unit)) + points.output);
  });
}

// How many taps of a window count, down and across.
class WindowCounts {
 public:
  WindowCounts(const Step& step, const Window& window) : window_(window), padding_(step.text("counted") == "padded") {
    require(padding_ || step.text("counted") == "inside", "no native count");
    for (int64_t y = 0; y < window.out_h; ++y) require(rows(y) > 0, "a window is empty");
    for (int64_t x = 0; x < window.out_w; ++x) require(columns(x) > 0, "a window is empty");
  }

  int64_t rows(int64_t y) const {
    const Window& w = window_;
    return count(y, w.stride_h, w.pad_top, w.filter_h, w.in_h, w.pad_bottom);
  }
  int64_t columns(int64_t x) const {
    const Window& w = window_;
    return count(x, w.stride_w, w.pad_left, w.filter_w, w.in_w, w.pad_right);
  }

 private:
  int64_t count(int64_t at, int64_t stride, int64_t before, int64_t taps, int64_t dimension, int64_t after) const {
    const int64_t start = at * stride - before, end = std::min(start + taps, dimension + after);
    return padding_ ? end - start : std::min(end, dimension) - std::max<int64_t>(start, 0);
  }

  Window window_;
  bool padding_;
};

// What the plan would have encoded: a significand of 31 bits, ties away from zero.
rules::Multiplier encoded(double real) {
  int exponent = 0;
  const double significand = std::round(std::frexp(real, &exponent) * 2147483648.0);
  require(significand < 2147483648.0, "the multiplier has no fixed-point form");
  return {exponent < -31 ? 0 : static_cast<int64_t>(significand), exponent < -31 ? 0 : exponent, 0.0};
}

int64_t divide_away(int64_t value, int64_t count) {
  return value > 0 ? (value + count / 2) / count : (value - count / 2) / count;
}

// Sums by channel over what a window without gaps holds of an image, row by row; how many pixels that are.
template <class Sample, class Sum>
int64_t add_taps(const Window& w, const Sample* image, int64_t y, int64_t x, Sum* sums) {
  std::fill(sums, sums + w.in_c, Sum{0});
  const int64_t top = y * w.stride_h - w.pad_top, left = x * w.stride_w - w.pad_left;
  const int64_t first = std::max<int64_t>(left, 0), end = std::min(left + w.filter_w, w.in_w);
  int64_t inside = 0;
  for (int64_t line = std::max<int64_t>(top, 0); line < std::min(top + w.filter_h, w.in_h); ++line) {
    for (int64_t column = first; column < end; ++column, ++inside) {
      const Sample* tap = image + (line * w.in_w + column) * w.in_c;
      for (int64_t c = 0; c < w.in_c; ++c) sums[c] += tap[c];
    }
  }
  return inside;
}

enum class Average { two_step, even, away, equal_scales, quotient };

class AverageOfLevels final : public Kernel {
 public:
  explicit AverageOfLevels(const Step& step)
      : window_(read_window(step)), counts_(step, window_), limits_(limits_of(step)) {
    const std::string& rule = step.rule("window_levels");
    const bool even = rule == "binary32_over_product_even", away = rule == "binary32_over_product_away";
    require(even || away || rule == "q31_two_step_then_away", "no native rule for this slot");
    require(step.integer("channels_last", 0, 1) != 0, "channels are not last");
    const Operand &in = step.input(0), &out = step.output();
    require(is_8bit(in.type) && in.dense() && out.dense() && window_.in_c == window_.out_c,
            "no native kernel for these types");
    require(window_.dilation_h == 1 && window_.dilation_w == 1, "windows have gaps");
    // Sums and what is subtracted from them are integers that binary32 holds.
    require(window_.filter_h <= 128 && window_.filter_w <= 128, "a window is too large");
    flip_ = flip_of(in.type);
    input_zero_point_ = whole(step.real("input_zero_point"), "a zero point is out of range");
    output_zero_point_ = whole(step.real("output_zero_point"), "a zero point is out of range");
    require(std::abs(input_zero_point_) <= 512, "a zero point is out of range");
    const double input = step.real("input_scale"), output = step.real("output_scale");
    require(input > 1e-30 && output > 1e-30 && input < 1e30 && output < 1e30, "a scale is out of range");
    input_scale_ = static_cast<float>(input), output_scale_ = static_cast<float>(output);
    require(std::isfinite(input_scale_ / output_scale_), "a scale is out of range");
    rule_ = even ? Average::even : away ? Average::away : input == output ? Average::equal_scales : Average::two_step;
    if (rule_ == Average::two_step) multiplier_ = encoded(input / output);
    // |sum - zero point * count| < 2^10 * 2^14.
    require(multiplier_.exponent <= 7, "a sum leaves 32 bits");
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }
  std::string note() const override { return "sums of rows"; }

  void run(const Run& run) const override {
    const int64_t rows = window_.batch * window_.out_h;
    const auto row = [&](int64_t task, int worker) {
      auto* sums = reinterpret_cast<int32_t*>(run.scratch + worker * worker_bytes());
      const int64_t n = task / window_.out_h, y = task % window_.out_h;
      for (int64_t x = 0; x < window_.out_w; ++x) {
        one(run.inputs[0] + n * window_.in_h * window_.in_w * window_.in_c, y, x, sums,
            run.outputs[0] + (task * window_.out_w + x) * window_.in_c);
      }
    };
    run.pool.parallel(rows, rows * window_.out_w * window_.in_c * window_.taps() < 40000 ? 1 : run.pool.threads(), row);
  }

 private:
  int64_t worker_bytes() const { return round_up(std::max<int64_t>(1, window_.in_c) * 4, 64); }

  void one(const uint8_t* image, int64_t y, int64_t x, int32_t* sums, uint8_t* out) const {
    const int64_t channels = window_.in_c, inside = add_taps(window_, image, y, x, sums);
    const int64_t taps = counts_.rows(y) * counts_.columns(x);
    const int64_t flipped = flip_ * inside, moved = flipped + input_zero_point_ * taps;
    const float factor = input_scale_ / (output_scale_ * static_cast<float>(taps));
    for (int64_t c = 0; c < channels; ++c) {
      int64_t level;
      switch (rule_) {
        case Average::equal_scales: level = divide_away(sums[c] - flipped, taps); break;
        case Average::two_step:
          level = divide_away(rules::q31_two_step_up_away(sums[c] - moved, multiplier_), taps) + output_zero_point_;
          break;
        default: {
          const float product = not_far(static_cast<float>(sums[c] - moved) * factor);
          level = (rule_ == Average::even ? nearest_even(product) : nearest_away(product)) + output_zero_point_;
        }
      }
      out[c] = limits_.stored(level);
    }
  }

  Window window_;
  WindowCounts counts_;
  Limits limits_;
  Average rule_ = Average::even;
  rules::Multiplier multiplier_{};
  float input_scale_ = 1, output_scale_ = 1;
  int64_t input_zero_point_ = 0, output_zero_point_ = 0;
  int32_t flip_ = 0;
};

// The same of quantized values that real numbers hold, which are added up in binary32, row by row.
class AverageOfReals final : public Kernel {
 public:
  explicit AverageOfReals(const Step& step) : window_(window_of(step)), counts_(step, window_), store_(step) {
    const std::string& rule = step.rule("window_levels");
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == Type::f32 && in.dense() && out.dense() && window_.in_c == window_.out_c,
            "no native kernel for these types");
    require(window_.dilation_h == 1 && window_.dilation_w == 1, "windows have gaps");
    item_ = type_bytes(out.type);
    const double input = step.real("input_scale"), output = step.real("output_scale");
    input_scale_ = static_cast<float>(input), output_scale_ = static_cast<float>(output);
    input_zero_point_ = whole(step.real("input_zero_point"), "a zero point is out of range");
    output_zero_point_ = whole(step.real("output_zero_point"), "a zero point is out of range");
    if (rule == "binary32_over_product_even") {
      rule_ = Average::even;
    } else if (rule == "binary32_over_product_away") {
      rule_ = Average::away;
    } else if (rule == "binary32_quotient") {
      rule_ = Average::quotient;
    } else {
      require(rule == "q31_two_step_then_away", "no native rule for this slot");
      rule_ = input == output ? Average::equal_scales : Average::two_step;
      require(input > 1e-30 && output > 1e-30 && input < 1e30 && output < 1e30, "a scale is out of range");
      if (rule_ == Average::two_step) multiplier_ = encoded(input / output);
      require(multiplier_.exponent <= 30, "a sum leaves 32 bits");
    }
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }
  std::string note() const override { return "sums of rows"; }

  void run(const Run& run) const override {
    std::atomic<bool> all{true};
    const int64_t rows = window_.batch * window_.out_h, channels = window_.in_c;
    const auto row = [&](int64_t task, int worker) {
      auto* sums = reinterpret_cast<float*>(run.scratch + worker * worker_bytes());
      const int64_t n = task / window_.out_h, y = task % window_.out_h;
      const auto* image = reinterpret_cast<const float*>(run.inputs[0]) + n * window_.in_h * window_.in_w * channels;
      for (int64_t x = 0; x < window_.out_w; ++x) {
        add_taps(window_, image, y, x, sums);
        const bool defined = finish(counts_.rows(y) * counts_.columns(x), sums);
        uint8_t* out = run.outputs[0] + (task * window_.out_w + x) * channels * item_;
        if (!store_.store(sums, out, channels) || !defined) all.store(false, std::memory_order_relaxed);
      }
    };
    run.pool.parallel(rows, rows * window_.out_w * channels * window_.taps() < 40000 ? 1 : run.pool.threads(), row);
    if (!all.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  // Planes of channels that come first are images of one channel.
  static Window window_of(const Step& step) {
    if (step.integer("channels_last", 0, 1) != 0) return read_window(step);
    Operand in = step.input(0), out = step.output();
    for (Operand* operand : {&in, &out}) {
      require(operand->rank() == 4 && operand->dense(), "images have four axes");
      const std::vector<int64_t>& shape = operand->shape;
      operand->shape = {shape[0] * shape[1], shape[2], shape[3], 1};
    }
    Step planes = step;
    planes.inputs[0] = &in, planes.outputs[0] = &out;
    return read_window(planes);
  }
  int64_t worker_bytes() const { return round_up(std::max<int64_t>(1, window_.in_c) * 4, 64); }

  // False where a sum has no defined average.
  bool finish(int64_t taps, float* sums) const {
    const int64_t channels = window_.in_c;
    const auto count = static_cast<float>(taps), moved = static_cast<float>(input_zero_point_ * taps);
    if (rule_ == Average::quotient) {
      for (int64_t c = 0; c < channels; ++c) sums[c] = sums[c] / count;
      return true;
    }
    if (rule_ == Average::even || rule_ == Average::away) {
      const float factor = input_scale_ / (output_scale_ * count), offset = static_cast<float>(output_zero_point_);
      for (int64_t c = 0; c < channels; ++c) {
        const float product = (sums[c] - moved) * factor;
        sums[c] = (rule_ == Average::even ? rules::whole_even(product) : rules::whole_away(product)) + offset;
      }
      return true;
    }
    bool all = true;
    for (int64_t c = 0; c < channels; ++c) {
      const float total = std::trunc(sums[c]);
      const bool fits = std::fabs(total) < 2147483648.0f;
      all &= fits;
      int64_t acc = fits ? static_cast<int64_t>(total) : 0;
      if (rule_ == Average::two_step) {
        acc -= input_zero_point_ * taps;
        const bool inside = std::abs(acc) <= INT32_MAX >> std::max(multiplier_.exponent, 0);
        all &= inside;
        acc = divide_away(inside ? rules::q31_two_step_up_away(acc, multiplier_) : 0, taps) + output_zero_point_;
      } else {
        acc = divide_away(acc, taps);
      }
      sums[c] = static_cast<float>(acc);
    }
    return all;
  }

  Window window_;
  WindowCounts counts_;
  LevelStore store_;
  Average rule_ = Average::quotient;
  rules::Multiplier multiplier_{};
  float input_scale_ = 1, output_scale_ = 1;
  int64_t input_zero_point_ = 0, output_zero_point_ = 0, item_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> make_level_table(const Step& step, const CoreSet& cores) {
  return step.has_array("table") ? from_table(step, cores) : nullptr;
}

std::unique_ptr<Kernel> make_add_levels(const Step& step) {
  const Operand &first = step.input(0), &second = step.input(1), &out = step.output();
  const bool bytes = is_8bit(first.type) && is_8bit(second.type) && is_8bit(out.type);
  if (!bytes || first.shape != out.shape || second.shape != out.shape || step.rules.count("levels")) {
    return make_sum_of_levels(step);
  }
  const std::string& rule = step.rule("level_sum");
  if (rule == "q31_left_20_two_step") return sum_by_shifts(step);
  require(rule == "binary32_of_21_bits_away", "no native rule for this slot");
  return sum_of_21_bits(step);
}

std::unique_ptr<Kernel> make_average_of_levels(const Step& step) {
  if (is_8bit(step.input(0).type) && is_8bit(step.output().type) && step.rule("window_levels") != "binary32_quotient") {
    return std::make_unique<AverageOfLevels>(step);
  }
  return std::make_unique<AverageOfReals>(step);
}

}  // namespace bittrue

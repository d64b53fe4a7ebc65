#include <algorithm>
#include <limits>
#include <string>

#include "arithmetic/fixed_point.h"
#include "operators/pooling/pools.h"
#include "operators/pooling/scaled_numbers.h"
#include "operators/pooling/window_axes.h"

namespace bittrue {
namespace {

// Averages of integers by their rules, tap by tap: 32-bit ones, padding that counts, taps apart, channels first, three axes.
template <class In>
class AverageOfAny final : public Kernel {
 public:
  explicit AverageOfAny(const Step& step) : w_(step) {
    const Operand &in = step.input(0), &out = step.output();
    require(type_bytes(in.type) == sizeof(In) && step.rule("accumulate") == "s32_wrap",
            "no native kernel for these types");
    const std::string& rule = step.rule("average");
    require(rule == "integer_trunc" || rule == "integer_half_away" || rule == "integer_half_up",
            "no native rule for this slot");
    rule_ = rule == "integer_trunc" ? Rule::trunc : rule == "integer_half_up" ? Rule::half_up : Rule::half_away;
    in_flip_ = flip_of(in.type);
    const std::string& counted = step.text("counted");
    require(counted == "inside" || counted == "padded", "taps are counted in another way");
    counts_padding_ = counted == "padded";
    constexpr int64_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
    low_ = step.integer("low", kLow, kHigh), high_ = step.integer("high", kLow, kHigh);
    flip_ = flip_of(out.type), bytes_ = type_bytes(out.type);
    require(is_8bit(out.type) || out.type == Type::s16 || out.type == Type::s32, "no native kernel for these types");
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const In*>(run.inputs[0]);
    const int64_t lines = w_.lines(), columns = w_.w().out;
    run.pool.parallel(w_.planes * lines, [&](int64_t task, int) {
      const int64_t z = task % lines / w_.h().out, y = task % w_.h().out;
      const In* plane = in + task / lines * w_.plane();
      for (int64_t x = 0; x < columns; ++x) {
        const int64_t count = std::max<int64_t>(1, counted(w_.d(), z) * counted(w_.h(), y) * counted(w_.w(), x));
        for (int64_t c = 0; c < w_.inner; ++c) {
          uint32_t total = 0;
          w_.each_tap(plane, z, y, x, [&](const In* pixel) { total += static_cast<uint32_t>(pixel[c] - in_flip_); });
          keep(run.outputs[0], (task * columns + x) * w_.inner + c,
               std::clamp(average(static_cast<int32_t>(total), count), low_, high_));
        }
      }
    });
  }

 private:
  enum class Rule : uint8_t { trunc, half_away, half_up };

  int64_t counted(const WindowAxis& axis, int64_t output) const {
    return counts_padding_ ? axis.last(output, axis.size + axis.after) : axis.inside(output);
  }

  int64_t average(int64_t total, int64_t count) const {
    const int64_t half = count >> 1;
    if (rule_ == Rule::trunc) return total / count;
    if (rule_ == Rule::half_away) return arithmetic::wrap_s32(total + (total > 0 ? half : -half)) / count;
    const int64_t moved = total + half, whole = moved / count;
    return whole - (moved % count < 0 ? 1 : 0);
  }

  void keep(uint8_t* out, int64_t i, int64_t value) const {
    if (bytes_ == 1) {
      out[i] = static_cast<uint8_t>(value + flip_);
    } else if (bytes_ == 2) {
      reinterpret_cast<int16_t*>(out)[i] = static_cast<int16_t>(value);
    } else {
      reinterpret_cast<int32_t*>(out)[i] = static_cast<int32_t>(value);
    }
  }

  WindowAxes w_;
  int64_t low_ = 0, high_ = 0;
  Rule rule_ = Rule::trunc;
  bool counts_padding_ = false;
  int flip_ = 0, in_flip_ = 0, bytes_ = 4;
};

// Averages in another scale, of windows that miss the image, too.
template <bool kFused>
class ScaledAverageOfAny final : public Kernel {
 public:
  explicit ScaledAverageOfAny(const Step& step) : w_(step), numbers_(step), flip_(flip_of(step.input(0).type)) {
    require(is_8bit(step.input(0).type) && step.input(0).type == step.output().type,
            "no native kernel for these types");
    require(step.rule("accumulate") == "s32_wrap" && w_.taps() <= int64_t{1} << 21, "a window is too large");
  }

  void run(const Run& run) const override {
    const int64_t lines = w_.lines(), columns = w_.w().out;
    run.pool.parallel(w_.planes * lines, [&](int64_t task, int) {
      const int64_t z = task % lines / w_.h().out, y = task % w_.h().out;
      const uint8_t* plane = run.inputs[0] + task / lines * w_.plane();
      for (int64_t x = 0; x < columns; ++x) {
        const int64_t inside = w_.d().inside(z) * w_.h().inside(y) * w_.w().inside(x);
        const auto average = numbers_.average(std::max<int64_t>(1, inside));
        uint8_t* out = run.outputs[0] + (task * columns + x) * w_.inner;
        for (int64_t c = 0; c < w_.inner; ++c) {
          int64_t total = -(numbers_.input_zero_point + flip_) * inside;
          w_.each_tap(plane, z, y, x, [&](const uint8_t* pixel) { total += pixel[c]; });
          out[c] = static_cast<uint8_t>(average(static_cast<int32_t>(total)) + flip_);
        }
      }
    });
  }

 private:
  WindowAxes w_;
  ScaledNumbers<kFused> numbers_;
  int flip_;
};

}  // namespace

std::unique_ptr<Kernel> make_average_of_any(const Step& step) {
  if (step.rules.count("window_average")) {
    const std::string& rule = step.rule("window_average");
    if (rule == "q24_all_taps_away") return std::make_unique<ScaledAverageOfAny<false>>(step);
    require(rule == "binary32_fused_inside_even", "no native rule for this slot");
    return std::make_unique<ScaledAverageOfAny<true>>(step);
  }
  const Type type = step.input(0).type;
  if (is_8bit(type)) return std::make_unique<AverageOfAny<uint8_t>>(step);
  if (type == Type::s16) return std::make_unique<AverageOfAny<int16_t>>(step);
  return std::make_unique<AverageOfAny<int32_t>>(step);
}

}  // namespace bittrue

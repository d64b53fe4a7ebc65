// quantize and dequantize with scales and zero points that are operands, for types and rules that have no loop of their own:
// by way of binary64, which holds all operands.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "operators/core/any_type.h"
#include "operators/quantization/quantize.h"
#include "operators/quantization/slices.h"
#include "rules/quotient.h"
#include "rules/to_integer.h"

namespace bittrue {
namespace {

std::vector<double> numbers_of(const Array& array, int64_t count) {
  require(array.count == count, "one scale per slice is needed");
  const bool real = array.type == Type::f32 || array.type == Type::f64;
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) {
    numbers.push_back(real ? array.real(i) : static_cast<double>(array.integer(i)));
  }
  return numbers;
}

// Scales and zero points, one each per slice.
class AnySlices {
 public:
  explicit AnySlices(const Step& step) : walk_(step), rule_(step.rule("zero_points")) {
    require(rule_ == "used" || rule_ == "zero" || rule_ == "ignored", "no native rule for this slot");
    if (step.integer("late", 0, 1) == 0) {
      scales_ = numbers_of(step.array("scales"), walk_.count);
      points_ = numbers_of(step.array("zero_points"), walk_.count);
      return;
    }
    read(step.input(1), given_scales_);
    if (step.has_input(2)) read(step.input(2), given_points_);
  }

  const SliceWalk& walk() const { return walk_; }
  int64_t scratch_bytes() const { return given_scales_ ? 16 * walk_.count : 0; }
  bool late() const { return given_scales_.has_value(); }

  // Throws Undefined where a zero point must be 0 and is not.
  void values(const Run& run, const double** scales, const double** points) const {
    *scales = scales_.data(), *points = points_.data();
    if (!given_scales_) return;
    auto *some = reinterpret_cast<double*>(run.scratch), *others = some + walk_.count;
    given_scales_->reals(run.inputs[1], some, walk_.count);
    std::fill_n(others, walk_.count, 0.0);
    if (given_points_ && rule_ != "ignored") given_points_->reals(run.inputs[2], others, walk_.count);
    for (int64_t i = 0; i < walk_.count && rule_ == "zero"; ++i) {
      if (others[i] != 0 || std::signbit(others[i])) throw Undefined();
    }
    *scales = some, *points = others;
  }

 private:
  void read(const Operand& given, std::optional<AnyReader>& reader) const {
    require(given.dense() && given.elements == walk_.count, "one scale per slice is needed");
    reader.emplace(given.type);
  }

  SliceWalk walk_;
  std::string rule_;
  std::vector<double> scales_, points_;
  std::optional<AnyReader> given_scales_, given_points_;
};

// A loop over the elements of stretches; Part: void operator()(const uint8_t* in, first, slice, step, count, out).
class AnyLinear : public Kernel {
 public:
  explicit AnyLinear(const Step& step)
      : slices_(step), from_(step.input(0).type), out_bytes_(type_bytes(step.output().type)) {}

  void run(const Run& run) const override {
    const double *scales = nullptr, *points = nullptr;
    slices_.values(run, &scales, &points);
    slices_.walk().run(run.pool, [&](int64_t first, int64_t slice, int64_t count) {
      const int64_t step = slices_.walk().apart ? 1 : 0;
      for (int64_t i = 0; i < count; i += kPart) {
        const int64_t part = std::min(kPart, count - i);
        double x[kPart];
        from_.reals(run.inputs[0] + (first + i) * from_.bytes(), x, part);
        store(x, scales + slice + i * step, points + slice + i * step, step, first + i,
              run.outputs[0] + (first + i) * out_bytes_, part);
      }
    });
  }
  int64_t scratch_bytes(int) const override { return slices_.scratch_bytes(); }
  bool packs(size_t input) const override { return input != 0 && !slices_.late(); }

 protected:
  static constexpr int64_t kPart = 512;

  // Results of x, from element `first` on; element i has scale and zero point i * step.
  virtual void store(const double* x, const double* scales, const double* points, int64_t step, int64_t first,
                     uint8_t* out, int64_t count) const = 0;

  AnySlices slices_;
  AnyReader from_;
  int64_t out_bytes_;
};

class AnyQuantize final : public AnyLinear {
 public:
  explicit AnyQuantize(const Step& step) : AnyLinear(step) {
    require(rules::find_rule(step.rule("quotient"), quotient_), "no native rule for this slot");
    const Type to = step.output().type;
    if (!is_integer(to)) {
      eight_ = step.text("dtype").rfind("f8", 0) == 0;
      pointed_ = step.integer("zero_point", 0, 1) != 0 && step.rule("zero_points") == "used";
      reals_.emplace(to, step.rule("narrow"), false);
      return;
    }
    require(rules::find_rule(step.rule("to_integer"), rule_), "no native rule for this slot");
    has_tail_ = step.rules.count("to_integer_tail") != 0;
    require(!has_tail_ || rules::find_rule(step.rule("to_integer_tail"), tail_), "no native rule for this slot");
    low_ = step.integer("low", INT32_MIN, INT32_MAX), high_ = step.integer("high", low_, INT32_MAX);
    integers_.emplace(to);
  }

 private:
  void store(const double* x, const double* scales, const double* points, int64_t step, int64_t first, uint8_t* out,
             int64_t count) const override {
    double quotients[kPart];
    for (int64_t i = 0; i < count; ++i) quotients[i] = rules::divide(quotient_, x[i], scales[i * step]);
    if (reals_) {
      for (int64_t i = 0; i < count && pointed_; ++i) {
        // Zeros keep their signs where nothing is added; narrower types always add.
        const double point = points[i * step];
        if (eight_ && point == 0) continue;
        // Of two NaNs the first one stays, whichever way a compiler turns the sum.
        const double sum = std::isnan(quotients[i]) ? quotients[i] : quotients[i] + point;
        quotients[i] = rules::to_precision(quotient_, sum);
      }
      return reals_->store(quotients, out, count);
    }
    int64_t values[kPart];
    for (int64_t i = 0; i < count; ++i) {
      const rules::ToIntegerRule rule = has_tail_ && alone(first + i) ? tail_ : rule_;
      values[i] = rules::to_integer(rule, quotients[i], static_cast<int64_t>(points[i * step]), low_, high_);
    }
    if (integers_) integers_->store(values, out, count);
  }

  // Whether an element shares no pair, of places 2k and 2k + 1, with a neighbour of its own scale.
  bool alone(int64_t element) const {
    const SliceWalk& walk = slices_.walk();
    if (walk.apart) return true;
    const SliceWalk::Range range = walk.range_of(element);
    return element % 2 == 0 ? element + 1 == range.end : element == range.begin;
  }

  rules::QuotientRule quotient_ = rules::QuotientRule::binary32;
  rules::ToIntegerRule rule_ = rules::ToIntegerRule::clamp_even, tail_ = rules::ToIntegerRule::clamp_even;
  bool has_tail_ = false, eight_ = false, pointed_ = false;
  int64_t low_ = 0, high_ = 0;
  std::optional<IntegerWriter> integers_;
  std::optional<RealWriter> reals_;
};

class AnyDequantize final : public AnyLinear {
 public:
  explicit AnyDequantize(const Step& step)
      : AnyLinear(step), narrow_(step.rule("narrow")), reals_(step.output().type, narrow_, false) {
    const std::string& rule = step.rule("dequantize");
    odd_ = rule == "exact_multiply_odd";
    require(odd_ || rule == "binary32_multiply", "no native rule for this slot");
    if (step.output().type != Type::f32) return;
    limited_ = narrow_ == "even_saturate";
    require(limited_ || narrow_ == "even_overflow", "no native rule for this slot");
  }

 private:
  void store(const double* x, const double* scales, const double* points, int64_t step, int64_t, uint8_t* out,
             int64_t count) const override {
    double results[kPart];
    for (int64_t i = 0; i < count; ++i) {
      const double scale = scales[i * step], point = points[i * step];
      const double result = odd_ ? rules::exact_multiply_odd(x[i], scale, point)
                                 : rules::binary32_multiply_any(x[i], static_cast<float>(scale), point);
      constexpr double kMost = std::numeric_limits<float>::max();
      results[i] = limited_ && result == result ? std::min(std::max(result, -kMost), kMost) : result;
    }
    reals_.store(results, out, count);
  }

  std::string narrow_;
  RealWriter reals_;
  bool odd_ = false, limited_ = false;
};

}  // namespace

std::unique_ptr<Kernel> make_any_quantize(const Step& step) { return std::make_unique<AnyQuantize>(step); }

std::unique_ptr<Kernel> make_any_dequantize(const Step& step) { return std::make_unique<AnyDequantize>(step); }

}  // namespace bittrue

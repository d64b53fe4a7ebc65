// Functions and sums of quantized values that real numbers hold (src/bittrue/operators/elementwise/level_functions.py and
// stored_sums.py): in real numbers, or in integers where a rule says so.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "arithmetic/hyperbolic.h"
#include "operators/elementwise/add.h"
#include "operators/elementwise/logistic.h"
#include "operators/quantization/level_kernel.h"
#include "rules/rescale.h"

namespace bittrue {
namespace {

// Function: void operator()(float* real, int64_t count) const, in place.
template <class Function>
class LevelFunction final : public LevelKernel {
 public:
  LevelFunction(const Step& step, Function function)
      : LevelKernel(step, 1), real_(real_levels_of(step, "input")), levels_(levels_of(step)), function_(function) {}

 private:
  bool levels(const float* const* in, float* out, int64_t count) const override {
    std::memcpy(out, in[0], static_cast<size_t>(count) * sizeof *out);
    real_.apply(out, count);
    function_(out, count);
    levels_.apply(out, count);
    return true;
  }

  rules::RealLevels real_;
  rules::Levels levels_;
  Function function_;
};

template <class Function>
std::unique_ptr<Kernel> make_level_function(const Step& step, Function function) {
  return std::make_unique<LevelFunction<Function>>(step, function);
}

// The sum of what two operands stand for.
class SumOfReals final : public LevelKernel {
 public:
  explicit SumOfReals(const Step& step)
      : LevelKernel(step, 2),
        first_(real_levels_of(step, "first")),
        second_(real_levels_of(step, "second")),
        levels_(levels_of(step)) {}

 private:
  bool levels(const float* const* in, float* out, int64_t count) const override {
    float second[kChunk];
    const size_t bytes = static_cast<size_t>(count) * sizeof *out;
    std::memcpy(out, in[0], bytes);
    std::memcpy(second, in[1], bytes);
    first_.apply(out, count);
    second_.apply(second, count);
    // Which of two NaNs a sum keeps is up to the compiler.
    int32_t both = 0;
    for (int64_t i = 0; i < count; ++i) {
      both |= static_cast<int32_t>(out[i] != out[i]) & static_cast<int32_t>(second[i] != second[i]);
      out[i] = out[i] + second[i];
    }
    levels_.apply(out, count);
    return both == 0;
  }

  rules::RealLevels first_, second_;
  rules::Levels levels_;
};

// A quantized value as an integer; false where 32 bits do not hold it. `truncates`, or ties away from zero.
inline bool whole_level(float x, bool truncates, int64_t& found) {
  const float whole = truncates ? std::trunc(x) : rules::whole_away(x);
  const bool fits = std::fabs(whole) < 2147483648.0f;
  found = fits ? static_cast<int64_t>(whole) : 0;
  return fits;
}

// Slot `rescale`, rule q31_two_step_up_away; false where a left shift leaves 32 bits.
struct Rescaled {
  rules::Multiplier multiplier;

  explicit Rescaled(const Step& step, const std::string& prefix) : multiplier(step.multiplier(prefix)) {
    require(multiplier.exponent >= -62 && multiplier.exponent <= 30 && std::abs(multiplier.multiplier) <= INT32_MAX,
            "a multiplier is out of range");
  }
  bool operator()(int64_t value, int64_t& found) const {
    if (std::abs(value) > INT32_MAX >> std::max(multiplier.exponent, 0)) return false;
    found = rules::q31_two_step_up_away(value, multiplier);
    return true;
  }
};

int64_t zero_point_of(const Step& step, const char* key) { return step.integer(key, INT32_MIN, INT32_MAX); }

class LeakyLevels final : public LevelKernel {
 public:
  explicit LeakyLevels(const Step& step)
      : LevelKernel(step, 1),
        identity_(step, "identity_"),
        slope_(step, "slope_"),
        input_zero_point_(zero_point_of(step, "input_zero_point")),
        output_zero_point_(zero_point_of(step, "output_zero_point")) {}

 private:
  bool levels(const float* const* in, float* out, int64_t count) const override {
    bool all = true;
    for (int64_t i = 0; i < count; ++i) {
      int64_t q = 0, y = 0;
      all &= whole_level(in[0][i], false, q);
      q -= input_zero_point_;
      all &= (q >= 0 ? identity_ : slope_)(q, y);
      out[i] = static_cast<float>(y + output_zero_point_);
    }
    return all;
  }

  Rescaled identity_, slope_;
  int64_t input_zero_point_, output_zero_point_;
};

struct ZeroPoints {
  int64_t first, second, output;

  explicit ZeroPoints(const Step& step) {
    const Array& points = step.array("zero_points");
    require(points.count == 3, "three zero points are needed");
    first = points.integer(0), second = points.integer(1), output = points.integer(2);
    for (const int64_t point : {first, second, output}) {
      require(point >= INT32_MIN && point <= INT32_MAX, "a zero point is out of range");
    }
  }
};

class SumByShifts final : public LevelKernel {
 public:
  explicit SumByShifts(const Step& step)
      : LevelKernel(step, 2, true),
        parts_{Rescaled(step, "first_"), Rescaled(step, "second_")},
        output_(step, "output_"),
        points_(step) {
    require(parts_[0].multiplier.exponent <= 0 && parts_[1].multiplier.exponent <= 0, "an operand is enlarged");
  }

 private:
  bool levels(const float* const* in, float* out, int64_t count) const override {
    bool all = true;
    for (int64_t i = 0; i < count; ++i) {
      int64_t first = 0, second = 0, sum = 0;
      all &= aligned(in[0][i], points_.first, parts_[0], first);
      all &= aligned(in[1][i], points_.second, parts_[1], second);
      all &= output_(first + second, sum);
      out[i] = static_cast<float>(sum + points_.output);
    }
    return all;
  }

  static bool aligned(float x, int64_t zero_point, const Rescaled& part, int64_t& found) {
    int64_t q = 0;
    if (!whole_level(x, true, q)) return false;
    q -= zero_point;
    if (q < -2048 || q >= 2048) return false;
    found = rules::q31_two_step_up_away(q * 1048576, part.multiplier);
    return true;
  }

  Rescaled parts_[2], output_;
  ZeroPoints points_;
};

class SumOf21Bits final : public LevelKernel {
 public:
  explicit SumOf21Bits(const Step& step) : LevelKernel(step, 2, true), points_(step) {
    const Array &multipliers = step.array("multipliers"), &shift = step.array("right_shift");
    require(multipliers.count == 2 && shift.count == 1, "two multipliers are needed");
    for (int i = 0; i < 2; ++i) {
      multipliers_[i] = multipliers.integer(i);
      require(multipliers_[i] >= 0 && multipliers_[i] <= INT32_MAX, "a multiplier is out of range");
    }
    const int64_t bits = shift.integer(0);
    require(bits >= 0 && bits <= 30, "a shift is out of range");
    unit_ = std::ldexp(1.0f, -static_cast<int>(bits));
  }

 private:
  bool levels(const float* const* in, float* out, int64_t count) const override {
    bool all = true;
    for (int64_t i = 0; i < count; ++i) {
      int64_t first = 0, second = 0;
      all &= whole_level(in[0][i], false, first) && whole_level(in[1][i], false, second);
      // Modulo 2^64.
      const auto sum = static_cast<uint64_t>((first - points_.first) * multipliers_[0]) +
                       static_cast<uint64_t>((second - points_.second) * multipliers_[1]);
      const float rounded = rules::whole_away(static_cast<float>(static_cast<int64_t>(sum)) * unit_);
      const bool fits = std::fabs(rounded) < 4611686018427387904.0f;
      all &= fits;
      out[i] = static_cast<float>((fits ? static_cast<int64_t>(rounded) : 0) + points_.output);
    }
    return all;
  }

  int64_t multipliers_[2];
  float unit_ = 1;
  ZeroPoints points_;
};

}  // namespace

std::unique_ptr<Kernel> make_quantized_levels(const Step& step, const CoreSet& cores) {
  if (step.has_array("table")) return make_level_table(step, cores);
  return make_level_function(step, [](float*, int64_t) {});
}

std::unique_ptr<Kernel> make_rectified_levels(const Step& step, const CoreSet& cores) {
  if (step.has_array("table")) return make_level_table(step, cores);
  const auto slope = static_cast<float>(step.real("slope")), most = static_cast<float>(step.real("most")),
             least = static_cast<float>(step.real("least"));
  return make_level_function(step, [=](float* real, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const float x = real[i];
      float y = (x < 0 ? 0.0f : x) + slope * (0 < x ? 0.0f : x);
      y = y != y ? 0.0f : y;
      y = y < most ? y : most;
      real[i] = y > least ? y : least;
    }
  });
}

std::unique_ptr<Kernel> make_leaky_levels(const Step& step, const CoreSet& cores) {
  if (step.has_array("table")) return make_level_table(step, cores);
  return std::make_unique<LeakyLevels>(step);
}

std::unique_ptr<Kernel> make_logistic_levels(const Step& step, const CoreSet& cores) {
  if (step.has_array("table")) return make_level_table(step, cores);
  return make_level_function(step, [](float* real, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const double x = static_cast<double>(real[i]);
      real[i] = static_cast<float>(0.5 * arithmetic::binary64::tanh(0.5 * x) + 0.5);
    }
  });
}

std::unique_ptr<Kernel> make_sum_of_levels(const Step& step) {
  if (step.rules.count("levels")) return std::make_unique<SumOfReals>(step);
  const std::string& rule = step.rule("level_sum");
  if (rule == "q31_left_20_two_step") return std::make_unique<SumByShifts>(step);
  require(rule == "binary32_of_21_bits_away", "no native rule for this slot");
  return std::make_unique<SumOf21Bits>(step);
}

}  // namespace bittrue

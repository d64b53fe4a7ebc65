// logistic and tanh: 8 bits by a table with one entry per input, 16 bits by interpolating in a table of 256 samples,
// real numbers by evaluation.
#include "operators/elementwise/logistic.h"
#include "operators/elementwise/grouped_map.h"
#include "operators/elementwise/half_map.h"
#include "operators/elementwise/polynomial_function.h"
#include "operators/elementwise/real_loops.h"

#include <cmath>
#include <limits>

#include "arithmetic/elementary.h"
#include "arithmetic/fused.h"
#include "arithmetic/rational_wide.h"
#include "arithmetic/tables.h"
#include "operators/core/registry.h"
#include "rules/activation.h"
#include "rules/sigmoid.h"

namespace bittrue {
namespace {

template <bool kFused>
std::unique_ptr<Kernel> make_rational(const Step& step, bool tanh) {
  if (tanh) return make_map<float, float>(step, [](float x) { return arithmetic::rational::tanh<kFused>(x); });
  return make_grouped_map(
      step, [](float x) { return arithmetic::rational::logistic<kFused>(x); },
      [](float x) { return rules::scalar_logistic(x); });
}

std::unique_ptr<Kernel> make_sigmoid(const Step& step, const CoreSet& cores, bool tanh) {
  if (step.rules.count("levels")) return make_logistic_levels(step, cores);
  if (step.has_array("table")) return make_table(step, cores);
  if (in_pairs(step)) {
    namespace wide = arithmetic::rational_wide;
    if (tanh) return make_paired_map(step, real_loops::WideFunction::tanh, wide::library_tanh);
    return make_paired_map(step, real_loops::WideFunction::logistic,
                           [](double x) { return wide::logistic(x, wide::library_exp); });
  }
  if (of_halves(step)) {
    if (step.rule("real_function") != "binary32_short") return nullptr;
    static const arithmetic::estimates::Inverse inverse;
    if (tanh) return make_half_map(step, arithmetic::short_functions::tanh);
    return make_half_map(step, [](float x) { return arithmetic::short_functions::logistic(x, inverse); });
  }
  if (auto kernel = make_polynomial(step, cores, tanh ? RealFunction::tanh : RealFunction::logistic)) return kernel;
  if (step.input(0).type == Type::f32 && step.output().type == Type::f32) {
    const std::string& rule = step.rule("real_function");
    if (rule == "binary32_rational_lanes_4") return make_rational<false>(step, tanh);
    if (rule == "binary32_fused_rational_lanes_4") return make_rational<true>(step, tanh);
    if (rule == "binary32_fused" && tanh) {
      return make_map<float, float>(step, [](float x) { return arithmetic::fused::tanh(x); });
    }
    if (rule == "binary32_fused") {
      return make_map<float, float>(step, [](float x) { return arithmetic::fused::logistic(x); });
    }
    if (rule == "binary32_fused_by_exponent" && !tanh) {
      return make_map<float, float>(step, [](float x) { return arithmetic::fused::logistic_by_exponent(x); });
    }
    // Twins of src/bittrue/arithmetic/tables.py.
    if (rule == "binary32_of_exponentials" && tanh) {
      return make_map<float, float>(step, [](float x) {
        const float e = arithmetic::exp(x >= 0.0f ? -2.0f * x : 2.0f * x);
        return x >= 0.0f ? (1.0f - e) / (1.0f + e) : (e - 1.0f) / (e + 1.0f);
      });
    }
    if (rule == "binary32_of_exponentials") {
      return make_map<float, float>(step, [](float x) { return 1.0f / (1.0f + arithmetic::exp(-x)); });
    }
    if (rule == "binary32_by_library" && !tanh) {
      return make_map<float, float>(step, [](float x) {
        const float power = arithmetic::exp(-std::fabs(x));
        return (x >= 0.0f ? 1.0f : power) / (1.0f + power);
      });
    }
    require(rule == "binary32_elementary" || rule == "binary32_by_library", "no native rule for this slot");
    if (tanh) return make_map<float, float>(step, [](float x) { return arithmetic::tanh(x); });
    return make_map<float, float>(step, [](float x) { return arithmetic::logistic(x); });
  }
  if (step.input(0).type != Type::s16 || step.output().type != Type::s16) return nullptr;
  require(step.rule("sigmoid") == "s16_table_256_linear", "no native rule for this slot");
  rules::Sigmoid rule;
  rule.multiplier = step.integer("multiplier", 0, 65535);
  rule.right_shift = static_cast<int>(step.integer("right_shift", 0, 31));
  const Array& samples = step.array("samples");
  require(samples.count == 256, "256 samples are needed");
  for (int i = 0; i < 256; ++i) {
    rule.samples.push_back(samples.integer(i));
    require(rule.samples.back() >= 0 && rule.samples.back() <= 65536, "a sample is out of range");
  }
  if (tanh) return make_map<int16_t, int16_t>(step, [rule](int16_t q) { return static_cast<int16_t>(rule.tanh(q)); });
  return make_map<int16_t, int16_t>(step, [rule](int16_t q) { return static_cast<int16_t>(rule.logistic(q)); });
}

}  // namespace

std::unique_ptr<Kernel> make_direct_table(const Step& step, const CoreSet& cores, const Array& entries) {
  const Type from = step.input(0).type;
  if (!is_8bit(from)) return nullptr;
  const int64_t minimum = step.integer("minimum");
  require(entries.count == 256 && minimum == (from == Type::s8 ? -128 : 0), "one entry per 8-bit value is needed");
  return make_integer_map(step, cores, [&](int64_t q) { return entries.integer(q - minimum); });
}

std::unique_ptr<Kernel> make_table(const Step& step, const CoreSet& cores) {
  const Array& entries = step.array("table");
  const std::string& rule = step.rule("table");
  if (rule == "binary32_reciprocal_256_away" || rule == "binary32_reciprocal_sum_256_even" ||
      rule == "binary32_divide_256_even" || rule == "binary32_divide_256_away" || rule == "exact_256_even" ||
      rule == "binary32_ratio_256_even" || rule == "tanh_midpoints_127_even" ||
      rule == "tanh_midpoints_127_even_less_1") {
    return is_8bit(step.output().type) ? make_direct_table(step, cores, entries) : nullptr;
  }
  const bool interpolated =
      rule == "binary32_reciprocal_513_linear_up" || rule == "binary32_reciprocal_513_fused_linear_up";
  require(interpolated && entries.count == 513, "no native rule for this table");
  if (step.input(0).type != Type::s16 || step.output().type != Type::s16) return nullptr;
  std::vector<int16_t> table;
  for (int i = 0; i < 513; ++i) {
    const int64_t entry = entries.integer(i);
    require(entry >= std::numeric_limits<int16_t>::min() && entry <= std::numeric_limits<int16_t>::max(),
            "an entry is out of range");
    table.push_back(static_cast<int16_t>(entry));
  }
  return make_map<int16_t, int16_t>(
      step, [table](int16_t q) { return static_cast<int16_t>(arithmetic::lookup_513(table.data(), q)); });
}

static std::unique_ptr<Kernel> make_logistic(const Step& step, const CoreSet& cores) {
  return make_sigmoid(step, cores, false);
}

static std::unique_ptr<Kernel> make_tanh(const Step& step, const CoreSet& cores) {
  return make_sigmoid(step, cores, true);
}

BITTRUE_OPERATOR(logistic, make_logistic)
BITTRUE_OPERATOR(tanh, make_tanh)

}  // namespace bittrue

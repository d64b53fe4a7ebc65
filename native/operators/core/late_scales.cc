#include "operators/core/late_scales.h"

#include <cmath>

#include "rules/real_even.h"

namespace bittrue {

LateScales::LateScales(const Step& step) : exact_(step.rules.count("requantize") != 0) {
  require(step.rules.count("rescale_tail") == 0, "no native rule for this slot");
  const std::string& store = step.rule("store");
  require(rules::find_rule(store, store_), "no native rule for this slot");
  low_ = step.integer("low", INT32_MIN, INT32_MAX), high_ = step.integer("high", INT32_MIN, INT32_MAX);
  if (exact_) {
    require(step.rule("requantize") == "real_even" && !rules::is_real(store_), "no native rule for this slot");
    return;
  }
  constexpr const char* kForms[] = {"binary32", "binary32_over_product", "binary32_product", "binary32_quotient_first",
                                    "binary64"};
  int form = 0;
  while (form < 5 && step.rule("scale_form") != kForms[form]) ++form;
  require(form < 5, "no native rule for this slot");
  form_ = static_cast<Form>(form);
  rescale_ = step.rescale_rule();
  const rules::RescaleTraits& traits = rules::traits(rescale_);
  require(!traits.has(rules::kAddend) && (traits.point == 0 || traits.point == 31) &&
              rules::is_real(rescale_) == rules::is_real(store_),
          "no native rule for this slot");
}

bool LateScales::prepare(double first, double second, double output, Multiplier* made) const {
  const auto a = static_cast<float>(first), b = static_cast<float>(second), c = static_cast<float>(output);
  if (exact_) {
    made->numerator = first * second, made->denominator = output;
    return std::isfinite(first) && std::isfinite(second) && std::isfinite(output) && output != 0;
  }
  double real = 0;
  switch (form_) {
    case Form::binary32: real = a * b / c; break;
    case Form::binary32_over_product: real = a / (c * b); break;
    case Form::binary32_product: real = static_cast<double>(a * b) / static_cast<double>(c); break;
    case Form::binary32_quotient_first: real = a / c * b; break;
    case Form::binary64: real = first * second / output; break;
  }
  if (!std::isfinite(real)) return false;
  rules::Multiplier m{};
  if (rules::traits(rescale_).point == 0) {
    m.factor = real;
    made->encoded = m;
    return rules::takes(rescale_, m);
  }
  int exponent = 0;
  auto significand = static_cast<int64_t>(std::round(std::frexp(real, &exponent) * 0x1p31));
  if (significand == int64_t{1} << 31) significand >>= 1, ++exponent;
  if (significand != 0 && exponent >= -31) m.multiplier = significand, m.exponent = exponent;
  made->encoded = m;
  return rules::takes(rescale_, m);
}

int64_t LateScales::stored(int64_t acc, const Multiplier& m, int64_t zero_point) const {
  if (rules::is_real(store_)) {
    const double real = rules::kRescale[static_cast<int>(rescale_)].real(acc, m.encoded);
    return rescale_ == rules::RescaleRule::binary32_multiply
               ? rules::store_real(store_, static_cast<float>(real), zero_point, low_, high_)
               : rules::store_real(store_, real, zero_point, low_, high_);
  }
  const int64_t rescaled =
      exact_ ? rules::real_even(acc, m.numerator, m.denominator) : rules::apply(rescale_, acc, m.encoded);
  return store_ == rules::StoreRule::zero_point_then_clamp
             ? rules::zero_point_then_clamp(rescaled, zero_point, low_, high_)
             : rules::clamp_then_zero_point(rescaled, zero_point, low_, high_);
}

LateNumbers::LateNumbers(const Step& step, size_t input, int64_t most)
    : input_(input),
      reader_(step.has_input(input) ? step.input(input).type : Type::f32),
      given_(step.has_input(input)) {
  if (!given_) return;
  const Operand& operand = step.input(input);
  count_ = operand.elements;
  require(operand.dense() && (count_ == 1 || count_ == most), "scales of another form");
}

double LateNumbers::at(const Run& run, int64_t i) const {
  if (!given_) return 0;
  double number = 0;
  reader_.reals(run.inputs[input_] + (count_ == 1 ? 0 : i) * reader_.bytes(), &number, 1);
  return number;
}

}  // namespace bittrue

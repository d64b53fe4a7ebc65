#include "isa/portable/aligned_values.h"

#include <cmath>

#include "isa/cores.h"
#include "isa/portable/scalar_requantize.h"

namespace bittrue::portable {
namespace {

using Shape = AlignedFormula::Shape;

int64_t value_of(const AlignedFormula& f, int64_t q) {
  if (f.shape == Shape::symmetric && q < 0) return -value_of(f, -q);
  return q * f.high + ((q * f.low + f.half) >> AlignedFormula::kFraction);
}

bool gives(const AlignedFormula& formula, const int64_t* values, int64_t zero_point) {
  for (int64_t q = 0; q < 256; ++q) {
    if (value_of(formula, q - zero_point) != values[q]) return false;
  }
  return true;
}

// The slope is within 2^-23 of the multiplier, negated when subtracting; what is left is where to round, on which the
// two-step rules' first step has its own opinion.
AlignedFormula find_formula(const int64_t* values, int32_t zero_point, double slope) {
  constexpr int64_t kOne = int64_t{1} << AlignedFormula::kFraction;
  if (zero_point < 0 || zero_point > 255 || !(std::abs(slope) < 0x1p21)) return {};
  const int64_t total = std::llround(slope * static_cast<double>(kOne));
  AlignedFormula formula{Shape::none, total >> AlignedFormula::kFraction, total & (kOne - 1), 0};
  for (const Shape shape : {Shape::exact, Shape::symmetric, Shape::plain}) {
    formula.shape = shape;
    for (int step = 0; step <= 2 * AlignedFormula::kFraction; ++step) {
      // 1/2, and 1/2 +- 2^-2, 2^-3, ...
      formula.half = kOne / 2 + (step == 0 ? 0 : (step % 2 == 0 ? -1 : 1) * ((kOne / 2) >> ((step + 1) / 2)));
      if ((shape != Shape::exact || formula.low == 0) && gives(formula, values, zero_point)) return formula;
    }
  }
  return {};
}

}  // namespace

void aligned_values(const AddSpec& spec, int64_t* first, int64_t* second) {
  const int64_t scale = int64_t{1} << spec.left;
  for (int64_t q = 0; q < 256; ++q) {
    // As in the rule, the moved value wraps to 32 bits.
    const int64_t one = arithmetic::wrap_s32((q - spec.first_zero_point) * scale);
    const int64_t two = arithmetic::wrap_s32((q - spec.second_zero_point) * scale);
    first[q] = rules::apply(spec.align, one, spec.first);
    const int64_t value = rules::apply(spec.align, two, spec.second);
    second[q] = spec.subtract ? -value : value;
  }
}

void aligned_formulas(const AddSpec& spec, const int64_t* first, const int64_t* second, AlignedFormula* formulas) {
  const double up = std::ldexp(1.0, spec.left), second_up = spec.subtract ? -up : up;
  formulas[0] = find_formula(first, spec.first_zero_point, real_multiplier(spec.align, spec.first) * up);
  formulas[1] = find_formula(second, spec.second_zero_point, real_multiplier(spec.align, spec.second) * second_up);
}

}  // namespace bittrue::portable

#include "isa/portable/aligned_values.h"

#include <algorithm>
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

bool find_sum_line(const AddSpec& spec, const uint8_t* stored, SumLine* line) {
  constexpr int kPart = SumLine::kPart;
  const rules::Requantize& r = spec.requantize;
  const int64_t low = int64_t{r.low} + r.flip, high = int64_t{r.high} + r.flip;
  if (low < 0 || high > 255) return false;
  const double unit = std::ldexp(real_multiplier(r.rescale, r.multipliers.data()[0]), spec.left);
  const double slopes[2] = {real_multiplier(spec.align, spec.first) * unit,
                            real_multiplier(spec.align, spec.second) * (spec.subtract ? -unit : unit)};
  // As many bits as two parts hold, and as a sum of upper parts leaves.
  const double largest = std::max(std::fabs(slopes[0]), std::fabs(slopes[1]));
  if (!(largest > 0)) return false;
  const int shift = std::min(2 * kPart, 2 * kPart - 2 - std::ilogb(largest));
  if (shift < kPart) return false;
  int64_t factors[2];
  for (int i = 0; i < 2; ++i) factors[i] = static_cast<int64_t>(std::nearbyint(std::ldexp(slopes[i], shift)));
  // At least what results above the clamp's low end ask for, and less than the others do.
  constexpr int64_t kFar = int64_t{1} << 50;
  const int64_t one = int64_t{1} << shift;
  int64_t least = -kFar, limit = kFar;
  for (int64_t a = 0; a < 256; ++a, stored += 256) {
    for (int64_t b = 0; b < 256; ++b) {
      const int64_t at = stored[b] * one - a * factors[0] - b * factors[1];
      least = std::max(least, stored[b] > low ? at : -kFar);
      limit = std::min(limit, stored[b] < high ? at + one : kFar);
    }
  }
  // Results that are all at an end of the clamp, too, have no offset.
  constexpr int64_t kMost = int64_t{1} << 40;
  if (least >= limit || least < -kMost || limit > kMost) return false;
  const int64_t offset = least + (limit - least) / 2;
  const auto cut = [](int64_t number, int part) {
    return static_cast<int32_t>(part == 0 ? number >> kPart : number & ((1 << kPart) - 1));
  };
  for (int part = 0; part < 2; ++part) {
    const uint32_t first = static_cast<uint32_t>(cut(factors[0], part)) & 0xFFFF;
    line->factors[part] = static_cast<int32_t>(static_cast<uint32_t>(cut(factors[1], part)) << 16 | first);
    line->offset[part] = cut(offset, part);
  }
  line->shift = shift - kPart;
  line->low = static_cast<uint8_t>(low);
  line->high = static_cast<uint8_t>(high);
  return true;
}

}  // namespace bittrue::portable

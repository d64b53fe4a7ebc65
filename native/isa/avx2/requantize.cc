#include "isa/avx2/requantize.h"

#include <cmath>

namespace bittrue::BITTRUE_ISA {
namespace {

using rules::RescaleRule;
using rules::StoreRule;

// One column's rule as floor(a * multiplier * 2^-(31+right) + 1/2 +- eps), a being the accumulator shifted left.
struct Straight {
  int64_t multiplier;
  int right, left;
  bool eps;  // 2^-(right+1)
};

// False when the column has no such form. Right shifts above 31 give 0 for every 32-bit accumulator: |a * multiplier| is
// below 2^62, so |a * multiplier * 2^-63| < 1/2, and the two-step rules' first result is above -2^31.
bool straight(RescaleRule rule, const rules::Multiplier& m, Straight& s) {
  if (m.multiplier < 0 || m.multiplier > INT32_MAX || m.exponent < -100 || m.exponent > 100) return false;
  s = {m.multiplier, -m.exponent, 0, false};
  if (rule == RescaleRule::q31_one_step_up) {
    s.right = (m.exponent > 30 ? 1 : m.exponent < -31 ? 62 : 31 - m.exponent) - 31;
  } else if (rule == RescaleRule::q15_one_step_up) {
    // 31 + right = 15 - exponent
    if (m.exponent > 14) return false;
    s.right = -16 - m.exponent;
    while (s.right < 0 && s.multiplier <= (INT32_MAX >> 1)) {
      s.multiplier *= 2;
      ++s.right;
    }
  } else {
    if (m.exponent > 0) {
      s.left = m.exponent < 32 ? m.exponent : 32;
      s.right = 0;
    }
    s.eps = s.right > 0;
  }
  if (s.right > 31) s = {0, 1, 0, false};
  return true;
}

// addend = units / 2^(right+1); false when binary64 cannot hold it.
bool exact_addend(int64_t units, int right, double* addend) {
  const auto value = static_cast<double>(units);
  *addend = std::ldexp(value, -(right + 1));
  return value < 0x1p62 && value > -0x1p62 && static_cast<int64_t>(value) == units;
}

// The addends of the line form for one column, see requantize.h; false unless they are exact and results are small.
bool line_addends(const Straight& s, double greatest, int64_t stored_offset, double* addend, double* addend_negative) {
  if (s.left != 0 || s.right < 0 || s.right > 31) return false;
  const double scale = std::ldexp(static_cast<double>(s.multiplier), -(31 + s.right));
  if (greatest * scale + std::abs(static_cast<double>(stored_offset)) + 2 >= 0x1p19) return false;
  // In units of 2^-(right+1): |3 * 2^19 + offset| < 2^21 gives less than 2^53, the last product less than 2^54.
  const int64_t magic = (int64_t{3 << 19} + stored_offset) << (s.right + 1);
  const int64_t half = int64_t{1} << s.right;
  const int64_t units = magic + half - s.multiplier * ((int64_t{1} << 22) + 2);
  return exact_addend(units + s.eps, s.right, addend) && exact_addend(units - s.eps, s.right, addend_negative);
}

bool wide_fits(RescaleRule rule, const Straight& s, double greatest) {
  const double scale = std::ldexp(static_cast<double>(s.multiplier), -(31 + s.right));
  const bool two_step = rule == RescaleRule::q31_two_step_up_away || rule == RescaleRule::q31_two_step_up_up;
  return two_step || greatest * scale + 1 < 0x1p31;
}

double greatest_of(const rules::Requantize& r) {
  return r.wraps || r.bound > (int64_t{1} << 31) ? 0x1p31 : static_cast<double>(r.bound);
}

Form choose(const rules::Requantize& r, double greatest) {
  const int64_t low = int64_t{r.low} + r.flip, high = int64_t{r.high} + r.flip;
  const auto is_byte = [](int64_t value) { return value >= 0 && value <= 255; };
  const auto is_small = [](int64_t value) { return value >= -32768 && value <= 32767; };
  if (!is_byte(low) || !is_byte(high) || !is_small(r.zero_point) || !is_small(r.flip)) return Form::scalar;
  if (!rules::has_vector_form(r.rescale)) return Form::scalar;
  if (r.rescale == RescaleRule::binary64_multiply_away) return Form::binary64;
  if (r.rescale == RescaleRule::binary32_multiply_even) return Form::binary32;
  bool line = true;
  for (size_t i = 0; i < r.multipliers.size(); ++i) {
    Straight s;
    double addend, addend_negative;
    if (!straight(r.rescale, r.multipliers.data()[i], s) || !wide_fits(r.rescale, s, greatest)) return Form::scalar;
    line = line && line_addends(s, greatest, int64_t{r.zero_point} + r.flip, &addend, &addend_negative);
  }
  if (!line) return Form::wide;
  // Where low is the zero point, negative accumulators give 0 or less before it, with either constant.
  const bool by_sign = r.rescale == RescaleRule::q31_two_step_up_away && r.low < r.zero_point;
  return by_sign ? Form::line_by_sign : Form::line;
}

}  // namespace

Choice::Choice(const rules::Requantize& requantize) : Choice(requantize, greatest_of(requantize)) {}

Choice::Choice(const rules::Requantize& r, double greatest_acc)
    : form(choose(r, greatest_acc)), greatest(greatest_acc) {
  if (form == Form::scalar) return;
  zero_point = r.zero_point;
  flip = r.flip;
  if (r.store == StoreRule::clamp_then_zero_point) {
    first_low = r.low - r.zero_point;
    first_high = r.high - r.zero_point;
  }
  low = r.low + r.flip;
  high = r.high + r.flip;
}

void Choice::fill(const rules::Requantize& r, const int64_t* columns, Group& group) const {
  for (int byte = 0; byte < 16; ++byte) {
    const int64_t column = columns[byte];
    group.columns[byte] = column;
    if (column < 0 || form == Form::scalar) continue;
    const rules::Multiplier& m = r.multipliers.data()[r.multipliers.size() == 1 ? 0 : column];
    const int i = accumulator_of_byte(byte);
    const int quarter = 2 * (i / 8) + (is_line(form) ? i % 2 : i % 8 / 4);
    const int lane = is_line(form) ? i % 8 / 2 : i % 4;
    group.factor[i] = static_cast<float>(m.factor);
    group.scale[quarter][lane] = m.factor;
    Straight s;
    if (form == Form::binary64 || form == Form::binary32 || !straight(r.rescale, m, s)) continue;
    group.scale[quarter][lane] = std::ldexp(static_cast<double>(s.multiplier), -(31 + s.right));
    group.left[i] = s.left;
    double& addend = group.addend[quarter][lane];
    double& addend_negative = group.addend_negative[quarter][lane];
    if (is_line(form)) {
      line_addends(s, greatest, int64_t{r.zero_point} + r.flip, &addend, &addend_negative);
    } else {
      const double eps = s.eps ? std::ldexp(1.0, -(s.right + 1)) : 0;
      addend = 0.5 + eps;
      addend_negative = 0.5 - eps;
    }
    // Ties toward plus infinity at the second step do not depend on the sign.
    if (r.rescale == RescaleRule::q31_two_step_up_up) addend_negative = addend;
  }
}

Requantizer::Requantizer(const rules::Requantize& requantize, const Choice& choice, const int64_t* columns,
                         int64_t groups)
    : choice_(choice), groups_(groups), general_(portable::copy(requantize)) {
  for (int64_t i = 0; i < groups; ++i) choice_.fill(requantize, columns + 16 * i, groups_.data()[i]);
}

void Requantizer::requantize_scalar(const int32_t* acc, const Group& group, uint8_t* out) const {
  for (int i = 0; i < 16; ++i) {
    const int64_t column = group.columns[i];
    out[i] = column < 0 ? uint8_t{0} : portable::requantize_one(*general_, acc[accumulator_of_byte(i)], column);
  }
}

}  // namespace bittrue::BITTRUE_ISA

#include "isa/neon_dotprod/requantize.h"

#include <cmath>

namespace bittrue::neon_dotprod {
namespace {

using rules::RescaleRule;
using rules::StoreRule;

Form form_of(RescaleRule rule) {
  switch (rule) {
    case RescaleRule::q31_two_step_up_away: return Form::two_step_away;
    case RescaleRule::q31_two_step_up_up: return Form::two_step_up;
    case RescaleRule::q31_one_step_up:
    case RescaleRule::q31_one_step_up_wrap:
    case RescaleRule::q15_one_step_up: return Form::one_step;
    case RescaleRule::q31_one_step_up_shift_wraps: return Form::one_step_of_high;
    case RescaleRule::binary64_multiply_away: return Form::binary64;
    case RescaleRule::binary32_multiply_even: return Form::binary32;
    case RescaleRule::binary32_add_multiply_even:
    case RescaleRule::binary32_add_multiply_twice_even: return Form::binary32_after_sum;
    default: return Form::scalar;
  }
}

// The narrowing of one-step results is modulo 2^32, which is part of two of the rules and must not happen in the other
// one. No product is NaN.
bool fits(Form form, RescaleRule rule, const rules::Multiplier& m) {
  const bool multiplier = m.multiplier >= 0 && m.multiplier <= INT32_MAX && m.exponent >= -100;
  switch (form) {
    case Form::two_step_away:
    case Form::two_step_up:
    case Form::one_step_of_high: return multiplier && m.exponent <= 100;
    case Form::one_step:
      if (rule == RescaleRule::q15_one_step_up) return multiplier && m.exponent <= 14 && m.exponent >= -47;
      return multiplier && m.exponent <= (rule == RescaleRule::q31_one_step_up ? 0 : 30);
    case Form::binary64: return std::isfinite(m.factor);
    case Form::binary32: return std::isfinite(static_cast<float>(m.factor));
    case Form::binary32_after_sum:
      return std::isfinite(static_cast<float>(m.factor)) && std::isfinite(m.second) && m.second != 0;
    default: return false;
  }
}

bool is_plain(Form form, RescaleRule rule, const rules::Multiplier& m) {
  switch (form) {
    case Form::two_step_away:
    case Form::two_step_up:
    case Form::one_step_of_high: return m.exponent < 0;
    case Form::one_step: return m.exponent < 0 && (rule != RescaleRule::q15_one_step_up || m.multiplier <= INT16_MAX);
    case Form::binary64:
    case Form::binary32: return std::abs(m.factor) <= 0.25;
    default: return false;
  }
}

}  // namespace

Choice::Choice(const rules::Requantize& r) {
  const int64_t least = int64_t{r.low} + r.flip, most = int64_t{r.high} + r.flip;
  const auto is_byte = [](int64_t value) { return value >= 0 && value <= 255; };
  const auto is_small = [](int64_t value) { return value >= -32768 && value <= 32767; };
  if (!is_byte(least) || !is_byte(most) || !is_small(r.zero_point) || !is_small(r.flip)) return;
  const Form found = form_of(r.rescale);
  bool plain = std::abs(r.zero_point + r.flip) <= 8192;
  for (size_t i = 0; i < r.multipliers.size(); ++i) {
    const rules::Multiplier& m = r.multipliers.data()[i];
    if (!fits(found, r.rescale, m)) return;
    plain = plain && is_plain(found, r.rescale, m);
  }
  form = plain ? with_plain(found) : found;
  zero_point = r.zero_point;
  flip = plain ? r.flip + r.zero_point : r.flip;
  if (r.store == StoreRule::clamp_then_zero_point) {
    first_low = r.low - r.zero_point;
    first_high = r.high - r.zero_point;
  }
  low = static_cast<int>(least);
  high = static_cast<int>(most);
}

void Choice::fill(const rules::Requantize& r, const int64_t* columns, Group& group) const {
  const bool short_multiplier = r.rescale == RescaleRule::q15_one_step_up;
  for (int i = 0; i < 16; ++i) {
    group.columns[i] = columns[i];
    if (columns[i] < 0 || form == Form::scalar) continue;
    const rules::Multiplier& m = r.multipliers.data()[r.multipliers.size() == 1 ? 0 : columns[i]];
    group.factor[i] = m.factor;
    group.factor32[i] = static_cast<float>(m.factor);
    group.addend[i] = m.addend;
    group.second[i] = m.second;
    group.multiplier[i] = static_cast<int32_t>(m.multiplier);
    if (form == Form::plain_one_step) {
      // Below 2^-31 two of the rules count as 2^-31.
      const bool limited = !short_multiplier && r.rescale != RescaleRule::q31_one_step_up_shift_wraps;
      group.right[i] = limited && m.exponent < -31 ? -31 : m.exponent;
      if (short_multiplier) group.multiplier[i] <<= 16;
    } else if (form == Form::one_step) {
      const int right = (short_multiplier ? 15 : 31) - m.exponent;
      group.right[i] = -(right > 62 ? 62 : right);
    } else if (form == Form::one_step_of_high) {
      group.left[i] = m.exponent >= 0 ? m.exponent + 1 : 0;
      group.right[i] = m.exponent < -1 ? m.exponent : -1;
    } else {
      group.left[i] = m.exponent > 0 ? m.exponent : 0;
      group.right[i] = m.exponent < 0 ? m.exponent : 0;
    }
  }
}

Requantizer::Requantizer(const rules::Requantize& requantize, const int64_t* columns, int64_t groups)
    : choice_(requantize), groups_(groups), general_(portable::copy(requantize)) {
  for (int64_t i = 0; i < groups; ++i) choice_.fill(requantize, columns + 16 * i, groups_.data()[i]);
}

void Requantizer::requantize_scalar(const int32_t* acc, const Group& group, uint8_t* out) const {
  for (int i = 0; i < 16; ++i) {
    const int64_t column = group.columns[i];
    out[i] = column < 0 ? uint8_t{0} : portable::requantize_one(*general_, acc[i], column);
  }
}

}  // namespace bittrue::neon_dotprod

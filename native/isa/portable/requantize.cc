#include "isa/portable/requantize.h"

namespace bittrue::portable {

using rules::RescaleRule;

Requantizer::Requantizer(const rules::Requantize& requantize) : requantize_(requantize) {
  for (const rules::Multiplier& m : requantize.multipliers) {
    Column column;
    if (!integer_column(requantize.rescale, m, column)) {
      columns_.clear();
      return;
    }
    columns_.push_back(column);
  }
}

// The nested floors of the two-step rules collapse: floor((floor(a * m / 2^31 + 1/2) + 2^(e-1)) / 2^e) is
// floor((a * m + 2^30 + 2^(30+e)) / 2^(31+e)). Ties away at the second step take 2^31 less for a < 0; where the first
// step makes 0 of a negative a, both give 0. All results fit 32 bits, as no right shift is below 31.
bool Requantizer::integer_column(RescaleRule rule, const rules::Multiplier& m, Column& column) {
  if (m.multiplier < 0 || m.multiplier > INT32_MAX || m.exponent < -62 || m.exponent > 31) return false;
  const bool away = rule == RescaleRule::q31_two_step_up_away, up = rule == RescaleRule::q31_two_step_up_up;
  if (!away && !up) {
    if (rule != RescaleRule::q31_one_step_up || m.exponent > 0 || m.exponent < -31) return false;
    const int right = 31 - m.exponent;
    column = {m.multiplier, int64_t{1} << (right - 1), 0, 0, right};
    return true;
  }
  const int64_t half = int64_t{1} << 30;
  if (m.exponent >= 0) {
    column = {m.multiplier, half, 0, m.exponent, 31};
  } else if (m.exponent < -31) {
    column = {0, 0, 0, 0, 31};  // |a * m| / 2^63 < 1/2
  } else {
    const int64_t second = half << -m.exponent;
    column = {m.multiplier, second + half, away ? 2 * half : 0, 0, 31 - m.exponent};
  }
  return true;
}

template <bool wrap, bool shared>
void Requantizer::run_integer(const rules::Requantize& r, const Column* columns, const int32_t* acc, int64_t count,
                              uint8_t* out) {
  const int64_t zero_point = r.zero_point, flip = r.flip;
  const int64_t offset = wrap ? 0 : zero_point, low = r.low - offset, high = r.high - offset;
  for (int64_t i = 0; i < count; ++i) {
    const Column& c = columns[shared ? 0 : i];
    const auto a = static_cast<int32_t>(static_cast<uint64_t>(static_cast<uint32_t>(acc[i])) << c.left);
    int64_t value = (a * c.multiplier + c.addend - (c.less & -int64_t{a < 0})) >> c.right;
    if (wrap) value = arithmetic::wrap_s32(value + zero_point);
    out[i] = static_cast<uint8_t>(std::min(std::max(value, low), high) + offset + flip);
  }
}

void Requantizer::run_shared(const rules::Requantize& r, const Column& column, const int32_t* acc, int64_t count,
                             uint8_t* out) {
  if (r.store == rules::StoreRule::zero_point_then_clamp) {
    run_integer<true, true>(r, &column, acc, count, out);
  } else {
    run_integer<false, true>(r, &column, acc, count, out);
  }
}

void Requantizer::run(const int32_t* acc, int64_t first, int64_t count, uint8_t* out) const {
  if (columns_.empty()) {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<uint8_t>(rules::requantize(requantize_, acc[i], static_cast<size_t>(first + i)));
    }
  } else if (columns_.size() == 1) {
    run_shared(requantize_, columns_[0], acc, count, out);
  } else if (requantize_.store == rules::StoreRule::zero_point_then_clamp) {
    run_integer<true, false>(requantize_, columns_.data() + first, acc, count, out);
  } else {
    run_integer<false, false>(requantize_, columns_.data() + first, acc, count, out);
  }
}

void Requantizer::run_once(const rules::Requantize& requantize, const int32_t* acc, int64_t count, uint8_t* out) {
  Column column;
  if (requantize.multipliers.size() == 1 && integer_column(requantize.rescale, requantize.multipliers[0], column)) {
    return run_shared(requantize, column, acc, count, out);
  }
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<uint8_t>(rules::requantize(requantize, acc[i], static_cast<size_t>(i)));
  }
}

}  // namespace bittrue::portable

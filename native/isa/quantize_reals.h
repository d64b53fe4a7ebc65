// Real numbers to bytes by a true division or a multiply-add, for the same sets as pairs_of_bytes.h.
#pragma once

#include "isa/cores.h"

namespace bittrue::BITTRUE_ISA {

template <class Wide, bool multiplies>
void quantize_by(const QuantizeSpec& spec, const float* in, uint8_t* out, int64_t count) {
  using Integers = typename Wide::Integers;
  using Reals = typename Wide::Reals;
  const Reals scale = Wide::reals(spec.scale), low = Wide::reals(spec.low), high = Wide::reals(spec.high);
  const Reals addend = Wide::reals(spec.addend);
  const Integers zero_point = Wide::words(spec.zero_point);
  const auto stored = [&](Reals x) {
    const Reals real = multiplies ? Wide::multiply_add(x, scale, addend) : x / scale;
    return Wide::add_words(Wide::round(Wide::limited(real, low, high)), zero_point);
  };
  // words(i): what numbers from the i-th on become.
  const auto bytes = [&](const auto& words) {
    constexpr int64_t kLanes = Wide::kBytes / 4;
    const Integers first = Wide::pack(words(0), words(kLanes));
    const Integers second = Wide::pack(words(2 * kLanes), words(3 * kLanes));
    return Wide::in_order(Wide::pack_unsigned(first, second));
  };
  int64_t i = 0;
  for (; i + Wide::kBytes <= count; i += Wide::kBytes) {
    Wide::store(out + i, bytes([&](int64_t at) { return stored(Wide::load_reals(in + i + at)); }));
  }
  if (i == count) return;
  const int64_t rest = count - i;
  // Quotients take long: none where there is nothing.
  const auto words = [&](int64_t at) {
    return at < rest ? stored(Wide::load_reals(in + i + at, rest - at)) : zero_point;
  };
  Wide::store(out + i, bytes(words), rest);
}

template <class Wide>
void quantize_wide(const QuantizeSpec& spec, const float* in, uint8_t* out, int64_t count) {
  if (spec.multiplies) return quantize_by<Wide, true>(spec, in, out, count);
  quantize_by<Wide, false>(spec, in, out, count);
}

}  // namespace bittrue::BITTRUE_ISA

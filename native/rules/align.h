// Twins of src/bittrue/rules/align.py.
#pragma once

#include <cstdint>

#include "arithmetic/fixed_point.h"
#include "rules/rescale.h"

namespace bittrue::rules {

struct AlignRow {
  const char* name;
  int left;
};

inline constexpr AlignRow kAlign[] = {{"left_20", 20}, {"left_15", 15}, {"left_7", 7}, {"power_of_two_or_left_15", 15}};

// rescale((q - zero_point) * 2^left); the moved value wraps to 32 bits.
inline int64_t align(int64_t centred, int left, RescaleRule rule, const Multiplier& m) {
  return apply(rule, arithmetic::wrap_s32(static_cast<int64_t>(static_cast<uint64_t>(centred) << left)), m);
}

// left_20_exponent_first: the power of two is part of the left shift. |centred| <= 2^20 and 0 >= exponent > -64.
inline int64_t align_exponent_first(int64_t centred, int left, const Multiplier& m) {
  const int up = left + m.exponent;
  const int64_t moved = up >= 0 ? arithmetic::wrap_s32(centred * (int64_t{1} << up)) : centred >> -up;
  return arithmetic::doubling_high_multiply_up(moved, m.multiplier);
}

// left_20_exponent_down: the power of two comes last, rounding down.
inline int64_t align_exponent_down(int64_t centred, int left, const Multiplier& m) {
  return arithmetic::doubling_high_multiply_up(centred * (int64_t{1} << left), m.multiplier) >> -m.exponent;
}

inline int64_t align_power_of_two(int64_t q, int right_shift) {
  return arithmetic::divide_by_power_of_two_away(q, right_shift);
}

}  // namespace bittrue::rules

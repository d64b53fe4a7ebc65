// Scalar twin of src/bittrue/rules/divide.py.
#pragma once

#include <cstdint>

#include "arithmetic/transcendental.h"
#include "rules/rescale.h"

namespace bittrue::rules {

// The quotient times the multiplier, and the right shift that is left. Domain: second != 0, both below 2^30.
inline int64_t reciprocal_product(int64_t first, int64_t second, const Multiplier& m, int* right_shift) {
  const int64_t a = second < 0 ? -first : first, b = second < 0 ? -second : second;
  const arithmetic::Reciprocal reciprocal = arithmetic::reciprocal(b, 31);
  // Redundant sign bits.
  const int headroom = arithmetic::count_leading_zeros_s32(a < 0 ? ~a : a) - 1;
  const int64_t moved = arithmetic::wrap_s32(a * (int64_t{1} << headroom));
  const int64_t quotient = arithmetic::doubling_high_multiply_up(moved, reciprocal.raw);
  *right_shift = reciprocal.bits + headroom - m.exponent;
  return arithmetic::doubling_high_multiply_up(quotient, m.multiplier);
}

// Clears `defined` where the shift has no meaning.
inline int64_t q31_reciprocal_up_away(int64_t first, int64_t second, const Multiplier& m, bool* defined) {
  int right_shift = 0;
  const int64_t high = reciprocal_product(first, second, m, &right_shift);
  if (right_shift < 0 || right_shift > 31) {
    *defined = false;
    return 0;
  }
  return arithmetic::divide_by_power_of_two_away(high, right_shift);
}

inline int64_t q31_reciprocal_up_away_modulo_32(int64_t first, int64_t second, const Multiplier& m) {
  int right_shift = 0;
  const int64_t high = reciprocal_product(first, second, m, &right_shift);
  if ((right_shift & 63) < 32) return arithmetic::divide_by_power_of_two_away(high, right_shift & 31);
  return (high >> (right_shift & 31)) + (high >= 0 ? 1 : 0);
}

}  // namespace bittrue::rules

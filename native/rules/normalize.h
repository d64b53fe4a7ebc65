// Scalar twins of src/bittrue/rules/normalize.py, one element at a time.
#pragma once

#include <cmath>
#include <cstdint>

#include "arithmetic/transcendental.h"
#include "rules/rescale.h"

namespace bittrue::rules {

// `squares`: the row's sum of squares in 32 bits; one that wrapped below zero counts like 0 and 1 do.
inline arithmetic::InverseRoot inverse_length(int32_t squares) {
  return arithmetic::inverse_square_root(squares < 0 ? 0 : squares);
}

inline int64_t q31_exponent_plus_7_two_step_up_away(int64_t x, const arithmetic::InverseRoot& root) {
  return q31_two_step_up_away(x, {root.multiplier, root.exponent + 7, 0.0});
}

inline int64_t q31_exponent_plus_7_one_step_up(int64_t x, const arithmetic::InverseRoot& root) {
  return q31_one_step_up(x, {root.multiplier, root.exponent + 7, 0.0});
}

inline int64_t q31_times_128_two_step_up_away(int64_t x, const arithmetic::InverseRoot& root) {
  return q31_two_step_up_away(x * 128, {root.multiplier, root.exponent, 0.0});
}

// Lengths below 1e-6 do not scale a row up.
inline float length_or_epsilon(float squares) {
  const float length = std::sqrt(squares);
  return length < 1e-6f ? 1e-6f : length;
}

}  // namespace bittrue::rules

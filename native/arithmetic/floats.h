// Scalar twins of src/bittrue/arithmetic/floats.py: same names, same ties.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace bittrue::arithmetic {

// Drops the fraction; everything that does not fit 32 bits, and NaN, gives -2^31 (the x86 conversion).
template <class Real>
inline int32_t truncate_to_s32(Real x) {
  // Above -2^31 - 1 the fraction still goes: exact in binary64, and the next binary32 below -2^31 is far smaller.
  const bool fits = x > Real(-2147483649.0) && x < Real(2147483648.0);
  const int32_t whole = static_cast<int32_t>(fits ? x : Real(0));
  // In binary32 the bound above is -2^31 itself, which fits, but is what everything else gives, too.
  return fits ? whole : std::numeric_limits<int32_t>::min();
}

// A whole number; what does not fit 64 bits, and NaN, gives -2^63 (the x86 conversion).
inline int64_t whole_to_s64(double x) {
  return std::fabs(x) < 9223372036854775808.0 ? static_cast<int64_t>(x) : std::numeric_limits<int64_t>::min();
}

// The nearest whole number, ties away from zero, as `truncate_to_s32` sees it: adding the number just below one half
// reaches the next whole number only for a fraction of one half or more.
template <class Real>
inline int32_t round_away_to_s32(Real x) {
  const Real half_below = std::is_same<Real, float>::value ? Real(0x1.fffffep-2f) : Real(0x1.fffffffffffffp-2);
  return truncate_to_s32(x + std::copysign(half_below, x));
}

// a + b rounded to odd: an inexact sum becomes the one of its two neighbours whose last bit is 1.
inline double add_to_odd(double a, double b) {
  const double total = a + b, back = total - a, lost = (a - (total - back)) + (b - back);
  int64_t bits;
  std::memcpy(&bits, &total, sizeof bits);
  if (lost == 0 || !std::isfinite(total) || (bits & 1) != 0) return total;
  bits += (lost > 0) == (total > 0) ? 1 : -1;
  double result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

}  // namespace bittrue::arithmetic

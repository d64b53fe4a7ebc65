// Scalar twin of the rule real_even of src/bittrue/rules/requantize.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace bittrue::rules {

// Compares x * numerator with (whole + 1/2) * denominator, which are next to each other: -1, 0 or 1.
inline int compare_with_tie(double x, double numerator, double denominator, double whole) {
  __extension__ using Wide = __int128;
  int up = 0, down = 0;
  // 24 and 48 bits.
  const double top = std::frexp(numerator, &up) * 0x1p48, bottom = std::frexp(denominator, &down) * 0x1p24;
  Wide first = static_cast<Wide>(x) * static_cast<Wide>(top);
  Wide second = (2 * static_cast<Wide>(whole) + 1) * static_cast<Wide>(bottom);
  // first * 2^(up - 48) against second * 2^(down - 24 - 1).
  const int shift = (up - 48) - (down - 25);
  if (shift > 0) first <<= std::min(shift, 100);
  if (shift < 0) second <<= std::min(-shift, 100);
  return first < second ? -1 : first > second ? 1 : 0;
}

// round_even(acc * numerator / denominator) of the real numbers; beyond 2^40 only the sign is kept. Of 32-bit accumulators,
// products of two binary32 numbers, and a binary32 number that is not 0.
inline int64_t real_even(int64_t acc, double numerator, double denominator) {
  constexpr double kFar = 0x1p40, kDoubt = 0x1p-50;
  const auto x = static_cast<double>(acc);
  const double quotient = std::min(std::max(x * numerator / denominator, -kFar), kFar), size = std::fabs(quotient);
  const double whole = std::floor(size);
  double rounded = std::nearbyint(quotient);
  if (std::fabs((size - whole) - 0.5) <= size * kDoubt) {
    const int side = compare_with_tie(std::fabs(x), std::fabs(numerator), std::fabs(denominator), whole);
    const bool up = side > 0 || (side == 0 && std::fmod(whole, 2.0) != 0);
    rounded = std::copysign(up ? whole + 1 : whole, quotient);
  }
  return static_cast<int64_t>(rounded);
}

}  // namespace bittrue::rules

// Scalar twins of src/bittrue/arithmetic/rational_wide.py: binary64 operations in the order that is written, none fused, and
// without branches, so that loops become vectors.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "arithmetic/wide_elementary.h"

namespace bittrue::arithmetic::rational_wide {

using wide::bits_of, wide::from_bits;

// ((c0 x + c1) x + ...): the highest power's coefficient comes first.
template <int kCount>
inline double polynomial(double x, const double (&coefficients)[kCount]) {
  double result = coefficients[0];
  for (int i = 1; i < kCount; ++i) result = result * x + coefficients[i];
  return result;
}

inline double exp(double x) {
  constexpr double kLargest = 709.784, kSmallest = -745.519, kToWhole = 0x1.8p+52;
  constexpr double kTop[3] = {1.26177193074810590878e-4, 3.02994407707441961300e-2, 9.99999999999999999910e-1};
  constexpr double kBottom[4] = {3.00198505138664455042e-6, 2.52448340349684104192e-3, 2.27265548208155028766e-1, 2.0};
  const double raised = x < kSmallest ? kSmallest : x, limited = raised > kLargest ? kLargest : raised;
  const double shifted = limited * 1.4426950408889634 + kToWhole, m = shifted - kToWhole;
  const double r = (limited - m * 0.693145751953125) - m * 1.42860682030941723212e-6;
  const double square = r * r, top = polynomial(square, kTop) * r;
  const double p = top / (polynomial(square, kBottom) - top) * 2.0 + 1.0;
  // 2^m in two factors, of which the second one alone rounds.
  constexpr uint64_t kMoved = 2200;
  const uint64_t whole = bits_of(shifted) - (uint64_t{0x4338} << 48) + kMoved, half = whole >> 1;
  const auto power = [](uint64_t exponent) { return from_bits((exponent + 1023 - kMoved / 2) << 52); };
  const double result = p * power(half) * power(whole - half), number = x < kSmallest ? 0.0 : result;
  return x == x ? number : x;
}

inline double log(double x) {
  constexpr double kTop[2][3] = {{1.01875663804580931796e-4, 4.97494994976747001425e-1, 4.70579119878881725854},
                                 {1.44989225341610930846e1, 1.79368678507819816313e1, 7.70838733755885391666}};
  constexpr double kBottom[2][3] = {{1.0, 1.12873587189167450590e1, 4.52279145837532221105e1},
                                    {8.29875266912776603211e1, 7.11544750618563894466e1, 2.31251620126765340583e1}};
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // x = 2^e m, 1/2 <= m < 1.
  const bool tiny = x < 0x1p-1022;
  const double scaled = tiny ? x * 0x1p54 : x;
  const uint64_t bits = bits_of(scaled);
  const double m = from_bits((bits & 0xfffffffffffff) | 0x3fe0000000000000);
  const double field = from_bits(((bits >> 52) & 0x7ff) | 0x4330000000000000) - 0x1p52;
  const double e = field - (tiny ? 1076.0 : 1022.0);
  const bool low = m < 0.70710678118654752440;
  const double t = (m - 1.0) + (low ? m : 0.0), square = t * t, cube = square * t;
  const double top = polynomial(t, kTop[0]) * cube + polynomial(t, kTop[1]);
  const double bottom = polynomial(t, kBottom[0]) * cube + polynomial(t, kBottom[1]);
  const double logarithm = t + (top * cube / bottom - square * 0.5);
  const double finite = (e - (low ? 1.0 : 0.0)) * 0.6931471805599453 + logarithm;
  const double bounded = x == kInfinity ? x : finite, result = x == 0 ? -kInfinity : bounded;
  return x >= 0 ? result : from_bits(~uint64_t{0});
}

inline double tanh(double x) {
  constexpr double kLargest = 17.714196154005176;
  constexpr double kOdd[9] = {2.6158007860482230e-23, 7.6534862268749319e-19, 3.1309488231386680e-15,
                              4.2303918148209176e-12, 2.4618379131293676e-09, 6.8644367682497074e-07,
                              9.3839087674268880e-05, 5.9809711724441161e-03, 1.5184719640284322e-01};
  constexpr double kEven[10] = {6.463747022670968018e-21, 5.782506856739003571e-17,
                                1.293019623712687916e-13, 1.123643448069621992e-10,
                                4.492975677839633985e-08, 8.785185266237658698e-06,
                                8.295161192716231542e-04, 3.437448108450402717e-02,
                                4.851805297361760360e-01, 1.0};
  const double raised = x < -kLargest ? -kLargest : x, limited = raised > kLargest ? kLargest : raised;
  const double square = limited * limited;
  return (square * limited * polynomial(square, kOdd) + limited) / polynomial(square, kEven);
}

// 1 / (1 + e^-|x|) where x is positive, else 1 less that.
template <class Exponential>
inline double logistic(double x, const Exponential& exponential) {
  const double upper = 1.0 / (1.0 + exponential(-std::fabs(x))), lower = 1.0 - upper;
  return x > 0 ? upper : lower;
}

// |x| less whole quarter turns: the longer way where `medium`.
struct Angle {
  double rest;
  uint64_t turns;
};
inline Angle reduced(double x, bool medium) {
  constexpr double kQuarterTurns = 0.63661977236758134307553505349006, kSplit = 0x1p+24;
  constexpr double kTurn[4] = {-1.570796325802803, -9.920935184482005e-10, -6.123234014771656e-17,
                               1.903488962019325e-25};
  // Beyond these the C library takes over; what is no number stays so, without turns.
  const double size = std::fabs(x);
  const bool counts = size < 0x1p+60;
  const auto whole_of = [counts](double y) { return static_cast<int64_t>(counts ? y : 0.0); };
  if (!medium) {
    const int64_t turns = whole_of(size * kQuarterTurns + 0.5);
    const auto whole = static_cast<double>(turns);
    return {kTurn[1] * whole + (kTurn[0] * whole + size), static_cast<uint64_t>(turns)};
  }
  const double high = counts ? static_cast<double>(whole_of(size * (kQuarterTurns / kSplit))) * kSplit : size;
  const int64_t turns = whole_of((size * kQuarterTurns - high) + 0.5);
  const double low = counts ? static_cast<double>(turns) : size - high;
  double rest = size;
  for (int i = 0; i < 3; ++i) rest = kTurn[i] * low + (kTurn[i] * high + rest);
  return {kTurn[3] * (low + high) + rest, static_cast<uint64_t>(turns)};
}

// Sine or cosine of a number of a pair: `medium` where one of the two is that large. Domain: sizes up to 10^14.
template <bool kCosine>
inline double circular(double x, bool medium) {
  constexpr double kTop[2][5] = {
      {80737373.0, -13853547000.0, 727718024880.0, -11275015752000.0, 23594700729600.0},
      {4585922449.0, -1066023933480.0, 83284044283440.0, -2303682236856000.0, 15605159573203200.0}};
  constexpr double kBottom[2][5] = {{147173.0, 39328920.0, 5772800880.0, 522334612800.0, 23594700729600.0},
                                    {1029037.0, 345207016.0, 61570292784.0, 6603948711360.0, 346781323848960.0}};
  const Angle angle = reduced(x, medium);
  // Which of the two polynomials is hard to predict: both have the same operations.
  const uint64_t sine = (angle.turns ^ (kCosine ? 0 : 1)) & 1;
  const double square = angle.rest * angle.rest;
  const double top = polynomial(square, kTop[sine]), bottom = polynomial(square, kBottom[sine]);
  const double quotient = (top * (sine != 0 ? angle.rest : 1.0)) / (bottom * (sine != 0 ? 45.0 : 1.0));
  const uint64_t flip = kCosine ? (angle.turns + 1) << 62 : bits_of(x) ^ angle.turns << 62;
  return from_bits(bits_of(quotient) ^ (flip & uint64_t{1} << 63));
}

// The C library's functions; NaN stays as it is. What is no number has the sign that x86-64 gives it.
inline double library_exp(double x) { return x == x ? wide::exp(x) : x; }
inline double library_tanh(double x) { return x == x ? wide::tanh(x) : x; }
inline double library_sin(double x) { return std::isinf(x) ? -wide::without_value() : x == x ? wide::sin(x) : x; }
inline double library_cos(double x) { return std::isinf(x) ? -wide::without_value() : x == x ? wide::cos(x) : x; }
inline double library_log(double x) { return x == x ? wide::log(x) : x; }
inline double library_power(double x, double y) {
  const double result = wide::power(x, y);
  return result != result && x == x && y == y ? -result : result;
}

}  // namespace bittrue::arithmetic::rational_wide

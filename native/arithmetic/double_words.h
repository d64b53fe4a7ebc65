// Scalar twin of src/bittrue/arithmetic/double_words.py: powers by logarithms that are unevaluated sums of two binary32
// numbers. Every operation is rounded, none fused, and there are no branches, so that loops become vectors.
#pragma once

#include <cmath>
#include <cstdint>

#include "arithmetic/rational.h"
#include "arithmetic/rational_wide.h"

namespace bittrue::arithmetic::double_words {

struct Pair {
  float high, low;
};

// x + y, where x has the larger exponent: the sum and its error.
inline Pair sum(float x, float y) {
  const float total = x + y;
  return {total, y - (total - x)};
}

inline Pair sum(Pair x, Pair y) {
  const Pair total = sum(x.high, y.high);
  return sum(total.high, (y.low + total.low) + x.low);
}

// x y and its error, both exact.
inline Pair product(float x, float y) {
  const float result = x * y;
  return {result, static_cast<float>(static_cast<double>(x) * y - static_cast<double>(result))};
}

inline Pair product(Pair x, float y) {
  const Pair high = product(x.high, y), total = sum(high.high, x.low * y);
  return sum(total.high, total.low + high.low);
}

// Domain: sqrt(1/2) <= m < sqrt(2).
inline Pair log2(float m) {
  constexpr float kCoefficients[9] = {
      9.7010828554630279541015625e-02f,  -1.6896486282348632812500000e-01f, 1.7200836539268493652343750e-01f,
      -1.7892272770404815673828125e-01f, 2.0505344867706298828125000e-01f,  -2.4046677350997924804687500e-01f,
      2.8857553005218505859375000e-01f,  -3.6067414283752441406250000e-01f, 4.8089790344238281250000000e-01f};
  constexpr double kLast[2] = {-7.2134751588268664068692714863573e-01, 1.442695041742110273474963832995854};
  const float x = m - 1.0f;
  Pair pair = product(x, rational::polynomial(x, kCoefficients));
  for (const double wide : kLast) {
    const auto high = static_cast<float>(wide), low = static_cast<float>(wide - static_cast<double>(high));
    pair = product(sum(Pair{high, low}, pair), x);
  }
  return pair;
}

// Ties away from zero; |x| < 2^31.
inline float nearest(float x) { return static_cast<float>(static_cast<int32_t>(x + std::copysign(0.49999997f, x))); }

// 2^(y log2 x) for finite x > 0 and |y| < 2^20.
inline float power_of_positive(float x, float y) {
  namespace detail = elementary_detail;
  constexpr float kLn2 = 0.693147180559945309f;
  const bool tiny = x < 0x1p-126f;
  const float scaled = tiny ? x * 0x1p24f : x;
  const uint32_t bits = detail::bits_of(scaled);
  const float half = detail::from_bits((bits & 0x7fffff) | 0x3f000000);
  const bool small = half < 0.707106781186547524f;
  const int32_t e = static_cast<int32_t>(bits >> 23) - (tiny ? 150 : 126) - (small ? 1 : 0);
  const Pair total = sum(product(static_cast<float>(e), y), product(log2(small ? half * 2.0f : half), y));
  const float n = nearest(total.high), r = (total.high - n) + total.low, more = nearest(r), both = n + more;
  const float raised = both < -400.0f ? -400.0f : both, whole = raised > 400.0f ? 400.0f : raised;
  const double power = rational::exp(kLn2 * (r - more));
  return static_cast<float>(
      power * rational_wide::from_bits((rational_wide::bits_of(static_cast<double>(whole) + 0x1.8p52) + 1023) << 52));
}

// By squares, of the reciprocal for negative exponents, from -3 to 7.
inline float products(float x, int exponent) {
  float result = 1.0f, rest = exponent < 0 ? 1.0f / x : x;
  int count = exponent < 0 ? -exponent : exponent;
  for (; count > 1; count /= 2) {
    if (count % 2 != 0) result = result * rest;
    rest = rest * rest;
  }
  return count != 0 ? result * rest : result;
}

}  // namespace bittrue::arithmetic::double_words

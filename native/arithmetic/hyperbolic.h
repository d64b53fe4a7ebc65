// Scalar twin of src/bittrue/arithmetic/hyperbolic.py: the hyperbolic tangent in binary64. kJoined: products that are
// added to something are not rounded by themselves.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace bittrue::arithmetic::binary64 {

inline uint32_t high_word(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<uint32_t>(bits >> 32) & 0x7FFFFFFFu;
}

inline double power_of_two(int exponent) {
  const uint64_t bits = static_cast<uint64_t>(exponent + 1023) << 52;
  double result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

// exp(x) - 1 for -38 < x < 44.
template <bool kJoined>
inline double expm1(double x) {
  const auto fma = [](double a, double b, double c) { return kJoined ? std::fma(a, b, c) : a * b + c; };
  constexpr double kQ[] = {-3.33333333333331316428e-02, 1.58730158725481460165e-03, -7.93650757867487942473e-05,
                           4.00821782732936239552e-06, -2.01099218183624371326e-07};
  const uint32_t high = high_word(x);
  const bool positive = x > 0;
  if (high < 0x3C900000u) return x;
  int k = 0;
  if (high >= 0x3FF0A2B2u) {
    k = static_cast<int>(1.44269504088896338700e00 * x + (positive ? 0.5 : -0.5));
  } else if (high > 0x3FD62E42u) {
    k = positive ? 1 : -1;
  }
  const double upper = fma(-k, 6.93147180369123816490e-01, x), lower = k * 1.90821492927058770002e-10;
  const double rest = upper - lower, lost = (upper - rest) - lower;
  const double half = 0.5 * rest, square = rest * half, fourth = square * square;
  double r = fma(fourth, fma(square, kQ[2], kQ[1]), fma(square, kQ[0], 1.0));
  r = fma(fourth * fourth, fma(square, kQ[4], kQ[3]), r);
  const double t = fma(-r, half, 3.0);
  double e = square * ((r - t) / fma(-rest, t, 6.0));
  if (k == 0) return rest - fma(rest, e, -square);
  e = fma(rest, e - lost, -lost);
  e = e - square;
  if (k == -1) return 0.5 * (rest - e) - 0.5;
  if (k == 1) return rest < -0.25 ? -2.0 * (e - (rest + 0.5)) : 1.0 + 2.0 * (rest - e);
  const double power = power_of_two(k), inverse = power_of_two(-k);
  if (k <= -2 || k > 56) return (1.0 - (e - rest)) * power - 1.0;
  if (k < 20) return ((1.0 - inverse) - (e - rest)) * power;
  return ((rest - (e + inverse)) + 1.0) * power;
}

template <bool kJoined = false>
inline double tanh(double x) {
  const double size = std::fabs(x);
  if (x != x || size < 0x1p-55) return x;
  double result = 1.0;
  if (size < 1) {
    const double under = expm1<kJoined>(-2.0 * size);
    result = -under / (under + 2.0);
  } else if (size < 22) {
    result = 1.0 - 2.0 / (expm1<kJoined>(2.0 * size) + 2.0);
  }
  return std::copysign(result, x);
}

}  // namespace bittrue::arithmetic::binary64

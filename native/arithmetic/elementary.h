// Scalar twins of src/bittrue/arithmetic/elementary.py: exp, expm1 and tanh in binary32, pinned to the bit.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace bittrue::arithmetic {

namespace elementary_detail {

inline uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

inline double from_bits(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// x * 2^exponent by adding to the exponent field: x and the result are normal.
inline float scale(float x, int exponent) { return from_bits(bits_of(x) + (static_cast<uint32_t>(exponent) << 23)); }

// 2^(i / 32) rounded to binary64, less i / 32 in the exponent field.
inline constexpr uint64_t kPowers[32] = {
    0x3FF0000000000000, 0x3FEFD9B0D3158574, 0x3FEFB5586CF9890F, 0x3FEF9301D0125B51, 0x3FEF72B83C7D517B,
    0x3FEF54873168B9AA, 0x3FEF387A6E756238, 0x3FEF1E9DF51FDEE1, 0x3FEF06FE0A31B715, 0x3FEEF1A7373AA9CB,
    0x3FEEDEA64C123422, 0x3FEECE086061892D, 0x3FEEBFDAD5362A27, 0x3FEEB42B569D4F82, 0x3FEEAB07DD485429,
    0x3FEEA47EB03A5585, 0x3FEEA09E667F3BCD, 0x3FEE9F75E8EC5F74, 0x3FEEA11473EB0187, 0x3FEEA589994CCE13,
    0x3FEEACE5422AA0DB, 0x3FEEB737B0CDC5E5, 0x3FEEC49182A3F090, 0x3FEED503B23E255D, 0x3FEEE89F995AD3AD,
    0x3FEEFF76F2FB5E47, 0x3FEF199BDD85529C, 0x3FEF3720DCEF9069, 0x3FEF5818DCFBA487, 0x3FEF7C97337B9B5F,
    0x3FEFA4AFA2A490DA, 0x3FEFD0765B6E4540};

// Adding and subtracting it rounds to a whole number, ties to even; the sum's low bits are that number.
inline constexpr double kToWhole = 0x1.8p+52;

// 2^(k / 32) * 2^(r / (32 unit)): a table entry times a cubic polynomial.
inline double power_of_two(int64_t k, double r, double unit) {
  const double factor = from_bits(kPowers[k & 31] + (static_cast<uint64_t>(k) << 47));
  const double c3 = 0x1.c6af84b912394p-5 * (unit * unit * unit), c2 = 0x1.ebfce50fac4f3p-3 * (unit * unit);
  const double c1 = 0x1.62e42ff0c52d6p-1 * unit;
  return ((c3 * r + c2) * (r * r) + (c1 * r + 1.0)) * factor;
}

}  // namespace elementary_detail

inline float exp(float x) {
  namespace detail = elementary_detail;
  if (!(x >= -0x1.9fe368p6f && x <= 0x1.62e42ep6f)) {
    return x > 0 ? std::numeric_limits<float>::infinity() : x < 0 ? 0.0f : x + x;
  }
  const double scaled = static_cast<double>(x) * (0x1.71547652b82fep+0 * 32);
  const double k = (scaled + detail::kToWhole) - detail::kToWhole;
  return static_cast<float>(detail::power_of_two(static_cast<int64_t>(k), scaled - k, 1.0 / 32));
}

inline float expm1(float x) {
  namespace detail = elementary_detail;
  const uint32_t magnitude = detail::bits_of(x) & 0x7fffffff;
  const bool negative = detail::bits_of(x) >> 31;
  if (magnitude >= (negative ? 0x4195b844u : 0x42b17218u)) {
    if (magnitude > 0x7f800000) return x + x;
    return negative ? -1.0f : std::numeric_limits<float>::infinity();
  }
  if (magnitude < 0x33000000) return x;
  constexpr float kLn2High = 6.9313812256e-01f, kLn2Low = 9.0580006145e-06f;
  const float sign = negative ? -1.0f : 1.0f;
  const int k = magnitude <= 0x3eb17218  ? 0
                : magnitude < 0x3f851592 ? static_cast<int>(sign)
                                         : static_cast<int>(1.4426950216e+00f * x + sign * 0.5f);
  const float multiple = static_cast<float>(k);
  const float high = x - multiple * kLn2High, low = multiple * kLn2Low;
  x = high - low;
  const float correction = (high - x) - low;
  const float half_x = 0.5f * x, h = x * half_x;
  const float ratio =
      1.0f +
      h * (-3.3333335072e-02f +
           h * (1.5873016091e-03f + h * (-7.9365076090e-05f + h * (4.0082177293e-06f + h * -2.0109921195e-07f))));
  const float t = 3.0f - ratio * half_x;
  float e = h * ((ratio - t) / (6.0f - x * t));
  e = (x * (e - correction) - correction) - h;
  if (k == 0) return x - e;
  if (k == -1) return 0.5f * (x - e) - 0.5f;
  if (k == 1) return x < -0.25f ? -2.0f * (e - (x + 0.5f)) : 1.0f + 2.0f * (x - e);
  if (k <= -2 || k > 56) return detail::scale(1.0f - (e - x), k) - 1.0f;
  const float power = detail::from_bits(static_cast<uint32_t>(0x7f - k) << 23);
  if (k < 23) return detail::scale((1.0f - power) - (e - x), k);
  return detail::scale((x - (e + power)) + 1.0f, k);
}

inline float tanh(float x) {
  const float magnitude = std::fabs(x);
  if (magnitude < 0x1p-55f) return x;
  float result = 1.0f;
  if (magnitude < 22.0f) {
    const bool large = magnitude >= 1.0f;
    const float t = expm1(large ? 2.0f * magnitude : -2.0f * magnitude);
    result = large ? 1.0f - 2.0f / (t + 2.0f) : -t / (t + 2.0f);
  } else if (x != x) {
    return x + x;
  }
  return std::copysign(result, x);
}

}  // namespace bittrue::arithmetic

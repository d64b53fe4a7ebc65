// Twins of src/bittrue/arithmetic/short_functions.py: numbers that come from binary16, in binary32.
#pragma once

#include <cmath>
#include <cstdint>

#include "arithmetic/fused.h"
#include "arithmetic/narrow_float.h"
#include "arithmetic/processor_estimates.h"

namespace bittrue::arithmetic::short_functions {

inline float limited(float x, float largest) {
  const float below = x > largest ? largest : x;
  return below < -largest ? -largest : below;
}

// a b + c, fused or each rounded.
template <bool kApart>
inline float multiply_add(float a, float b, float c) {
  if constexpr (!kApart) return std::fma(a, b, c);
  const float product = a * b;
  return product + c;
}

// Highest power first.
template <bool kApart, size_t kCount>
inline float polynomial(float x, const float (&coefficients)[kCount]) {
  float result = coefficients[0];
  for (size_t i = 1; i < kCount; ++i) result = multiply_add<kApart>(x, result, coefficients[i]);
  return result;
}

inline float tanh(float x) {
  constexpr float kOdd[] = {0x1.A9p-11f, 0x1.B38p-4f, 1.0f}, kEven[] = {0x1.CDCp-7f, 0x1.C2p-2f, 1.0f};
  if (x != x) return x + x;
  const float z = limited(x, 4.5f), square = z * z;
  return polynomial<false>(square, kOdd) * z / polynomial<false>(square, kEven);
}

inline float exp_on_negative(float x) {
  if (x < -9.703125f) return 0.0f;
  const float biased = std::fma(x, 0x1.715476p0f, 0x1.8000FEp23f);
  const float power = fused::power_of_two(biased);
  const float t = std::fma(biased - 0x1.8000FEp23f, -0x1.62E430p-1f, x);
  return std::fma(t * power, std::fma(t, 0x1.FF3A32p-2f, 0x1.039E10p0f), power);
}

inline float logistic(float x, const estimates::Inverse& inverse) {
  if (x != x) return -std::fabs(x + x);
  const float e = exp_on_negative(-std::fabs(x)), share = e * inverse(e + 1.0f);
  return std::signbit(x) ? share : 1.0f - share;
}

// x less a whole multiple of pi (times `share`), and the number in whose lowest bits that multiple stands.
template <bool kApart>
inline float reduced(float x, float inverse, float share, float* biased) {
  constexpr float kFused[] = {0x1.921FB6p1f, -0x1.777A5Cp-24f, -0x1.EE59DAp-49f};
  constexpr float kParts[] = {0x1.92p1f, 0x1.FB4p-11f, 0x1.444p-23f, 0x1.68Cp-38f, 0x1.1A8p-53f};
  const float product = x * inverse;
  *biased = product + 0x1.8p23f;
  const float whole = *biased - 0x1.8p23f;
  if constexpr (kApart) {
    for (const float part : kParts) x = multiply_add<true>(-whole, part * share, x);
  } else {
    for (const float part : kFused) x = std::fma(-whole, part * share, x);
  }
  return x;
}

// The sine of `rest`, its sign changed where the uppermost bit of `flip` is set.
template <bool kApart>
inline float sine(float rest, uint32_t flip) {
  constexpr float kSine[] = {-0x1.A102BCp-13f, 0x1.111360p-7f, -0x1.555554p-3f, 1.0f};
  rest = fused::from_bits(fused::bits(rest) ^ (flip & 0x80000000));
  return polynomial<kApart>(rest * rest, kSine) * rest;
}

// What has no sine: a NaN stays, an infinity gives one.
inline float without_sine(float x) { return x != x ? x + x : fused::from_bits(0xFFC00000); }

template <bool kApart>
inline float sin(float x) {
  if (!std::isfinite(x)) return without_sine(x);
  float biased = 0;
  const float rest = reduced<kApart>(x, 0x1.45F306p-2f, 1.0f, &biased);
  return sine<kApart>(rest, fused::bits(biased) << 31);
}

template <bool kApart>
inline float cos(float x) {
  if (!std::isfinite(x)) return without_sine(x);
  float biased = 0;
  const float rest = reduced<kApart>(x, 0x1.45F306p-1f, 0.5f, &biased);
  const uint32_t quarters = fused::bits(biased + 1.0f);
  return sine<kApart>(quarters & 1 ? 0x1.921FB6p0f - std::fabs(rest) : rest, quarters << 30);
}

template <bool kApart>
inline float gelu_by_tanh(float x) {
  constexpr float kOdd[] = {0x1.1D21DCp-8f, 0x1.2F575Cp-3f, 0x1.9863E2p-1f};
  constexpr float kEven[] = {0x1.4E6884p-5f, 0x1.67BC2Cp-2f, 1.0f};
  if (x != x) return x + x;
  const float z = limited(x, kApart ? 3.26953125f : 3.263671875f), square = z * z;
  return x * 0.5f * (z * polynomial<kApart>(square, kOdd) / polynomial<kApart>(square, kEven) + 1.0f);
}

inline float half(float x) { return half_to_float(float_to_half(x)); }

// Every operation rounded to binary16, a product and the sum behind it once; NaN loses its payload.
inline float gelu(float x) {
  if (x != x) return std::copysign(fused::from_bits(0x7FC00000), x);
  const float z = limited(x, 3.5f), square = half(z * z);
  const auto rounded = [square](float high, float middle, float low) {
    const float first = half(multiply_add<true>(square, half(high), half(middle)));
    return half(multiply_add<true>(square, first, half(low)));
  };
  const float odd = half(z * rounded(4.5998394489e-03f, 1.5397867560e-01f, 7.9763203859e-01f));
  const float quotient = half(odd / rounded(4.2862996459e-02f, 3.5756936669e-01f, 1.0f));
  return half(x * 0.5f) * half(quotient + 1.0f);
}

// A result in binary16; a NaN keeps the bits of its payload that fit.
inline uint16_t stored(float x) {
  const uint32_t payload = x != x ? fused::bits(x) >> 13 & 0x3FF : 0;
  return static_cast<uint16_t>(float_to_half(x) | payload);
}

}  // namespace bittrue::arithmetic::short_functions

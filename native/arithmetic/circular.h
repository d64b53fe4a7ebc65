// Scalar twins of src/bittrue/arithmetic/circular.py: circular and hyperbolic functions and their inverses in binary32.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "arithmetic/elementary.h"

namespace bittrue::arithmetic {

namespace circular_detail {

using elementary_detail::bits_of;
using elementary_detail::from_bits;
using elementary_detail::horner;
using elementary_detail::multiply_add;
using elementary_detail::without_value;

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline uint32_t magnitude(float x) { return bits_of(x) & 0x7fffffffu; }
// Without the last 12 bits.
inline float cut(float x) { return from_bits(bits_of(x) & 0xfffff000u); }
inline float positive_nan() { return from_bits(0x7fc00000u); }

// tan(x + y) for |x| up to pi / 4, or -1 / tan(x + y) where `odd`.
template <bool kJoined>
inline float tangent(float x, float y, bool odd) {
  constexpr float kFirst = 3.3333334327e-01f;
  constexpr float kEven[6] = {1.3333334029e-01f, 2.1869488060e-02f, 3.5920790397e-03f,
                              5.8804126456e-04f, 7.8179444245e-05f, -1.8558637748e-05f};
  constexpr float kOdd[6] = {5.3968254477e-02f, 8.8632395491e-03f, 1.4562094584e-03f,
                             2.4646313977e-04f, 7.1407252108e-05f, 2.5907305826e-05f};
  const uint32_t size = magnitude(x);
  if (size < 0x39000000u) return odd ? -1.0f / x : x;
  const bool wide = size >= 0x3f2ca140u;
  const float sign = std::signbit(x) ? -1.0f : 1.0f, way = odd ? -1.0f : 1.0f;
  if (wide) {
    x = (7.8539812565e-01f - sign * x) + (3.7748947079e-08f - sign * y);
    y = 0.0f;
    if (std::fabs(x) < 0x1p-13f) return sign * way * (1.0f - 2.0f * way * x);
  }
  const float z = x * x, w = z * z;
  const auto fma = multiply_add<kJoined>;
  const float s = z * x, all = fma(z, horner<kJoined>(w, kOdd), horner<kJoined>(w, kEven));
  const float r = fma(kFirst, s, fma(z, fma(s, all, y), y)), whole = x + r;
  if (wide) return sign * (way - 2.0f * (x - (whole * whole / (whole + way) - r)));
  if (!odd) return whole;
  const float high = cut(whole), low = r - (high - x), inverse = -1.0f / whole, part = cut(inverse);
  return fma(inverse, fma(part, low, fma(part, high, 1.0f)), part);
}

}  // namespace circular_detail

template <bool kJoined = false>
inline float cosh(float x) {
  namespace detail = circular_detail;
  const uint32_t size = detail::magnitude(x);
  if (x != x) return x + x;
  if (size > 0x42b2d4fcu) return detail::kInfinity;
  if (size < 0x24000000u) return 1.0f;
  const float positive = std::fabs(x);
  if (size < 0x3eb17218u) {
    const float t = expm1<kJoined>(positive);
    return 1.0f + (t * t) / ((1.0f + t) + (1.0f + t));
  }
  if (size < 0x42b17180u) {
    const float e = exp(positive);
    return size < 0x41b00000u ? 0.5f * e + 0.5f / e : 0.5f * e;
  }
  const float root = exp(0.5f * positive);
  return (0.5f * root) * root;
}

template <bool kJoined = false>
inline float sinh(float x) {
  namespace detail = circular_detail;
  const uint32_t size = detail::magnitude(x);
  if (x != x) return x + x;
  if (size > 0x42b2d4fcu) return std::copysign(detail::kInfinity, x);
  if (size < 0x31800000u) return x;
  const float positive = std::fabs(x), half = std::copysign(0.5f, x);
  if (size < 0x41b00000u) {
    const float t = expm1<kJoined>(positive);
    return size < 0x3f800000u ? half * (2.0f * t - t * t / (t + 1.0f)) : half * (t + t / (t + 1.0f));
  }
  if (size < 0x42b17180u) return half * exp(positive);
  const float root = exp(0.5f * positive);
  return (half * root) * root;
}

template <bool kJoined = false>
inline float tan(float x) {
  namespace detail = circular_detail;
  constexpr double kHalfPi = 0x1.921fb54442d18p0;
  if (!(std::fabs(x) < detail::kInfinity)) return x != x ? x + x : detail::without_value<kJoined>();
  if (detail::magnitude(x) <= 0x3f490fdau) return detail::tangent<kJoined>(x, 0.0f, false);
  const elementary_detail::Reduced reduced = elementary_detail::reduce(x);
  double r = reduced.r;
  // Large angles were reduced without their sign; small ones lose their turns by one product and one difference, which are
  // rounded once where they are joined.
  if (std::fabs(x) < 120.0f) {
    const double wide = x;
    if (!kJoined) r = wide - std::nearbyint((wide - r) / kHalfPi) * kHalfPi;
  } else if (std::signbit(x)) {
    r = -r;
  }
  const auto high = static_cast<float>(r);
  return detail::tangent<kJoined>(high, static_cast<float>(r - static_cast<double>(high)), (reduced.n & 1) != 0);
}

template <bool kJoined = false>
inline float asinh(float x) {
  namespace detail = circular_detail;
  constexpr float kLn2 = 6.9314718246e-01f;
  const uint32_t size = detail::magnitude(x);
  if (size >= 0x7f800000u) return x + x;
  if (size < 0x38000000u) return x;
  const float positive = std::fabs(x), square = positive * positive;
  float result;
  if (size > 0x47000000u) {
    result = log(positive) + kLn2;
  } else if (size > 0x40000000u) {
    result = log(2.0f * positive + 1.0f / (std::sqrt(square + 1.0f) + positive));
  } else {
    result = log1p<kJoined>(positive + square / (1.0f + std::sqrt(1.0f + square)));
  }
  return std::copysign(result, x);
}

template <bool kJoined = false>
inline float acosh(float x) {
  namespace detail = circular_detail;
  constexpr float kLn2 = 6.9314718246e-01f;
  if (!(x >= 1.0f)) return x != x ? x + x : detail::without_value<kJoined>();
  if (x == 1.0f) return 0.0f;
  if (x >= 0x1p28f) return x == detail::kInfinity ? x : log(x) + kLn2;
  if (x > 2.0f) return log(2.0f * x - 1.0f / (x + std::sqrt(detail::multiply_add<kJoined>(x, x, -1.0f))));
  const float t = x - 1.0f;
  return log1p<kJoined>(t + std::sqrt(2.0f * t + t * t));
}

template <bool kJoined = false>
inline float atanh(float x) {
  const float size = std::fabs(x);
  if (!(size <= 1.0f)) return x != x ? x + x : circular_detail::without_value<kJoined>();
  if (size < 0x1p-28f) return x;
  if (size == 1.0f) return std::copysign(circular_detail::kInfinity, x);
  const float twice = size + size;
  const float inner = size < 0.5f ? twice + twice * size / (1.0f - size) : twice / (1.0f - size);
  return std::copysign(0.5f * log1p<kJoined>(inner), x);
}

template <bool kJoined = false>
inline float asin(float x) {
  namespace detail = circular_detail;
  constexpr float kPolynomial[5] = {1.666675248e-1f, 7.495297643e-2f, 4.547037598e-2f, 2.417951451e-2f,
                                    4.216630880e-2f};
  constexpr float kHigh = 1.57079637050628662109375f, kLow = -4.37113900018624283e-8f;
  constexpr float kQuarterPi = 0.785398185253143310546875f;
  const uint32_t size = detail::magnitude(x);
  if (size > 0x3f800000u) return x != x ? x + x : detail::positive_nan();
  if (size == 0x3f800000u) return x * kHigh + x * kLow;
  if (size < 0x32000000u) return x;
  const auto fma = detail::multiply_add<kJoined>;
  const float t = size < 0x3f000000u ? x * x : (1.0f - std::fabs(x)) * 0.5f;
  const float p = t * detail::horner<kJoined>(t, kPolynomial);
  if (size < 0x3f000000u) return fma(x, p, x);
  const float root = std::sqrt(t);
  if (size >= 0x3f79999au) return std::copysign(kHigh - (2.0f * fma(root, p, root) - kLow), x);
  const float w = detail::cut(root), c = fma(-w, w, t) / (root + w);
  return std::copysign(kQuarterPi - (fma(2.0f * root, p, -(kLow - 2.0f * c)) - (kQuarterPi - 2.0f * w)), x);
}

template <bool kJoined = false>
inline float acos(float x) {
  namespace detail = circular_detail;
  constexpr float kTop[6] = {1.6666667163e-01f,  -3.2556581497e-01f, 2.0121252537e-01f,
                             -4.0055535734e-02f, 7.9153501429e-04f,  3.4793309169e-05f};
  constexpr float kBottom[5] = {1.0f, -2.4033949375e00f, 2.0209457874e00f, -6.8828397989e-01f, 7.7038154006e-02f};
  constexpr float kHigh = 1.5707962513e00f, kLow = 7.5497894159e-08f, kPi = 3.1415925026e00f;
  const uint32_t size = detail::magnitude(x);
  if (size > 0x3f800000u) return x != x ? x + x : detail::positive_nan();
  if (size == 0x3f800000u) return x < 0 ? kPi + 2.0f * kLow : 0.0f;
  if (size <= 0x23000000u) return kHigh + kLow;
  const bool near = size < 0x3f000000u;
  const float z = near ? x * x : (x < 0 ? 1.0f + x : 1.0f - x) * 0.5f;
  const float ratio = z * detail::horner<kJoined>(z, kTop) / detail::horner<kJoined>(z, kBottom);
  const auto fma = detail::multiply_add<kJoined>;
  if (near) return kHigh - (x - fma(-x, ratio, kLow));
  const float root = std::sqrt(z);
  if (x < 0) return kPi - 2.0f * (root + fma(ratio, root, -kLow));
  const float high = detail::cut(root), low = fma(-high, high, z) / (root + high);
  return 2.0f * (high + fma(ratio, root, low));
}

}  // namespace bittrue::arithmetic

// Scalar twins of src/bittrue/arithmetic/rational.py: binary32 operations in the order that is written. With kFused a
// product and the sum that it is part of are rounded once.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "arithmetic/elementary.h"

namespace bittrue::arithmetic::rational {

// a b + c.
template <bool kFused>
inline float joined(float a, float b, float c) {
  return kFused ? std::fma(a, b, c) : a * b + c;
}

// ((c0 x + c1) x + ...): the highest power's coefficient comes first.
template <bool kFused = false, int kCount = 0>
inline float polynomial(float x, const float (&coefficients)[kCount]) {
  float result = coefficients[0];
  for (int i = 1; i < kCount; ++i) result = joined<kFused>(result, x, coefficients[i]);
  return result;
}

// 2^exponent, exponent in [-126, 127].
inline float power_of_two(int exponent) {
  const auto bits = static_cast<uint32_t>(exponent + 127) << 23;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

template <bool kFused = false>
inline float tanh(float x) {
  constexpr float kLargest = kFused ? 8.01773357391357422f : 7.90738964080810547f;  // from here on the quotient is 1
  constexpr float kOdd[4] = {1.394553628e-8f, 2.102733560e-5f, 3.520756727e-3f, 1.340216100e-1f};
  constexpr float kEven[5] = {8.015776984e-7f, 3.326951409e-4f, 2.597254514e-2f, 4.673548340e-1f, 1.0f};
  x = x > kLargest ? kLargest : x < -kLargest ? -kLargest : x;
  const float x2 = x * x;
  return joined<kFused>(x2 * x, polynomial<kFused>(x2, kOdd), x) / polynomial<kFused>(x2, kEven);
}

// Domain: -130 <= x <= 40; `large`: 40 < x <= 88.723. Without branches, as all of these, so that loops become vectors.
template <bool kFused = false>
inline float exp(float x, bool large = false) {
  const float near = joined<kFused>(x, 1.44269504088896341f, 0.5f);
  const int towards_zero = static_cast<int>(near);
  const int whole = towards_zero - (near < static_cast<float>(towards_zero) ? 1 : 0);
  const auto m = static_cast<float>(whole);
  const float r = joined<kFused>(m, 2.12194440e-4f, joined<kFused>(m, -0.693359375f, x));
  const float r2 = r * r;
  const float even =
      joined<kFused>(r2, joined<kFused>(r2, 1.37449637986719608306884765625e-3f, 4.166965186595916748046875e-2f),
                     0.49999988079071044921875f);
  const float odd = joined<kFused>(r2, 8.36894474923610687255859375e-3f, 0.16666518151760101318359375f);
  const float p = joined<kFused>(r2, joined<kFused>(r, odd, even), r + 1.0f);
  // p is near 1: only the second product can leave the normal numbers.
  const float power = p * power_of_two(whole + (large ? -64 : 64)) * (large ? 0x1p64f : 0x1p-64f);
  return x < -104.0f ? 0.0f : power;
}

template <bool kFused = false>
inline float exp_of_any(float x) {
  constexpr float kLeast = -130.0f, kMost = 88.723f;
  const float raised = x > kLeast ? x : kLeast, inside = raised < kMost ? raised : kMost;
  const float power = exp<kFused>(inside, inside > 40.0f),
              number = x >= kMost ? std::numeric_limits<float>::infinity() : power;
  return x == x ? number : x + x;
}

// The mask of a comparison.
inline float every_bit() { return elementary_detail::from_bits(0xffffffffu); }

inline float log(float x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // x = 2^exponent m, 1/2 <= m < 1.
  const bool tiny = x < 0x1p-126f;
  const uint32_t bits = elementary_detail::bits_of(tiny ? x * 0x1p24f : x);
  const float m = elementary_detail::from_bits((bits & 0x007fffffu) | 0x3f000000u);
  const bool low = m < 0.707106781186547524f;
  const float t = (m - 1.0f) + (low ? m : 0.0f);
  const auto exponent = static_cast<float>(static_cast<int>(bits >> 23) - 126 - (tiny ? 24 : 0) - (low ? 1 : 0));
  const float over = ((t * 0.18256296349849254f + 1.0000000190281063f) * t + 1.0000000190281136f) * t;
  const float under = ((t * 0.049616247954120038f + 0.59923249590823520f) * t + 1.4999999999999927f) * t + 1.0f;
  const float finite = exponent * 0.693147180559945f + over / under;
  const float positive = x == kInfinity ? x : finite, number = x == 0.0f ? -kInfinity : positive;
  return x >= 0.0f ? number : every_bit();
}

// Domain: 0 <= x <= 1.
inline float log1p(float x) {
  const float moved = x + 1.0f, logarithm = log(moved);
  return moved == 1.0f ? x : x * (logarithm / (moved - 1.0f));
}

// From here on 1 / (1 + e^-x) is 1.
inline constexpr float kLogisticLargest = 16.6355324f;

// Domain: any x.
template <bool kFused = false>
inline float logistic(float x) {
  if (x < -104.0f) return 0.0f;
  const float half = (x > kLogisticLargest ? kLogisticLargest : x) * 0.5f;
  if (half != half) return half + half;
  const float m = std::floor(joined<kFused>(half, 1.44269504088896341f, 0.5f));
  const float r = joined<kFused>(m, 2.12194440e-4f, joined<kFused>(m, -0.693359375f, half));
  const float r2 = r * r;
  const float even = joined<kFused>(r2, 4.1898667812347412109375e-2f, 0.49999141693115234375f);
  const float odd = joined<kFused>(r2, 8.33471305668354034423828125e-3f, 0.16666877269744873046875f);
  const float p = joined<kFused>(r2, joined<kFused>(r, odd, even), r + 1.0f);
  // m lies in [-76, 13]: 2^m is normal, and so is the product.
  float e = p * power_of_two(static_cast<int>(m));
  e = e * e;
  return e / (1.0f + e);
}

// `exponential` gives e^(-h) of the rounded square h in [1, 121]. Both forms are computed, so that loops become
// vectors.
template <class Exponential>
inline float erfc(float x, const Exponential& exponential) {
  constexpr float kCentre[6] = {5.61802298761904239654541015625e-04f, -4.91381669417023658752441406250e-03f,
                                2.67075151205062866210937500000e-02f, -1.12800106406211853027343750000e-01f,
                                3.76122951507568359375000000000e-01f, -1.12837910652160644531250000000e+00f};
  constexpr float kTop[4] = {1.0208116471767425537109375e-01f, 4.2920666933059692382812500e-01f,
                             3.2379078865051269531250000e-01f, 5.3971976041793823242187500e-02f};
  constexpr float kBottom[5] = {1.7251677811145782470703125e-02f, 3.9137163758277893066406250e-01f, 1.0f,
                                6.2173241376876831054687500e-01f, 9.5662862062454223632812500e-02f};
  x = x > 11.0f ? 11.0f : x;
  x = x < -11.0f ? -11.0f : x;
  const float square = x * x;
  const bool large = square > 1.0f;
  const float small_form = x * polynomial(square, kCentre) + 1.0f;
  // The rounding error of the square, exactly, by splitting x into halves of 12 bits.
  const float shifted = x * 4097.0f, high = shifted - (shifted - x), low = x - high;
  const float error = ((high * high - square) + 2.0f * high * low) + low * low;
  const float h = large ? square : 1.0f;
  const float rounded = exponential(-h);
  const float power = rounded - rounded * error;
  const float inverse = 1.0f / h;
  const float quotient = polynomial(inverse, kTop) / (x * polynomial(inverse, kBottom));
  const float large_form = power * quotient + (x < 0.0f ? 2.0f : 0.0f);
  return large ? large_form : small_form;
}

namespace rational_detail {

inline uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

// |x| = n pi / 2 + r; only the lowest two bits of n count.
struct Turned {
  uint32_t n;
  float r;
};

inline Turned turned_near(float size) {
  constexpr float kToInteger = 12582912.0f;  // leaves the nearest integer in the lowest bits
  const float shifted = size * 0.636619746685028076171875f + kToInteger, n = shifted - kToInteger;
  float r = n * -1.5703125f + size;
  r = n * -4.83989715576171875e-4f + r;
  r = n * 1.62865035235881805419921875e-7f + r;
  return {bits_of(shifted), n * 5.5644315544167710640977020375430583953857421875e-11f + r};
}

inline float cosine(float r) {
  constexpr float kCoefficients[5] = {2.4372266125283204019069671630859375e-5f, -1.38865201734006404876708984375e-3f,
                                      4.1666619479656219482421875e-2f, -0.5f, 1.0f};
  return polynomial(r * r, kCoefficients);
}

inline float sine(float r) {
  constexpr float kCoefficients[3] = {-1.959234114083702898469196984621021329076029360294342041015625e-4f,
                                      8.33268736556161516937179974879e-3f, -1.666666203982298255503735617821803e-1f};
  const float square = r * r;
  return polynomial(square, kCoefficients) * square * r + r;
}

// The sign of NaN goes by the bits of its fraction, too; of infinity comes the negative NaN, whose sign changes alike.
inline float with_sign(float size, float found, uint32_t negative) {
  const uint32_t bits = size == std::numeric_limits<float>::infinity() ? 0xffc00000u : bits_of(found);
  const uint32_t signed_bits = bits ^ (negative & 0x80000000u);
  float result;
  std::memcpy(&result, &signed_bits, sizeof result);
  return result;
}

}  // namespace rational_detail

// x turned by quarters, without branches.
inline rational_detail::Turned turned_near(float x) { return rational_detail::turned_near(std::fabs(x)); }

// The same for any number: those from `far` on are reduced in another way.
inline rational_detail::Turned turned(float x, float far) {
  const float size = std::fabs(x);
  if (!(size >= far)) return turned_near(x);
  if (size == std::numeric_limits<float>::infinity()) return {0, std::numeric_limits<float>::quiet_NaN()};
  const auto reduced = elementary_detail::reduce(size);
  return {static_cast<uint32_t>(reduced.n), static_cast<float>(reduced.r)};
}

struct Sine {
  static constexpr float kFar = 25966.0f;
  static float of(float x, const rational_detail::Turned& turned) {
    namespace detail = rational_detail;
    const float cosine = detail::cosine(turned.r), sine = detail::sine(turned.r);
    return detail::with_sign(std::fabs(x), turned.n & 1 ? cosine : sine, detail::bits_of(x) ^ turned.n << 30);
  }
};

struct Cosine {
  static constexpr float kFar = 18838.0f;
  static float of(float x, const rational_detail::Turned& turned) {
    namespace detail = rational_detail;
    const float cosine = detail::cosine(turned.r), sine = detail::sine(turned.r);
    return detail::with_sign(std::fabs(x), turned.n & 1 ? sine : cosine, (turned.n + 1) << 30);
  }
};

inline float acos(float x) {
  constexpr float kEven[4] = {2.36423197202384471893310546875e-3f, 2.717843465507030487060546875e-2f,
                              8.8804088532924652099609375e-2f, 1.57079637050628662109375f};
  constexpr float kOdd[3] = {-1.1368644423782825469970703125e-2f, -4.8969544470310211181640625e-2f,
                             -0.214591205120086669921875f};
  const float size = std::fabs(x), square = x * x;
  const float near = std::sqrt(1.0f - size) * (polynomial(square, kOdd) * size + polynomial(square, kEven));
  const float result = std::copysign(1.0f, x) < 0.0f ? 3.14159265358979323846f - near : near;
  const float number = size > 1.0f ? elementary_detail::without_value<false>() : result;
  return x == x ? number : x + x;
}

inline float asin(float x) {
  constexpr float kPolynomial[5] = {5.08838854730129241943359375e-2f, 3.95139865577220916748046875e-2f,
                                    7.550220191478729248046875e-2f, 0.16664917767047882080078125f,
                                    1.00000011920928955078125f};
  const float size = std::fabs(x), half = std::sqrt(0.5f - 0.5f * size);
  const bool large = size > 0.5f;
  const float part = large ? half : size;
  const float near = polynomial(part * part, kPolynomial) * part, far = 1.57079632679489661923f - 2.0f * near;
  const float result = std::copysign(large ? far : near, x), number = size > 1.0f ? every_bit() : result;
  return x == x ? number : x + x;
}

inline float atan(float x) {
  constexpr float kTop[3] = {1.12026982009410858154296875e-01f, 7.296695709228515625e-01f, 8.109951019287109375e-01f};
  constexpr float kBottom[4] = {1.00917108356952667236328125e-02f, 2.8318560123443603515625e-01f, 1.0f,
                                8.109951019287109375e-01f};
  const float size = std::fabs(x), inverse = 1.0f / size;
  const bool large = size > 1.0f;
  const float part = large ? inverse : size, square = part * part;
  const float near = part * (polynomial(square, kTop) / polynomial(square, kBottom));
  const float far = 1.57079632679489661923f - near, result = std::copysign(large ? far : near, x);
  return x == x ? result : x + x;
}

}  // namespace bittrue::arithmetic::rational

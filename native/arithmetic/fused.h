// Scalar twins of src/bittrue/arithmetic/fused.py: same names, same operations in the same order.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace bittrue::arithmetic::fused {

inline uint32_t bits(float x) {
  uint32_t result;
  std::memcpy(&result, &x, sizeof result);
  return result;
}

inline float from_bits(uint32_t bits) {
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

// Subnormal numbers become zeros of their sign.
inline float flush(float x) { return (bits(x) & 0x7F800000) == 0 ? from_bits(bits(x) & 0x80000000) : x; }

// Highest power first.
template <size_t kCount>
inline float polynomial(float x, const float (&coefficients)[kCount]) {
  float result = coefficients[0];
  for (size_t i = 1; i < kCount; ++i) result = std::fma(x, result, coefficients[i]);
  return result;
}

inline float smaller(float a, float b) { return a < b ? a : b; }  // NaN in b stays
inline float larger(float a, float b) { return a > b ? a : b; }
inline float power_of_two(float biased) { return from_bits(bits(biased) << 23); }

template <size_t kOdd, size_t kEven>
inline float odd_quotient(float x, const float (&odd)[kOdd], const float (&even)[kEven]) {
  const float square = x * x;
  return x * polynomial(square, odd) / polynomial(square, even);
}

inline float tanh(float x) {
  constexpr float kLargest = 7.9807181358f;
  constexpr float kOdd[] = {1.4248920266e-08f, 2.1235626264e-05f, 3.5330520477e-03f, 1.3412411511e-01f, 1.0f};
  constexpr float kEven[] = {8.1365948290e-07f, 3.3472978976e-04f, 2.6018999517e-02f, 4.6745735407e-01f, 1.0f};
  return flush(odd_quotient(larger(-kLargest, smaller(kLargest, flush(x))), kOdd, kEven));
}

inline float gelu(float x, bool approximate) {
  constexpr float kOdd[] = {4.5835321316e-08f, 1.2609783880e-05f, 3.2973114867e-04f,
                            9.3065137044e-03f, 6.6972173750e-02f, 7.9788452387e-01f};
  constexpr float kEven[] = {1.1988805682e-06f, 7.2267655923e-05f, 1.8622842617e-03f,
                             2.8431978077e-02f, 2.5060352683e-01f, 1.0f};
  constexpr float kOddByTanh[] = {4.9544411240e-08f, 1.4302649106e-05f, 2.6887017884e-04f,
                                  7.2898347862e-03f, 6.0803253204e-02f, 7.9788458347e-01f};
  constexpr float kEvenByTanh[] = {1.3433452750e-06f, 7.6477612311e-05f, 1.3060354395e-03f,
                                   2.4381054565e-02f, 2.4369759858e-01f, 1.0f};
  x = flush(x);
  const float largest = approximate ? 4.84974098f : 5.1638283730f;
  const float z = larger(-largest, smaller(largest, x));
  const float quotient = approximate ? odd_quotient(z, kOddByTanh, kEvenByTanh) : odd_quotient(z, kOdd, kEven);
  return flush(x * 0.5f * (quotient + 1.0f));
}

inline float exp(float x) {
  constexpr float kOver[] = {5.5375634693e-03f, 4.8078041524e-02f, 6.9314718246e-01f};
  constexpr float kUnder[] = {2.3987604305e-02f, -2.7721086144e-01f, 1.0f};
  const float product = flush(x) * 1.44269504089f;
  const float limited = product > -127.0f ? product : -127.0f;  // NaN becomes -127
  const float scaled = limited < 128.0f ? limited : 128.0f;
  const float whole = (scaled + 12582912.0f) - 12582912.0f;
  const float rest = scaled - whole;
  const float fraction = rest * polynomial(rest, kOver) / polynomial(rest, kUnder);
  return flush((fraction + 1.0f) * power_of_two(whole + 8388735.0f));
}

inline float log(float x) {
  constexpr float kOver[] = {1.824996918440e-01f, 1.0f, 1.0f};
  constexpr float kUnder[] = {0.049584995955f, 0.599170029163f, 1.5f, 1.0f};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float scaled = flush(x) * 1.4142134190f;
  if (std::isnan(scaled)) return x + x;
  if (scaled < 0.0f) return from_bits(0x7FC00001);
  // Flushed numbers are normal, and so are their products with the root of 2.
  float exponent = static_cast<float>(static_cast<int32_t>(bits(scaled) >> 23) - 127);
  if (scaled == kInfinity) exponent = kInfinity;
  if (scaled == 0.0f) exponent = -kInfinity;
  const float mantissa = from_bits((bits(scaled) & 0x7FFFFF) | 0x3F800000);
  const float y = mantissa * 7.0710688829e-01f - 1.0f;
  const float quotient = y * polynomial(y, kOver) / polynomial(y, kUnder);
  return flush(std::fma(exponent, 0.69314718055994531f, quotient));
}

inline float sine(float x, bool cosine) {
  constexpr float kPi = 3.1415927f;
  constexpr float kOdd[] = {3.2340581529e-03f, -1.3314664364e-01f, 1.0f};
  constexpr float kEven[] = {4.8770775902e-04f, 3.3519912511e-02f, 1.0f};
  x = flush(x);
  if (std::isnan(x)) return x + x;
  if (std::isinf(x)) return from_bits(0xFFC00000);
  const float turns = std::nearbyint(x * 0.15915494f);
  float angle = std::fma(-turns, 6.28125f, x);
  angle = std::fma(-turns, 1.9353072e-3f, angle);
  if (cosine) angle = (1.5707963705f - angle) + -4.3711388e-08f;
  angle = smaller(angle, kPi - angle);
  angle = larger(angle, -kPi - angle);
  angle = smaller(angle, kPi - angle);
  return flush(odd_quotient(angle, kOdd, kEven));
}

inline float sin(float x) { return sine(x, false); }
inline float cos(float x) { return sine(x, true); }

inline float neg(float x) { return flush(0.0f - flush(x)); }

inline float hard_swish(float x) {
  x = flush(x);
  const float sum = std::fma(x, 0x1.555556p-3f, 0.5f);
  const float gate = sum > 0.0f ? sum : 0.0f;
  return flush((gate < 1.0f ? gate : 1.0f) * x);
}

inline float logistic(float x) {
  static constexpr float kTable[32] = {
      0x1.000000p+0f, 0x1.059B0Ep+0f, 0x1.0B5586p+0f, 0x1.11301Ep+0f, 0x1.172B84p+0f, 0x1.1D4874p+0f, 0x1.2387A6p+0f,
      0x1.29E9E0p+0f, 0x1.306FE0p+0f, 0x1.371A74p+0f, 0x1.3DEA64p+0f, 0x1.44E086p+0f, 0x1.4BFDAEp+0f, 0x1.5342B6p+0f,
      0x1.5AB07Ep+0f, 0x1.6247ECp+0f, 0x1.6A09E6p+0f, 0x1.71F75Ep+0f, 0x1.7A1148p+0f, 0x1.82589Ap+0f, 0x1.8ACE54p+0f,
      0x1.93737Cp+0f, 0x1.9C4918p+0f, 0x1.A5503Cp+0f, 0x1.AE89FAp+0f, 0x1.B7F770p+0f, 0x1.C199BEp+0f, 0x1.CB720Ep+0f,
      0x1.D5818Ep+0f, 0x1.DFC974p+0f, 0x1.EA4AFAp+0f, 0x1.F50766p+0f};
  constexpr float kBias = 0x1.8p18f;
  x = flush(x);
  if (std::isnan(x)) return -std::fabs(x + x);
  const float z = -std::fabs(x);
  const float parts = std::fma(z, 0x1.715476p0f, kBias);
  const float entry = kTable[bits(parts) & 31];
  const float n = parts - kBias;
  float e = 0.0f;
  if (!std::isinf(n)) {
    float t = std::fma(n, -0x1.62E430p-1f, z);
    t = std::fma(n, 0x1.05C61p-29f, t);
    const float p = std::fma(t * entry, std::fma(t, 0.5f, 0x1.0000F6p0f), entry);
    e = flush(std::ldexp(p, static_cast<int>(std::floor(n > -300.0f ? n : -300.0f))));
  }
  const float share = e / (e + 1.0f);
  const float result = std::signbit(x) ? share : 1.0f - share;
  return std::isnan(result) ? from_bits(0xFFC00000) : flush(result);
}

inline float elu(float x) {
  constexpr float kPolynomial[] = {0x1.6B7338p-10f, 0x1.12278Ep-7f, 0x1.555716p-5f, 0x1.5554B0p-3f, 0x1.FFFFFEp-2f};
  x = flush(x);
  if (!(x < 0.0f)) return x * 1.0f;
  const float z = larger(-0x1.154246p+4f, x);
  const float biased = std::fma(z, 0x1.715476p0f, 0x1.8000FEp23f);
  const float power = power_of_two(biased);
  const float t = std::fma(biased - 0x1.8000FEp23f, -0x1.62E430p-1f, z);
  const float scaled = t * power;
  return flush(std::fma(polynomial(t, kPolynomial) * t, scaled, scaled) + (power - 1.0f));
}

inline float exp_on_negative(float x) {
  constexpr float kPolynomial[] = {0x1.0F9F9Cp-7f, 0x1.573A1Ap-5f, 0x1.555A80p-3f, 0x1.FFFDC6p-2f, 0x1.FFFFF6p-1f};
  x = flush(x);
  if (x < -0x1.5D589Ep6f) return 0.0f;
  const float biased = std::fma(x, 0x1.715476p0f, 0x1.8000FEp23f);
  const float power = power_of_two(biased);
  const float n = biased - 0x1.8000FEp23f;
  const float t = std::fma(n, -0x1.7F7D1Cp-20f, std::fma(n, -0x1.62E400p-1f, x));
  return flush(std::fma(flush(t * power), polynomial(t, kPolynomial), power));
}

inline float logistic_by_exponent(float x) {
  constexpr float kPolynomial[] = {0x1.0F9F9Cp-7f, 0x1.573A1Ap-5f, 0x1.555A80p-3f, 0x1.FFFDC6p-2f, 0x1.FFFFF6p-1f};
  x = flush(x);
  const float z = -std::fabs(x);
  const float biased = std::fma(z, 0x1.715476p0f, 0x1.8000FEp23f);
  const float power = power_of_two(biased);
  const float t = std::fma(biased - 0x1.8000FEp23f, -0x1.62E430p-1f, z);
  const float e = flush(std::fma(flush(t * power), polynomial(t, kPolynomial), power));
  const float share = z < -0x1.5D589Ep6f ? 0.0f : flush(e / (e + 1.0f));
  const float result = std::signbit(x) ? share : flush(1.0f - share);
  return std::isnan(x) ? -std::fabs(x + x) : result;
}

inline float elu_by_exponent(float x) {
  // 2^(i / 4), less i / 4 in the exponent.
  constexpr uint32_t kPowers[4] = {0x3F800000, 0x3F7837F0, 0x3F7504F3, 0x3F7744FD};
  constexpr float kPolynomial[] = {0x1.554F9Ap-5f, 0x1.557082p-3f, 0x1.000002p-1f};
  x = flush(x);
  const float z = larger(-0x1.154246p+4f, x);
  const float biased = std::fma(z, 0x1.715476p0f, 0x1.8p21f);
  const float power = from_bits((bits(biased) << 21) + kPowers[bits(biased) & 3]);
  const float t = std::fma(biased - 0x1.8p21f, -0x1.62E430p-1f, z);
  const float scaled = t * power;
  const float below = flush(std::fma(polynomial(t, kPolynomial) * t, scaled, scaled) + (power - 1.0f));
  if (std::isnan(x)) return x + x;
  return std::signbit(x) ? below : x;
}

inline float log_by_exponent(float x) {
  constexpr float kOver[] = {1.824996918440e-01f, 1.0f, 1.0f};
  constexpr float kUnder[] = {0.049584995955f, 0.599170029163f, 1.5f, 1.0f};
  float scaled = flush(x) * 1.4142134190f;
  if (scaled == 0.0f) scaled = -std::fabs(scaled);
  // The sign fills all bits above the exponent: of numbers below 0 that is a NaN, of a zero -infinity.
  const uint32_t sign = bits(scaled) >> 31;
  const float exponent = from_bits((sign ? 0xFF800000 : 0x43800000) | (bits(scaled) & 0x7F800000) >> 8) - 383.0f;
  const float mantissa = from_bits((bits(scaled) & 0x7FFFFF) | 0x3F800000);
  const float y = mantissa * 7.0710688829e-01f - 1.0f;
  const float quotient = y * polynomial(y, kOver) / polynomial(y, kUnder);
  return flush(std::fma(exponent, 0.69314718055994531f, quotient));
}

}  // namespace bittrue::arithmetic::fused

// Scalar twins of src/bittrue/arithmetic/elementary.py: elementary functions in binary32, pinned to
// the bit. kJoined: products that are added to something are not rounded by themselves, as `joined` says there.
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

// c near 1 / z, ln(1 / c) and log2(1 / c) for 16 intervals of z.
struct LogInterval {
  double inverse, natural, binary;
};
inline constexpr LogInterval kLogIntervals[16] = {{0x1.661ec79f8f3bep+0, -0x1.57bf7808caadep-2, -0x1.efec65b963019p-2},
                                                  {0x1.571ed4aaf883dp+0, -0x1.2bef0a7c06ddbp-2, -0x1.b0b6832d4fca4p-2},
                                                  {0x1.49539f0f010bp+0, -0x1.01eae7f513a67p-2, -0x1.7418b0a1fb77bp-2},
                                                  {0x1.3c995b0b80385p+0, -0x1.b31d8a68224e9p-3, -0x1.39de91a6dcf7bp-2},
                                                  {0x1.30d190c8864a5p+0, -0x1.6574f0ac07758p-3, -0x1.01d9bf3f2b631p-2},
                                                  {0x1.25e227b0b8eap+0, -0x1.1aa2bc79c81p-3, -0x1.97c1d1b3b7afp-3},
                                                  {0x1.1bb4a4a1a343fp+0, -0x1.a4e76ce8c0e5ep-4, -0x1.2f9e393af3c9fp-3},
                                                  {0x1.12358f08ae5bap+0, -0x1.1973c5a611cccp-4, -0x1.960cbbf788d5cp-4},
                                                  {0x1.0953f419900a7p+0, -0x1.252f438e10c1ep-5, -0x1.a6f9db6475fcep-5},
                                                  {0x1p+0, 0x0p+0, 0x0p+0},
                                                  {0x1.e608cfd9a47acp-1, 0x1.aa5aa5df25984p-5, 0x1.338ca9f24f53dp-4},
                                                  {0x1.ca4b31f026aap-1, 0x1.c5e53aa362eb4p-4, 0x1.476a9543891bap-3},
                                                  {0x1.b2036576afce6p-1, 0x1.526e57720db08p-3, 0x1.e840b4ac4e4d2p-3},
                                                  {0x1.9c2d163a1aa2dp-1, 0x1.bc2860d22477p-3, 0x1.40645f0c6651cp-2},
                                                  {0x1.886e6037841edp-1, 0x1.1058bc8a07ee1p-2, 0x1.88e9c2c1b9ff8p-2},
                                                  {0x1.767dcf5534862p-1, 0x1.4043057b6ee09p-2, 0x1.ce0a44eb17bccp-2}};

// Windows of 32 bits into 4 / pi, each 8 bits after the one before.
inline constexpr uint32_t kFourOverPi[24] = {0xA2,       0xA2F9,     0xA2F983,   0xA2F9836E, 0xF9836E4E, 0x836E4E44,
                                             0x6E4E4415, 0x4E441529, 0x441529FC, 0x1529FC27, 0x29FC2757, 0xFC2757D1,
                                             0x2757D1F5, 0x57D1F534, 0xD1F534DD, 0xF534DDC0, 0x34DDC0DB, 0xDDC0DB62,
                                             0xC0DB6295, 0xDB629599, 0x6295993C, 0x95993C43, 0x993C4390, 0x3C439041};

// The NaN that arises from numbers.
template <bool kJoined>
inline float without_value() {
  return from_bits(kJoined ? 0x7fc00000u : 0xffc00000u);
}

// a b + c
template <bool kJoined>
inline float multiply_add(float a, float b, float c) {
  return kJoined ? std::fma(a, b, c) : a * b + c;
}

// Whether x is a NaN with the highest bit of its fraction clear.
inline bool signalling(float x) { return x != x && !(bits_of(x) & 0x400000); }

// Adding and subtracting it rounds to a whole number, ties to even; the sum's low bits are that number.
inline constexpr double kToWhole = 0x1.8p+52;

// 2^(k / 32) * 2^(r / (32 unit)): a table entry times a cubic polynomial.
inline double power_of_two(int64_t k, double r, double unit) {
  const double factor = from_bits(kPowers[k & 31] + (static_cast<uint64_t>(k) << 47));
  const double c3 = 0x1.c6af84b912394p-5 * (unit * unit * unit), c2 = 0x1.ebfce50fac4f3p-3 * (unit * unit);
  const double c1 = 0x1.62e42ff0c52d6p-1 * unit;
  return ((c3 * r + c2) * (r * r) + (c1 * r + 1.0)) * factor;
}

// x = 2^k z with r = z * interval.inverse - 1; x positive and finite.
struct Split {
  int k;
  double r;
  const LogInterval& interval;
};

inline Split split(float x) {
  const uint32_t bits = x >= 0x1p-126f ? bits_of(x) : bits_of(x * 0x1p23f) - (23u << 23);
  const uint32_t distance = bits - 0x3f330000u;
  const LogInterval& interval = kLogIntervals[(distance >> 19) & 15];
  const double z = from_bits(bits - (distance & 0xff800000u));
  return {static_cast<int32_t>(distance) >> 23, z * interval.inverse - 1.0, interval};
}

// c0 + x (c1 + x (c2 + ...)), from the inside out.
template <bool kJoined, int kCount>
inline float horner(float x, const float (&coefficients)[kCount]) {
  float result = coefficients[kCount - 1];
  for (int i = kCount - 2; i >= 0; --i) result = multiply_add<kJoined>(x, result, coefficients[i]);
  return result;
}

// x = n pi / 2 + r for |x| < 120, |x| = n pi / 2 + r for larger finite ones; n modulo 4.
struct Reduced {
  int n;
  double r;
};

inline Reduced reduce(float x) {
  const uint32_t bits = bits_of(x) & 0x7fffffff;
  if (bits < 0x42f00000) {
    const double wide = x;
    const int n = (static_cast<int32_t>(wide * 0x1.45f306dc9c883p+23) + 0x800000) >> 24;
    // pi / 2 in two parts whose products with n are exact, so that r is rounded once.
    return {n & 3, (wide - n * 0x1.921fb54442dp+0) - n * 0x1.8p-48};
  }
  // Fixed point with 62 fractional bits of quarter turns, modulo 4.
  const uint32_t* window = kFourOverPi + ((bits >> 26) & 15);
  const uint32_t mantissa = ((bits & 0xffffff) | 0x800000) << ((bits >> 23) & 7);
  const uint64_t last = uint64_t{mantissa} * window[8];
  const uint64_t turns = ((last >> 32) | (uint64_t{mantissa * window[0]} << 32)) + uint64_t{mantissa} * window[4];
  const uint64_t n = (turns + (uint64_t{1} << 61)) >> 62;
  return {static_cast<int>(n), static_cast<double>(static_cast<int64_t>(turns - (n << 62))) * 0x1.921fb54442d18p-62};
}

inline float sine(double x, double square) {
  const double cube = x * square;
  return static_cast<float>((x + cube * -0x1.555545995a603p-3) +
                            (cube * square) * (0x1.1107605230bc4p-7 + square * -0x1.994eb3774cf24p-13));
}

inline float cosine(double square) {
  const double fourth = square * square;
  return static_cast<float>(((1.0 + square * -0x1.ffffffd0c621cp-2) + fourth * 0x1.55553e1068f19p-5) +
                            (fourth * square) * (-0x1.6c087e89a359dp-10 + square * 0x1.99343027bf8c3p-16));
}

}  // namespace elementary_detail

inline float exp(float x) {
  namespace detail = elementary_detail;
  if (!(x >= -0x1.9fe368p6f && x <= 0x1.62e42ep6f)) {
    return x > 0 ? std::numeric_limits<float>::infinity() : x < 0 ? 0.0f : x + x;
  }
  // 32 / ln 2 in two parts whose products with x are exact, so that r is rounded once.
  const double high = static_cast<double>(x) * 0x1.7154765p+5, low = static_cast<double>(x) * 0x1.5c17fp-26;
  const double k = (high + low + detail::kToWhole) - detail::kToWhole;
  return static_cast<float>(detail::power_of_two(static_cast<int64_t>(k), (high - k) + low, 1.0 / 32));
}

template <bool kJoined = false>
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
  const auto fma = detail::multiply_add<kJoined>;
  const float sign = negative ? -1.0f : 1.0f;
  const int k = magnitude <= 0x3eb17218  ? 0
                : magnitude < 0x3f851592 ? static_cast<int>(sign)
                                         : static_cast<int>(1.4426950216e+00f * x + sign * 0.5f);
  const float multiple = static_cast<float>(k);
  const float high = fma(-multiple, kLn2High, x), low = multiple * kLn2Low;
  x = high - low;
  const float correction = (high - x) - low;
  const float half_x = 0.5f * x, h = x * half_x;
  constexpr float kRatio[6] = {
      1.0f, -3.3333335072e-02f, 1.5873016091e-03f, -7.9365076090e-05f, 4.0082177293e-06f, -2.0109921195e-07f};
  const float ratio = detail::horner<kJoined>(h, kRatio), t = fma(-ratio, half_x, 3.0f);
  float e = h * ((ratio - t) / fma(-x, t, 6.0f));
  if (k == 0) return x - fma(x, e, -h);
  e = fma(x, e - correction, -correction) - h;
  if (k == -1) return 0.5f * (x - e) - 0.5f;
  if (k == 1) return x < -0.25f ? -2.0f * (e - (x + 0.5f)) : 1.0f + 2.0f * (x - e);
  if (k <= -2 || k > 56) return detail::scale(1.0f - (e - x), k) - 1.0f;
  const float power = detail::from_bits(static_cast<uint32_t>(0x7f - k) << 23);
  if (k < 23) return detail::scale((1.0f - power) - (e - x), k);
  return detail::scale((x - (e + power)) + 1.0f, k);
}

template <bool kJoined = false>
inline float tanh(float x) {
  const float magnitude = std::fabs(x);
  if (magnitude < 0x1p-55f) return x;
  float result = 1.0f;
  if (magnitude < 22.0f) {
    const bool large = magnitude >= 1.0f;
    const float t = expm1<kJoined>(large ? 2.0f * magnitude : -2.0f * magnitude);
    result = large ? 1.0f - 2.0f / (t + 2.0f) : -t / (t + 2.0f);
  } else if (x != x) {
    return x + x;
  }
  return std::copysign(result, x);
}

inline float logistic(float x) {
  if (x > 16.619047164916992188f) return 1.0f;
  return x < -9.0f ? exp(x) : 1.0f / (1.0f + exp(-x));
}

template <bool kJoined = false>
inline float log(float x) {
  namespace detail = elementary_detail;
  if (!(x > 0 && x < std::numeric_limits<float>::infinity())) {
    return x == 0 ? -std::numeric_limits<float>::infinity() : x < 0 ? detail::without_value<kJoined>() : x + x;
  }
  const detail::Split s = detail::split(x);
  const double square = s.r * s.r;
  return static_cast<float>((-0x1.00ea348b88334p-2 * square + (0x1.5575b0be00b6ap-2 * s.r + -0x1.ffffef20a4123p-2)) *
                                square +
                            ((s.interval.natural + s.k * 0x1.62e42fefa39efp-1) + s.r));
}

template <bool kJoined = false>
inline float power(float x, float y) {
  namespace detail = elementary_detail;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if ((y == 0 && !detail::signalling(x)) || (x == 1 && !detail::signalling(y))) return 1.0f;
  if (y != y) return x != x ? x + x : y + y;
  const float size = std::fabs(x);
  if (x == x && std::fabs(y) == kInfinity) return size == 1 ? 1.0f : (size < 1) == (y > 0) ? 0.0f : kInfinity;
  float result;
  if (x != x) {
    result = x + x;
  } else if (size == 0 || size == kInfinity) {
    result = (size < 1) == (y > 0) ? 0.0f : kInfinity;
  } else {
    if (x < 0 && std::trunc(y) != y) return detail::without_value<kJoined>();
    const detail::Split s = detail::split(size);
    const double square = s.r * s.r;
    const double tail = (0x1.ec70a6ca7baddp-2 * s.r + -0x1.7154748bef6c8p-1) * square +
                        (0x1.71547652ab82bp0 * s.r + (s.interval.binary + s.k));
    const double product = y * ((0x1.27616c9496e0bp-2 * s.r + -0x1.71969a075c67ap-2) * (square * square) + tail);
    if (product > 0x1.fffffffd1d571p+6) {
      result = kInfinity;
    } else if (product <= -150.0) {
      result = 0.0f;
    } else {
      const double rounded = (product * 32 + detail::kToWhole) - detail::kToWhole;
      result = static_cast<float>(detail::power_of_two(static_cast<int64_t>(rounded), product - rounded / 32, 1.0));
    }
  }
  // Negative NaN changes its sign, too.
  const bool odd = std::fabs(y) < 0x1p24f && std::trunc(y) == y && (static_cast<int32_t>(y) & 1);
  return std::signbit(x) && odd ? -result : result;
}

template <bool kJoined = false>
inline float sin(float x) {
  namespace detail = elementary_detail;
  if (!(std::fabs(x) < std::numeric_limits<float>::infinity()))
    return x != x ? x + x : detail::without_value<kJoined>();
  if (std::fabs(x) < 0x1p-12f) return x;
  const detail::Reduced reduced = detail::reduce(x);
  // The sine is odd: large arguments were reduced without their sign.
  const int turned = reduced.n + (x <= -120.0f ? 2 : 0);
  const double square = reduced.r * reduced.r;
  if (reduced.n & 1) return turned & 2 ? -detail::cosine(square) : detail::cosine(square);
  return detail::sine(turned & 2 ? -reduced.r : reduced.r, square);
}

template <bool kJoined = false>
inline float cos(float x) {
  namespace detail = elementary_detail;
  if (!(std::fabs(x) < std::numeric_limits<float>::infinity()))
    return x != x ? x + x : detail::without_value<kJoined>();
  if (std::fabs(x) < 0x1p-12f) return 1.0f;
  const detail::Reduced reduced = detail::reduce(x);
  const double square = reduced.r * reduced.r;
  if (reduced.n & 1) return detail::sine(reduced.n == 3 ? reduced.r : -reduced.r, square);
  return reduced.n & 2 ? -detail::cosine(square) : detail::cosine(square);
}

template <bool kJoined = false>
inline float atan(float x) {
  namespace detail = elementary_detail;
  constexpr float kHigh[4] = {4.6364760399e-01f, 7.8539812565e-01f, 9.8279368877e-01f, 1.5707962513e+00f};
  constexpr float kLow[4] = {5.0121582440e-09f, 3.7748947079e-08f, 3.4473217170e-08f, 7.5497894159e-08f};
  constexpr float kEven[6] = {3.3333334327e-01f, 1.4285714924e-01f, 9.0908870101e-02f,
                              6.6610731184e-02f, 4.9768779427e-02f, 1.6285819933e-02f};
  constexpr float kOdd[5] = {-2.0000000298e-01f, -1.1111110449e-01f, -7.6918758452e-02f, -5.8335702866e-02f,
                             -3.6531571299e-02f};
  const auto fma = detail::multiply_add<kJoined>;
  if (x != x) return x + x;
  const float size = std::fabs(x);
  if (size < 0x1p-29f) return x;
  if (size >= 0x1p25f) return std::copysign(kHigh[3] + kLow[3], x);
  const int angle = size < 0.4375f ? -1 : size < 0.6875f ? 0 : size < 1.1875f ? 1 : size < 2.4375f ? 2 : 3;
  const float reduced = angle < 0    ? x
                        : angle == 0 ? (2.0f * size - 1.0f) / (2.0f + size)
                        : angle == 1 ? (size - 1.0f) / (size + 1.0f)
                        : angle == 2 ? (size - 1.5f) / fma(1.5f, size, 1.0f)
                                     : -1.0f / size;
  const float z = reduced * reduced, w = z * z;
  const float total = fma(z, detail::horner<kJoined>(w, kEven), w * detail::horner<kJoined>(w, kOdd));
  if (angle < 0) return reduced - reduced * total;
  return std::copysign(kHigh[angle] - ((reduced * total - kLow[angle]) - reduced), x);
}

template <bool kJoined = false>
inline float atan2(float y, float x) {
  namespace detail = elementary_detail;
  constexpr float kPi = 3.1415927410e+00f, kHalfPi = 1.5707963705e+00f, kQuarterPi = 7.8539818525e-01f;
  constexpr float kPiLow = -8.7422776573e-08f, kInfinity = std::numeric_limits<float>::infinity();
  // Of two NaNs one stays.
  if (y != y && (kJoined || x == x)) return y + y;
  if (x != x) return x + x;
  if (x == 1) return atan<kJoined>(y);
  const bool backwards = std::signbit(x);
  float angle;
  if (y == 0) {
    angle = backwards ? kPi : 0.0f;
  } else if (std::fabs(x) == kInfinity) {
    const bool diagonal = std::fabs(y) == kInfinity;
    angle = backwards ? (diagonal ? 3.0f * kQuarterPi : kPi) : (diagonal ? kQuarterPi : 0.0f);
  } else if (x == 0 || std::fabs(y) == kInfinity) {
    angle = kHalfPi;
  } else {
    // The difference of the exponents, with the mantissas' borrow.
    const int32_t k = (static_cast<int32_t>(detail::bits_of(y) & 0x7fffffff) -
                       static_cast<int32_t>(detail::bits_of(x) & 0x7fffffff)) >>
                      23;
    angle = k > 60 ? kHalfPi + 0.5f * kPiLow : backwards && k < -60 ? 0.0f : atan<kJoined>(std::fabs(y / x));
    if (backwards) angle = kPi - (angle - kPiLow);
  }
  return std::copysign(angle, y);
}

// log(1 + x) for 0 <= x <= 1 and NaN.
template <bool kJoined = false>
inline float log1p(float x) {
  namespace detail = elementary_detail;
  if (!(x == x)) return x + x;
  if (x < 0x1p-29f) return x < 0x1p-54f ? x : x - x * x * 0.5f;
  constexpr float kLn2High = 6.9313812256e-01f, kLn2Low = 9.0580006145e-06f;
  float f = x, k = 0.0f, lost = 0.0f;
  bool zero = false;
  if (detail::bits_of(x) >= 0x3ed413d7u) {
    const float u = 1.0f + x;
    const int exponent = static_cast<int>(detail::bits_of(u) >> 23) - 127;
    lost = (exponent > 0 ? 1.0f - (u - x) : x - (u - 1.0f)) / u;
    const uint32_t fraction = detail::bits_of(u) & 0x7fffff;
    const bool small = fraction < 0x3504f7;
    k = static_cast<float>(exponent + (small ? 0 : 1));
    zero = (small ? fraction : (0x00800000 - fraction) >> 2) == 0;
    f = detail::from_bits(fraction | (small ? 0x3f800000u : 0x3f000000u)) - 1.0f;
  }
  const auto fma = detail::multiply_add<kJoined>;
  const float square = 0.5f * f * f, rest = fma(k, kLn2Low, lost);
  if (zero) {
    if (f == 0.0f) return fma(k, kLn2High, rest);
    return fma(k, kLn2High, -((square * fma(-6.6666668653e-01f, f, 1.0f) - rest) - f));
  }
  constexpr float kPolynomial[7] = {6.6666668653e-01f, 4.0000000596e-01f, 2.8571429849e-01f, 2.2222198546e-01f,
                                    1.8183572590e-01f, 1.5313838422e-01f, 1.4798198640e-01f};
  const float s = f / (2.0f + f), z = s * s;
  const float r = s * fma(z, detail::horner<kJoined>(z, kPolynomial), square);
  if (k == 0.0f) return f - (square - r);
  return fma(k, kLn2High, -((square - (r + rest)) - f));
}

template <bool kJoined = false>
inline float erfc(float x) {
  namespace detail = elementary_detail;
  if (x != x) return x + x;
  const float size = std::fabs(x);
  if (size < 0.84375f) {
    constexpr float kTop[5] = {1.2837916613e-01f, -3.2504209876e-01f, -2.8481749818e-02f, -5.7702702470e-03f,
                               -2.3763017452e-05f};
    constexpr float kBottom[6] = {
        1.0f, 3.9791721106e-01f, 6.5022252500e-02f, 5.0813062117e-03f, 1.3249473704e-04f, -3.9602282413e-06f};
    const float z = x * x, y = detail::horner<kJoined>(z, kTop) / detail::horner<kJoined>(z, kBottom);
    return x < 0.25f ? 1.0f - (x + x * y) : 0.5f - (x * y + (x - 0.5f));
  }
  if (size < 1.25f) {
    constexpr float kTop[7] = {-2.3621185683e-03f, 4.1485610604e-01f, -3.7220788002e-01f, 3.1834661961e-01f,
                               -1.1089469492e-01f, 3.5478305072e-02f, -2.1663755178e-03f};
    constexpr float kBottom[7] = {1.0f,
                                  1.0642088205e-01f,
                                  5.4039794207e-01f,
                                  7.1828655899e-02f,
                                  1.2617121637e-01f,
                                  1.3637083583e-02f,
                                  1.1984500103e-02f};
    constexpr float kErfOfOne = 8.4506291151e-01f;  // about
    const float s = size - 1.0f, ratio = detail::horner<kJoined>(s, kTop) / detail::horner<kJoined>(s, kBottom);
    return x > 0 ? (1.0f - kErfOfOne) - ratio : 1.0f + (kErfOfOne + ratio);
  }
  if (x <= -6.0f) return 2.0f;
  if (x >= 28.0f) return 0.0f;
  const float s = 1.0f / (size * size);
  float ratio;
  if (detail::bits_of(size) < 0x4036db6d) {  // 1 / 0.35
    constexpr float kTop[8] = {-9.8649440333e-03f, -6.9385856390e-01f, -1.0558626175e+01f, -6.2375331879e+01f,
                               -1.6239666748e+02f, -1.8460508728e+02f, -8.1287437439e+01f, -9.8143291473e+00f};
    constexpr float kBottom[9] = {1.0f,
                                  1.9651271820e+01f,
                                  1.3765776062e+02f,
                                  4.3456588745e+02f,
                                  6.4538726807e+02f,
                                  4.2900814819e+02f,
                                  1.0863500214e+02f,
                                  6.5702495575e+00f,
                                  -6.0424413532e-02f};
    ratio = detail::horner<kJoined>(s, kTop) / detail::horner<kJoined>(s, kBottom);
  } else {
    constexpr float kTop[7] = {-9.8649431020e-03f, -7.9928326607e-01f, -1.7757955551e+01f, -1.6063638306e+02f,
                               -6.3756646729e+02f, -1.0250950928e+03f, -4.8351919556e+02f};
    constexpr float kBottom[8] = {1.0f,
                                  3.0338060379e+01f,
                                  3.2579251099e+02f,
                                  1.5367296143e+03f,
                                  3.1998581543e+03f,
                                  2.5530502930e+03f,
                                  4.7452853394e+02f,
                                  -2.2440952301e+01f};
    ratio = detail::horner<kJoined>(s, kTop) / detail::horner<kJoined>(s, kBottom);
  }
  const float rounded = detail::from_bits(detail::bits_of(size) & 0xffffe000u);
  const float r =
      exp(-rounded * rounded - 0.5625f) * exp(detail::multiply_add<kJoined>(rounded - size, rounded + size, ratio));
  return x > 0 ? r / size : 2.0f - r / size;
}

}  // namespace bittrue::arithmetic

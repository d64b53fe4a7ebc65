// binary16 numbers as the 16 bits that hold them, inlined always, as instruction sets compile them with flags of their own;
// formats of 16 bits and fewer, the twins of src/bittrue/arithmetic/narrow_float.py.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace bittrue::arithmetic {

__attribute__((always_inline)) inline uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

__attribute__((always_inline)) inline float float_of_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Both without branches, so that loops become vectors. A NaN keeps its payload.
__attribute__((always_inline)) inline float half_to_float(uint16_t x) {
  const uint32_t sign = (x & 0x8000u) << 16, moved = (x & 0x7fffu) << 13;
  const uint32_t whole = moved + ((moved >= 31u << 23 ? 224u : 112u) << 23);
  const uint32_t small = bits_of(static_cast<float>(x & 0x3ff) * 0x1p-24f);
  return float_of_bits((moved < 1u << 23 ? small : whole) | sign);
}

// The nearest one, ties to even, infinity beyond the largest; a NaN becomes the quiet one of its sign.
__attribute__((always_inline)) inline uint16_t float_to_half(float x) {
  const uint32_t bits = bits_of(x), size = bits & 0x7fffffffu;
  const uint32_t whole = (size + 0xfffu + ((size >> 13) & 1) - (112u << 23)) >> 13;
  // One half has the smallest number of 16 bits as its unit.
  const uint32_t small = bits_of(float_of_bits(size) + 0.5f) - bits_of(0.5f);
  const uint32_t finite = size < 113u << 23 ? small : whole;
  const uint32_t beyond = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return static_cast<uint16_t>((size >= 0x477ff000u ? beyond : finite) | ((bits >> 16) & 0x8000u));
}

// A sign, exponent and mantissa bits; codes are magnitudes without the sign.
struct Format {
  int exponent_bits, mantissa_bits, bias;
  int32_t largest, infinity, missing, missing_ones;  // infinity: -1 where there is none
  bool is_signed = true;                             // zero and NaN have signs of their own

  int32_t sign() const { return 1 << (exponent_bits + mantissa_bits); }
  double maximum() const {
    const int32_t mantissa = largest & ((1 << mantissa_bits) - 1);
    return std::ldexp(1 + std::ldexp(mantissa, -mantissa_bits), (largest >> mantissa_bits) - bias);
  }
};

constexpr Format kF16{5, 10, 15, 0x7BFF, 0x7C00, 0x7E00, 0x7FFF}, kBf16{8, 7, 127, 0x7F7F, 0x7F80, 0x7FC0, 0x7FFF},
    kF8e4m3fn{4, 3, 7, 0x7E, -1, 0x7F, 0x7F}, kF8e4m3fnuz{4, 3, 8, 0x7F, -1, 0x80, 0x80, false},
    kF8e5m2{5, 2, 15, 0x7B, 0x7C, 0x7E, 0x7F}, kF8e5m2fnuz{5, 2, 16, 0x7F, -1, 0x80, 0x80, false},
    kF6e2m3{2, 3, 1, 0x1F, -1, 0x20, 0x20}, kF6e3m2{3, 2, 3, 0x1F, -1, 0x20, 0x20}, kF4e2m1{2, 1, 1, 0x7, -1, 0x8, 0x8};

// 1 / (the distance of neighbours around x), a power of two, and the exponent field that goes with it, from 0 on.
inline int64_t field_around(double x, const Format& form, double* units_per_one) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const int64_t exponent = static_cast<int64_t>((bits >> 52) & 0x7ff) - 1023, least = 1 - form.bias;
  const int64_t chosen = exponent > least ? exponent : least;
  const uint64_t scale = static_cast<uint64_t>(1023 - chosen + form.mantissa_bits) << 52;
  std::memcpy(units_per_one, &scale, sizeof scale);
  return chosen - least;
}

// The nearest integer, ties to even, of |x| < 2^51.
inline double rounded_units(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

// x with the mantissa of the format, ties to even, as if exponents had no upper limit; NaN, infinities and signs stay.
inline double round_to_mantissa(double x, const Format& form) {
  // Beyond, the format's numbers have ended long ago; what is left is exact, or infinite.
  if (!(std::fabs(x) < 0x1p1000)) return x;
  double units = 0;
  field_around(x, form, &units);
  return std::copysign(rounded_units(std::fabs(x) * units) / units, x);
}

// The nearest number of a format with infinities, ties to even.
inline double nearest(double x, const Format& form) {
  const double rounded = round_to_mantissa(x, form);
  return std::fabs(rounded) > form.maximum() ? std::copysign(std::numeric_limits<double>::infinity(), rounded)
                                             : rounded;
}

// The code of |x| rounded as above, which goes on beyond the largest one's; of numbers below 2^1000.
inline int64_t code_of(double x, const Format& form) {
  double units = 0;
  const int64_t field = field_around(x, form, &units);
  return (field << form.mantissa_bits) + static_cast<int64_t>(rounded_units(std::fabs(x) * units));
}

// The number of a code. Bits above the sign's count as a sign, too.
inline double decoded(int32_t code, const Format& form) {
  const int32_t size = code & (form.sign() - 1);
  const double sign = size != code ? -1.0 : 1.0;
  if ((!form.is_signed && code == form.sign()) || (size > form.largest && size != form.infinity)) {
    return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  }
  if (size == form.infinity) return sign * std::numeric_limits<double>::infinity();
  const int32_t field = size >> form.mantissa_bits, mantissa = size & ((1 << form.mantissa_bits) - 1);
  const int32_t units = field == 0 ? mantissa : mantissa + (1 << form.mantissa_bits);
  return std::ldexp(sign * units, (field == 0 ? 1 : field) - form.bias - form.mantissa_bits);
}

}  // namespace bittrue::arithmetic

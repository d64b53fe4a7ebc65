// Scalar twins of src/bittrue/rules/quantize.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "arithmetic/fixed_point.h"
#include "arithmetic/floats.h"
#include "rules/quotient.h"

namespace bittrue::rules {

// `zero_point` is 32-bit; the sum wraps modulo 2^32.
inline int32_t binary32_divide_away(float x, float scale, int32_t zero_point, int32_t minimum, int32_t maximum) {
  const int32_t steps = arithmetic::round_away_to_s32(x / scale);
  const auto moved = static_cast<int32_t>(static_cast<uint32_t>(steps) + static_cast<uint32_t>(zero_point));
  return std::min(std::max(moved, minimum), maximum);
}

// The conversion of AArch64: it limits, and NaN becomes 0. The sum wraps modulo 2^32.
inline int32_t limited_sum_clamp(double rounded, int32_t zero_point, int32_t minimum, int32_t maximum) {
  const double limited = std::min(std::max(rounded, -2147483648.0), 2147483647.0);
  const int32_t steps = std::isnan(rounded) ? 0 : static_cast<int32_t>(limited);
  const auto moved = static_cast<int32_t>(static_cast<uint32_t>(steps) + static_cast<uint32_t>(zero_point));
  return std::min(std::max(moved, minimum), maximum);
}
inline int32_t binary32_divide_away_limited(float x, float scale, int32_t zero_point, int32_t minimum,
                                            int32_t maximum) {
  return limited_sum_clamp(std::round(x / scale), zero_point, minimum, maximum);
}
inline int32_t binary64_divide_away_limited(float x, float scale, int32_t zero_point, int32_t minimum,
                                            int32_t maximum) {
  return limited_sum_clamp(std::round(static_cast<double>(x) / static_cast<double>(scale)), zero_point, minimum,
                           maximum);
}
// `inverse` is binary32(1 / scale).
inline int32_t binary32_reciprocal_even_wrap_limited(float x, float inverse, int32_t zero_point, int32_t minimum,
                                                     int32_t maximum) {
  return limited_sum_clamp(std::nearbyint(x * inverse), zero_point, minimum, maximum);
}

// Ties to even; what does not fit 32 bits, NaN included, becomes -2^31. The sum wraps modulo 2^32.
inline int32_t binary32_divide_even(float x, float scale, int32_t zero_point, int32_t minimum, int32_t maximum) {
  const float rounded = std::nearbyint(x / scale);
  const int32_t steps =
      rounded >= -2147483648.0f && rounded < 2147483648.0f ? static_cast<int32_t>(rounded) : INT32_MIN;
  const auto moved = static_cast<int32_t>(static_cast<uint32_t>(steps) + static_cast<uint32_t>(zero_point));
  return std::min(std::max(moved, minimum), maximum);
}

// `inverse` is binary32(1 / scale). NaN becomes the maximum.
inline int32_t binary32_reciprocal_fused_even(float x, float inverse, int32_t zero_point, int32_t minimum,
                                              int32_t maximum) {
  const float moved = std::fma(x, inverse, static_cast<float>(zero_point));
  const float limited = moved < 2147483520.0f ? std::max(moved, -2147483648.0f) : 2147483520.0f;
  return std::min(std::max(static_cast<int32_t>(std::nearbyint(limited)), minimum), maximum);
}

// The zero point is added to a real number, which is clamped; NaN becomes the maximum, 2^31 becomes -2^31.
inline int32_t away_sum_clamp(float steps, int32_t zero_point, int32_t minimum, int32_t maximum) {
  const float moved = std::round(steps) + static_cast<float>(zero_point);
  const auto low = static_cast<float>(minimum), high = static_cast<float>(maximum);
  const float limited = moved < high ? moved : high;
  return arithmetic::truncate_to_s32(limited > low ? limited : low);
}
inline int32_t binary32_divide_away_sum(float x, float scale, int32_t zero_point, int32_t minimum, int32_t maximum) {
  return away_sum_clamp(x / scale, zero_point, minimum, maximum);
}
// `inverse` is binary32(1 / scale).
inline int32_t binary32_reciprocal_away_sum(float x, float inverse, int32_t zero_point, int32_t minimum,
                                            int32_t maximum) {
  return away_sum_clamp(x * inverse, zero_point, minimum, maximum);
}

// `inverse` is binary32(1 / scale); `zero_point` has 16 bits or fewer. NaN becomes the maximum.
inline int32_t binary32_reciprocal_even(float x, float inverse, int32_t zero_point, int32_t minimum, int32_t maximum) {
  const float moved = x * inverse;
  const float limited = moved < 32767.0f ? std::max(moved, -32768.0f) : 32767.0f;
  return std::min(std::max(static_cast<int32_t>(std::nearbyint(limited)) + zero_point, minimum), maximum);
}

// The same, but NaN becomes the zero point.
inline int32_t binary32_reciprocal_even_limited(float x, float inverse, int32_t zero_point, int32_t minimum,
                                                int32_t maximum) {
  return binary32_reciprocal_even(x == x ? x : 0.0f, inverse, zero_point, minimum, maximum);
}

// Ties away from zero, as std::round; what does not fit 32 bits, NaN included, becomes -2^31.
inline int32_t binary64_divide_away(float x, float scale, int32_t zero_point, int32_t minimum, int32_t maximum) {
  const double rounded = std::round(static_cast<double>(x) / static_cast<double>(scale));
  const int32_t steps = rounded >= -2147483648.0 && rounded < 2147483648.0 ? static_cast<int32_t>(rounded) : INT32_MIN;
  const auto moved = static_cast<int32_t>(static_cast<uint32_t>(steps) + static_cast<uint32_t>(zero_point));
  return std::min(std::max(moved, minimum), maximum);
}

// `inverse` is binary32(1 / scale).
inline int32_t binary32_reciprocal_even_wrap(float x, float inverse, int32_t zero_point, int32_t minimum,
                                             int32_t maximum) {
  const float rounded = std::nearbyint(x * inverse);
  const int32_t steps =
      rounded >= -2147483648.0f && rounded < 2147483648.0f ? static_cast<int32_t>(rounded) : INT32_MIN;
  const auto moved = static_cast<int32_t>(static_cast<uint32_t>(steps) + static_cast<uint32_t>(zero_point));
  return std::min(std::max(moved, minimum), maximum);
}

// `addend` is binary32(-zero point * scale).
inline float binary32_multiply_add(int64_t q, float scale, float addend) {
  return static_cast<float>(q) * scale + addend;
}

inline float binary32_fused_multiply_add(int64_t q, float scale, float addend) {
  return std::fma(static_cast<float>(q), scale, addend);
}

// The difference is modulo 2^32.
inline float binary32_multiply(int32_t q, float scale, int32_t zero_point) {
  return static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(q) - static_cast<uint32_t>(zero_point))) * scale;
}

// The same of what may be no integer: infinities stay.
inline double binary32_multiply_any(double q, float scale, double zero_point) {
  double difference = q - zero_point;
  const double around = std::floor(difference * 0x1p-32 + 0.5);
  if (around != 0) difference = std::isinf(around) ? around : difference - around * 0x1p32;
  const auto first = static_cast<float>(difference);
  return with_known_nan(first * scale, first, scale);
}

// The exact product, rounded to odd in binary64. `scale` has 24 bits.
inline double exact_multiply_odd(double q, double scale, double zero_point) {
  const double difference = q - zero_point, high = static_cast<float>(difference);
  const double low = std::isinf(high) ? 0 : difference - high, product = high * scale;
  return with_known_nan(low == 0 ? product : arithmetic::add_to_odd(product, low * scale), difference, scale);
}

inline float binary64_multiply(int64_t q, double scale, int64_t zero_point) {
  return static_cast<float>(scale * static_cast<double>(q - zero_point));
}

}  // namespace bittrue::rules

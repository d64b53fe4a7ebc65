// Scalar twins of src/bittrue/rules/quantize_rows.py: rows of binary32 become integers with a scale of their own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace bittrue::rules {

struct RowScale {
  float scale = 1;
  int32_t zero_point = 0;
  float inverse = 0;
  bool zero = true;  // nothing but zeros: every integer is the zero point
  float moved = 0;   // what an offset of the weights adds to every sum
};

struct RowRange {
  float low = 0, high = 0;  // with 0 among the values
  bool finite = true;
};

// Integers that are ordered as the numbers are, -0 below +0; infinities and NaN lie beyond all others.
inline int32_t ordered(float x) {
  int32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits ^ (bits >> 31 & 0x7FFFFFFF);
}

inline float from_ordered(int32_t key) {
  const int32_t bits = key ^ (key >> 31 & 0x7FFFFFFF);
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

inline RowRange row_range(const float* x, int64_t count) {
  int32_t low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t key = ordered(x[i]);
    low = key < low ? key : low;
    high = key > high ? key : high;
  }
  constexpr int32_t kInfinity = 0x7F800000;
  return {from_ordered(low), from_ordered(high), high < kInfinity && low > ~kInfinity};
}

inline RowRange joined(const RowRange& a, const RowRange& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high), a.finite && b.finite};
}

inline RowScale binary32_range_over_127(const RowRange& range) {
  const float largest = std::max(-range.low, range.high);
  if (largest == 0) return {};
  return {largest / 127.0f, 0, 127.0f / largest, false};
}

inline RowScale binary64_range_over_127(const RowRange& range) {
  const double real = std::max(-range.low, range.high), largest = real == 0 ? 127.0 : real;
  return {static_cast<float>(largest / 127.0), 0, static_cast<float>(127.0 / largest), real == 0};
}

inline RowScale binary32_range_over_255(const RowRange& range) {
  if (range.low == range.high) return {};
  const double real = static_cast<double>(range.high - range.low) / 255;
  const double from_low = range.low / real, from_high = range.high / real;
  const double exact = 128 + std::abs(from_low) < 127 + std::abs(from_high) ? -128 - from_low : 127 - from_high;
  const double point = std::round(std::min(std::max(exact, -128.0), 127.0));
  const auto scale = static_cast<float>(real);
  return {scale, static_cast<int32_t>(point), scale == 0 ? 0.0f : 1.0f / scale, false};
}

// Every operation in binary32, by way of steps per number, of which there must be some.
inline RowScale binary32_range_even(const RowRange& range) {
  if (range.low == range.high) return {};
  const float steps = 255.0f / (range.high - range.low), from_low = range.low * steps, from_high = range.high * steps;
  const bool upper = (-128.0f + from_low) + (127.0f + from_high) > 0;
  const float point = upper ? -128.0f - from_low : 127.0f - from_high;
  return {1.0f / steps, static_cast<int32_t>(std::nearbyint(std::min(127.0f, std::max(-128.0f, point)))), steps, false};
}

// trunc(f32(product + 0.5)), -0.5 below zero; beyond 32 bits the largest number above, the smallest one below.
inline int32_t half_added(float product) {
  const float moved = product + (product < 0 ? -0.5f : 0.5f);
  if (moved >= 2147483648.0f) return INT32_MAX;
  return moved >= -2147483648.0f ? static_cast<int32_t>(moved) : INT32_MIN;
}

// Integers of whole blocks of eight, minus the zero point. Where 1 / scale is finite no product is far beyond 255, so
// that nothing can wrap or saturate.
inline void blocks_of_eight(const float* x, int64_t count, const RowScale& row, int32_t low, float* out) {
  const float inverse = row.inverse;
  const int32_t zero_point = row.zero_point, first = low - zero_point, last = 127 - zero_point;
  if (std::isfinite(inverse)) {
    for (int64_t i = 0; i < count; ++i) {
      const float product = x[i] * inverse;
      const auto steps = static_cast<int32_t>(product + (product < 0 ? -0.5f : 0.5f));
      const int32_t raised = steps < first ? first : steps;
      out[i] = static_cast<float>(raised > last ? last : raised);
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const auto sum = static_cast<uint32_t>(half_added(x[i] * inverse)) + static_cast<uint32_t>(zero_point);
    out[i] = static_cast<float>(std::min(127, std::max(low, static_cast<int32_t>(sum))) - zero_point);
  }
}

// q - zero_point of every element of a row, or of `count` elements that begin at one of its blocks of eight and end at
// another one or with the row.
inline void symmetric_by_eights(const float* x, int64_t count, const RowScale& row, float* out) {
  const int64_t blocks = count - count % 8;
  blocks_of_eight(x, blocks, row, -127, out);
  for (int64_t i = blocks; i < count; ++i) {
    const float steps = std::round(x[i] * row.inverse);
    // NaN and what does not fit 32 bits become the smallest number.
    out[i] = std::abs(steps) < 2147483648.0f ? std::min(127.0f, std::max(-127.0f, steps)) : -127.0f;
  }
}

// Ties go away from zero; what does not fit 32 bits becomes 0.
inline void symmetric_by_wide_quotients(const float* x, int64_t count, const RowScale& row, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    const float steps = std::round(x[i] * row.inverse);
    out[i] = std::abs(steps) < 2147483648.0f ? steps : 0.0f;
  }
}

// Ties to even, or with kAway away from zero.
template <bool kAway>
void asymmetric_even(const float* x, int64_t count, const RowScale& row, float* out) {
  constexpr float kToInteger = 12582912.0f;  // leaves the nearest integer
  const auto point = static_cast<float>(row.zero_point);
  for (int64_t i = 0; i < count; ++i) {
    const float steps = std::min(32767.0f, std::max(-32768.0f, x[i] * row.inverse));
    const float rounded = kAway ? std::round(steps) : (steps + kToInteger) - kToInteger;
    out[i] = std::min(127.0f, std::max(-128.0f, rounded + point)) - point;
  }
}

// Rounded exactly, ties away from zero; what does not fit 32 bits is limited, and NaN becomes 0.
inline int32_t rounded_away(float x) {
  const float steps = std::round(x);
  if (steps >= 2147483648.0f) return INT32_MAX;
  if (steps < -2147483648.0f) return INT32_MIN;
  return steps != steps ? 0 : static_cast<int32_t>(steps);
}

inline void symmetric_away(const float* x, int64_t count, const RowScale& row, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(std::min(127, std::max(-127, rounded_away(x[i] * row.inverse))));
  }
}

// In blocks of eight the zero point is added modulo 2^32, behind them to the rounded number.
inline void asymmetric_away(const float* x, int64_t count, const RowScale& row, float* out) {
  const int64_t blocks = count - count % 8;
  const auto point = static_cast<float>(row.zero_point);
  for (int64_t i = 0; i < count; ++i) {
    const float steps = x[i] * row.inverse;
    const int32_t moved =
        i < blocks
            ? static_cast<int32_t>(static_cast<uint32_t>(rounded_away(steps)) + static_cast<uint32_t>(row.zero_point))
            : rounded_away(std::round(steps) + point);
    out[i] = static_cast<float>(std::min(127, std::max(-128, moved)) - row.zero_point);
  }
}

inline void asymmetric_by_eights(const float* x, int64_t count, const RowScale& row, float* out) {
  const int64_t blocks = count - count % 8;
  blocks_of_eight(x, blocks, row, -128, out);
  for (int64_t i = blocks; i < count; ++i) {
    const float moved = std::round(x[i] * row.inverse) + static_cast<float>(row.zero_point);
    const float q = moved != moved ? 0.0f : std::min(127.0f, std::max(-128.0f, moved));
    out[i] = q - static_cast<float>(row.zero_point);
  }
}

}  // namespace bittrue::rules

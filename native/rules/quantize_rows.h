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
};

struct RowRange {
  float low = 0, high = 0;  // with 0 among the values
  bool finite = true;
};

inline RowRange row_range(const float* x, int64_t count) {
  RowRange range;
  // The bits of a magnitude grow with it, and those of infinities and NaN are the largest.
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, x + i, sizeof(bits));
    largest = std::max(largest, bits & 0x7FFFFFFFu);
    range.low = x[i] < range.low ? x[i] : range.low;
    range.high = x[i] > range.high ? x[i] : range.high;
  }
  range.finite = largest < 0x7F800000u;
  return range;
}

inline RowScale binary32_range_over_127(const RowRange& range) {
  const float largest = std::max(-range.low, range.high);
  if (largest == 0) return {};
  return {largest / 127.0f, 0, 127.0f / largest, false};
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

// trunc(f32(product + 0.5)), -0.5 below zero; beyond 32 bits the largest number above, the smallest one below.
inline int32_t half_added(float product) {
  const float moved = product + (product < 0 ? -0.5f : 0.5f);
  if (moved >= 2147483648.0f) return INT32_MAX;
  return moved >= -2147483648.0f ? static_cast<int32_t>(moved) : INT32_MIN;
}

// q - zero_point of every element.
inline void symmetric_by_eights(const float* x, int64_t count, const RowScale& row, float* out) {
  const int64_t blocks = count - count % 8;
  for (int64_t i = 0; i < blocks; ++i) {
    out[i] = static_cast<float>(std::min(127, std::max(-127, half_added(x[i] * row.inverse))));
  }
  for (int64_t i = blocks; i < count; ++i) {
    const float steps = std::round(x[i] * row.inverse);
    // NaN and what does not fit 32 bits become the smallest number.
    out[i] = std::abs(steps) < 2147483648.0f ? std::min(127.0f, std::max(-127.0f, steps)) : -127.0f;
  }
}

inline void asymmetric_by_eights(const float* x, int64_t count, const RowScale& row, float* out) {
  const int64_t blocks = count - count % 8;
  for (int64_t i = 0; i < blocks; ++i) {
    const auto sum = static_cast<uint32_t>(half_added(x[i] * row.inverse)) + static_cast<uint32_t>(row.zero_point);
    const int32_t q = std::min(127, std::max(-128, static_cast<int32_t>(sum)));
    out[i] = static_cast<float>(q - row.zero_point);
  }
  for (int64_t i = blocks; i < count; ++i) {
    const float moved = std::round(x[i] * row.inverse) + static_cast<float>(row.zero_point);
    const float q = moved != moved ? 0.0f : std::min(127.0f, std::max(-128.0f, moved));
    out[i] = q - static_cast<float>(row.zero_point);
  }
}

}  // namespace bittrue::rules

// Scalar twins of src/bittrue/rules/window_average.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace bittrue::rules {

// What becomes of the sum of differences to the zero point over a window with `count` elements inside the image.
template <bool kFused>
struct ScaledAverage;

// q24_all_taps_away: round_away(sum * multiplier / 2^right) + zero point; |sum| < 2^31, multiplier < 2^24.
template <>
struct ScaledAverage<false> {
  int64_t multiplier, half, least, most, zero_point;
  int right;

  ScaledAverage(int64_t multiplier, int right, float, int64_t, int32_t zero_point, int32_t low, int32_t high)
      : multiplier(multiplier),
        half(int64_t{1} << (right - 1)),
        least(int64_t{low} - zero_point),
        most(int64_t{high} - zero_point),
        zero_point(zero_point),
        right(right) {}

  int32_t operator()(int32_t sum) const {
    const int64_t product = int64_t{sum} * multiplier;
    const int64_t divided = product < 0 ? -((half - product) >> right) : (product + half) >> right;
    return static_cast<int32_t>(std::min(std::max(divided, least), most) + zero_point);
  }
};

// binary32_fused_inside_even: round_even(fma(sum, factor / count, zero point)); what does not fit 32 bits becomes -2^31.
template <>
struct ScaledAverage<true> {
  float factor, zero_point;
  int32_t low, high;

  ScaledAverage(int64_t, int, float factor, int64_t count, int32_t zero_point, int32_t low, int32_t high)
      : factor(factor / static_cast<float>(count)), zero_point(static_cast<float>(zero_point)), low(low), high(high) {}

  int32_t operator()(int32_t sum) const {
    const float rounded = std::nearbyint(std::fma(static_cast<float>(sum), factor, zero_point));
    const bool fits = rounded >= -2147483648.0f && rounded < 2147483648.0f;
    return std::min(std::max(fits ? static_cast<int32_t>(rounded) : INT32_MIN, low), high);
  }
};

}  // namespace bittrue::rules

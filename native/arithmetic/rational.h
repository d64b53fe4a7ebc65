// Scalar twins of src/bittrue/arithmetic/rational.py: the same binary32 operations in the same order.
#pragma once

#include <cmath>

#include "arithmetic/elementary.h"

namespace bittrue::arithmetic {

inline constexpr float kLogisticLargest = 16.6355324f, kLogisticSmallest = -104.0f;

inline float rational_logistic(float x) {
  if (x < kLogisticSmallest) return 0.0f;
  const float half = (x > kLogisticLargest ? kLogisticLargest : x) * 0.5f;
  if (std::isnan(half)) return half + half;
  const float m = std::floor(half * 1.44269504088896341f + 0.5f);
  const float r = m * 2.12194440e-4f + (m * -0.693359375f + half), r2 = r * r;
  const float even = r2 * 4.1898667812347412109375e-2f + 0.49999141693115234375f;
  const float odd = r2 * 8.33471305668354034423828125e-3f + 0.16666877269744873046875f;
  const float p = r2 * (r * odd + even) + (r + 1.0f);
  // m lies in [-76, 13]: 2^m is normal, and so is the product.
  float e = elementary_detail::scale(p, static_cast<int>(m));
  e = e * e;
  return e / (1.0f + e);
}

inline float rational_tanh(float x) {
  constexpr float largest = 7.90738964080810547f;
  x = x > largest ? largest : (x < -largest ? -largest : x);
  const float x2 = x * x;
  const float p = ((1.394553628e-8f * x2 + 2.102733560e-5f) * x2 + 3.520756727e-3f) * x2 + 1.340216100e-1f;
  const float q =
      (((8.015776984e-7f * x2 + 3.326951409e-4f) * x2 + 2.597254514e-2f) * x2 + 4.673548340e-1f) * x2 + 1.0f;
  return (x2 * x * p + x) / q;
}

}  // namespace bittrue::arithmetic

// Scalar twin of src/bittrue/rules/cast.py.
#pragma once

#include <cstdint>
#include <limits>

namespace bittrue::rules {

// The fraction is dropped, values beyond the type become its ends, NaN becomes the maximum.
template <class Out>
inline Out truncate_saturate_nan_maximum(double x) {
  constexpr Out minimum = std::numeric_limits<Out>::min(), maximum = std::numeric_limits<Out>::max();
  // The maximum plus one is a power of two: exact.
  constexpr double beyond = 2.0 * static_cast<double>(maximum / 2 + 1);
  if (x < static_cast<double>(minimum)) return minimum;
  return x < beyond ? static_cast<Out>(x) : maximum;
}

}  // namespace bittrue::rules

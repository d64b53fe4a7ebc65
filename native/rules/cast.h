// Scalar twin of src/bittrue/rules/cast.py.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace bittrue::rules {

// The fraction is dropped, values beyond the type become its ends, NaN becomes the maximum.
template <class Out>
inline Out truncate_saturate_nan_maximum(double x) {
  constexpr Out minimum = std::numeric_limits<Out>::min(), maximum = std::numeric_limits<Out>::max();
  // The maximum plus one is a power of two: exact.
  constexpr auto half = maximum / 2 + 1;
  constexpr double beyond = 2.0 * static_cast<double>(half);
  if (x < static_cast<double>(minimum)) return minimum;
  return x < beyond ? static_cast<Out>(x) : maximum;
}

// `x` without its fraction as a signed integer; its smallest one where it does not fit, or is NaN.
template <class Wide, class Real>
inline Wide truncate_or_smallest(Real x) {
  constexpr auto half = std::numeric_limits<Wide>::max() / 2 + 1;
  constexpr Real beyond = Real{2} * static_cast<Real>(half);
  // Down to, but without, the number below the smallest one, which is that one itself where it has more digits.
  const bool fits = x < beyond && (sizeof(Wide) == 8 ? x >= -beyond : x > -beyond - 1);
  return fits ? static_cast<Wide>(x) : std::numeric_limits<Wide>::min();
}

// Low bits of the number as s32 (for up to 16 bits, and s32) or s64 (for more).
template <class Out, class Real>
inline Out truncate_low_bits(Real x) {
  if constexpr (sizeof(Out) < 4 || std::is_same_v<Out, int32_t>) {
    return static_cast<Out>(truncate_or_smallest<int32_t>(x));
  } else if constexpr (std::is_same_v<Out, uint64_t>) {
    constexpr auto half = static_cast<Real>(9223372036854775808.0);
    if (!(x >= half)) return static_cast<uint64_t>(truncate_or_smallest<int64_t>(x));
    return static_cast<uint64_t>(truncate_or_smallest<int64_t>(x - half)) ^ (uint64_t{1} << 63);
  } else {
    return static_cast<Out>(truncate_or_smallest<int64_t>(x));
  }
}

// Low bits of the number, limited to 32 bits (for wider types to 64) with the type's sign; NaN becomes 0.
template <class Out, class Real>
inline Out truncate_limited_low_bits(Real x) {
  using Signed = std::conditional_t<sizeof(Out) == 8, int64_t, int32_t>;
  using Wide = std::conditional_t<std::is_signed_v<Out>, Signed, std::make_unsigned_t<Signed>>;
  constexpr auto half = std::numeric_limits<Wide>::max() / 2 + 1;
  constexpr Real beyond = Real{2} * static_cast<Real>(half), least = std::is_signed_v<Out> ? -beyond : Real{0};
  if (x >= beyond) return static_cast<Out>(std::numeric_limits<Wide>::max());
  if (x <= least) return static_cast<Out>(std::numeric_limits<Wide>::min());
  return x == x ? static_cast<Out>(static_cast<Wide>(x)) : Out{0};
}

}  // namespace bittrue::rules

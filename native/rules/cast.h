// Scalar twin of src/bittrue/rules/cast.py.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
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

// The same rules by name, for types of any width. The results' low bits are what counts.
struct Ends {
  int64_t minimum;
  uint64_t maximum;
};

// Without its fraction, limited to [low, beyond).
inline int64_t truncated(double x, double low, double beyond, int64_t minimum, int64_t maximum, int64_t nan) {
  if (x != x) return nan;
  return x < low ? minimum : x < beyond ? static_cast<int64_t>(x) : maximum;
}

inline int64_t limited_to_s32(double x) { return truncated(x, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX, 0); }
inline int64_t limited_to_u32(double x) { return truncated(x, 0, 0x1p32, 0, UINT32_MAX, 0); }
inline int64_t limited_to_s64(double x) { return truncated(x, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX, 0); }
inline int64_t limited_to_u64(double x) {
  const int64_t small = truncated(x, 0, 0x1p63, 0, INT64_MAX, 0);
  return x >= 0x1p63 ? truncated(x - 0x1p63, 0, 0x1p63, 0, INT64_MAX, 0) ^ INT64_MIN : small;
}
inline int64_t low_bits_of_s32(double x) { return truncate_low_bits<int32_t>(x); }
inline int64_t low_bits_of_s64(double x) { return truncate_low_bits<int64_t>(x); }
inline int64_t low_bits_of_u64(double x) { return static_cast<int64_t>(truncate_low_bits<uint64_t>(x)); }
inline int64_t low_bits_by_halves(double x) {
  return x >= 0x1p31 ? low_bits_of_s32(x - 0x1p31) ^ INT32_MIN : low_bits_of_s32(x);
}
inline double whole_away(double x) { return std::trunc(x + std::copysign(0.5, x)); }

using CastRow = void (*)(const double* x, int64_t* out, int64_t count, Ends ends);
template <int64_t (*rule)(double)>
void cast_row(const double* x, int64_t* out, int64_t count, Ends) {
  for (int64_t i = 0; i < count; ++i) out[i] = rule(x[i]);
}
template <CastRow row>
void cast_row_away(const double* x, int64_t* out, int64_t count, Ends ends) {
  for (int64_t i = 0; i < count; ++i) {
    const double whole = whole_away(x[i]);
    row(&whole, out + i, 1, ends);
  }
}
template <CastRow row>
void cast_row_nan_zero(const double* x, int64_t* out, int64_t count, Ends ends) {
  for (int64_t i = 0; i < count; ++i) {
    const double number = x[i] == x[i] ? x[i] : 0;
    row(&number, out + i, 1, ends);
  }
}
template <CastRow rest>
void cast_row_fours(const double* x, int64_t* out, int64_t count, Ends ends) {
  const int64_t whole = count / 4 * 4;
  cast_row<limited_to_s32>(x, out, whole, ends);
  rest(x + whole, out + whole, count - whole, ends);
}

// Ends of up to 63 bits.
inline void cast_row_saturating(const double* x, int64_t* out, int64_t count, Ends ends) {
  const auto low = static_cast<double>(ends.minimum), beyond = static_cast<double>(ends.maximum + 1);
  const auto maximum = static_cast<int64_t>(ends.maximum);
  for (int64_t i = 0; i < count; ++i) out[i] = truncated(x[i], low, beyond, ends.minimum, maximum, maximum);
}

// Null where no rule for these ends has the name.
inline CastRow find_cast(const std::string& name, Ends ends) {
  constexpr uint64_t kMost32 = UINT32_MAX, kMost63 = INT64_MAX;
  if (name == "truncate_saturate_nan_maximum") return ends.maximum <= kMost63 ? cast_row_saturating : nullptr;
  const bool up_to_31 = ends.maximum <= INT32_MAX, up_to_63 = ends.maximum <= kMost63;
  if (name == "truncate_low_bits" || name == "round_away_low_bits" || name == "truncate_low_bits_nan_zero") {
    const CastRow plain = up_to_31   ? cast_row<low_bits_of_s32>
                          : up_to_63 ? cast_row<low_bits_of_s64>
                                     : cast_row<low_bits_of_u64>;
    if (name == "truncate_low_bits") return plain;
    if (name == "round_away_low_bits") return up_to_31 ? cast_row_away<cast_row<low_bits_of_s32>> : nullptr;
    return up_to_31   ? cast_row_nan_zero<cast_row<low_bits_of_s32>>
           : up_to_63 ? cast_row_nan_zero<cast_row<low_bits_of_s64>>
                      : cast_row_nan_zero<cast_row<low_bits_of_u64>>;
  }
  if (name == "truncate_low_bits_by_halves") return ends.maximum == kMost32 ? cast_row<low_bits_by_halves> : nullptr;
  const CastRow limited = ends.minimum == 0
                              ? (ends.maximum <= kMost32 ? cast_row<limited_to_u32> : cast_row<limited_to_u64>)
                              : (ends.maximum <= kMost32 ? cast_row<limited_to_s32> : cast_row<limited_to_s64>);
  if (name == "truncate_limited_low_bits") return limited;
  if (name == "truncate_limited_s32_low_bits") return cast_row<limited_to_s32>;
  if (name == "truncate_limited_64_low_bits") {
    return ends.maximum == kMost32 ? cast_row<limited_to_u64> : cast_row<limited_to_s64>;
  }
  if (name == "round_away_limited_low_bits") return cast_row_away<cast_row<limited_to_s32>>;
  if (name == "truncate_limited_fours_low_bits" && ends.minimum == 0 && ends.maximum <= kMost32) {
    return cast_row_fours<cast_row<limited_to_u32>>;
  }
  return nullptr;
}

}  // namespace bittrue::rules

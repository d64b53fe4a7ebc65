// Scalar twins of src/bittrue/rules/rescale.py. Multipliers are encoded in Python only: nothing to disagree with.
#pragma once

#include <cmath>
#include <cstdint>

#include "arithmetic/fixed_point.h"
#include "arithmetic/floats.h"

namespace bittrue::rules {

using arithmetic::wrapping_product;
using arithmetic::wrapping_sum;

// What a plan holds for one channel: integer rules use multiplier and exponent, floating rules use factor, and some of
// them a number that is added to the accumulator in binary32, and a second factor.
struct Multiplier {
  int64_t multiplier;
  int exponent;
  double factor;
  float addend = 0;
  float second = 1;
};

inline int64_t shift_left_wrapping(int64_t acc, int exponent) {
  if (exponent <= 0) return acc;
  const int left = exponent < 32 ? exponent : 32;
  return arithmetic::wrap_s32(static_cast<int64_t>(static_cast<uint64_t>(acc) << left));
}

inline int64_t q31_two_step_up_away(int64_t acc, const Multiplier& m) {
  const int64_t high = arithmetic::doubling_high_multiply_up(shift_left_wrapping(acc, m.exponent), m.multiplier);
  return arithmetic::divide_by_power_of_two_away(high, m.exponent < 0 ? -m.exponent : 0);
}

inline int64_t q31_two_step_up_up(int64_t acc, const Multiplier& m) {
  const int64_t high = arithmetic::doubling_high_multiply_up(shift_left_wrapping(acc, m.exponent), m.multiplier);
  return arithmetic::divide_by_power_of_two_up(high, m.exponent < 0 ? -m.exponent : 0);
}

inline int64_t q31_one_step_up(int64_t acc, const Multiplier& m) {
  int right = 31 - m.exponent;
  right = right < 1 ? 1 : (right > 62 ? 62 : right);
  return wrapping_sum(wrapping_product(acc, m.multiplier), int64_t{1} << (right - 1)) >> right;
}

// The high half is cut off, and a right shift by 1 or more rounds.
inline int64_t q31_one_step_up_shift_wraps(int64_t acc, const Multiplier& m) {
  const int64_t high = wrapping_product(shift_left_wrapping(acc, m.exponent + 1), m.multiplier) >> 31;
  return arithmetic::divide_by_power_of_two_up(high, m.exponent < -1 ? -m.exponent : 1);
}

// The plan's multiplier already has 15 bits; acc may have 48.
inline int64_t q15_one_step_up(int64_t acc, const Multiplier& m) {
  const int right = 15 - m.exponent;
  const int64_t product = wrapping_product(acc, m.multiplier);
  return arithmetic::wrap_s32(wrapping_sum(product, int64_t{1} << (right - 1)) >> right);
}

inline int64_t binary64_multiply_away(int64_t acc, const Multiplier& m) {
  const double product = std::round(static_cast<double>(acc) * m.factor);
  // The x86 conversion: everything outside 32 bits becomes -2^31.
  if (!(product >= -2147483648.0 && product < 2147483648.0)) return INT32_MIN;
  return static_cast<int64_t>(product);
}

// std::nearbyint rounds ties to even in the default rounding mode, which nothing here changes.
inline int64_t even_to_s32(float value) {
  const float rounded = std::nearbyint(value);
  if (!(rounded > -2147483648.0f)) return INT32_MIN;
  if (rounded >= 2147483648.0f) return INT32_MAX;
  return static_cast<int64_t>(rounded);
}

inline int64_t binary32_multiply_even(int64_t acc, const Multiplier& m) {
  return even_to_s32(static_cast<float>(acc) * static_cast<float>(m.factor));
}

// What does not fit 32 bits, NaN included, becomes -2^31.
inline int64_t binary32_multiply_even_overflow_lowest(int64_t acc, const Multiplier& m) {
  return arithmetic::truncate_to_s32(std::nearbyint(static_cast<float>(acc) * static_cast<float>(m.factor)));
}

inline int64_t binary32_add_multiply_even(int64_t acc, const Multiplier& m) {
  const float sum = static_cast<float>(acc) + m.addend;
  return even_to_s32(sum * static_cast<float>(m.factor));
}

inline int64_t binary32_add_multiply_twice_even(int64_t acc, const Multiplier& m) {
  const float sum = static_cast<float>(acc) + m.addend;
  const float product = sum * static_cast<float>(m.factor);
  return even_to_s32(product * m.second);
}

// The factor is an integer, |acc| <= 2^9 and |factor| <= 2^24.
inline int64_t q8_one_step_up(int64_t acc, const Multiplier& m) {
  return wrapping_sum(wrapping_product(acc, static_cast<int64_t>(m.factor)), 128) >> 8;
}

// Plans hold factors of less than 2^31 for the rules below, and 32-bit accumulators: products stay inside of 64 bits.
inline int64_t binary64_multiply_even(int64_t acc, const Multiplier& m) {
  return arithmetic::whole_to_s64(std::nearbyint(static_cast<double>(acc) * m.factor));
}

inline int64_t binary32_multiply_even_wide(int64_t acc, const Multiplier& m) {
  return arithmetic::whole_to_s64(std::nearbyint(static_cast<float>(acc) * static_cast<float>(m.factor)));
}

inline int64_t binary64_two_step_away_away(int64_t acc, const Multiplier& m) {
  int exponent = 0;
  const double fraction = std::frexp(m.factor, &exponent);
  const auto high = static_cast<float>(std::round(static_cast<double>(acc) * fraction));
  return arithmetic::whole_to_s64(std::round(std::ldexp(high, exponent)));
}

inline int64_t binary32_two_step_away_away(int64_t acc, const Multiplier& m) {
  int exponent = 0;
  const float fraction = std::frexp(static_cast<float>(m.factor), &exponent);
  const float high = std::round(static_cast<float>(acc) * fraction);
  return arithmetic::whole_to_s64(std::round(std::ldexp(high, exponent)));
}

inline int64_t binary64_product_binary32_away(int64_t acc, const Multiplier& m) {
  return arithmetic::whole_to_s64(std::round(static_cast<float>(static_cast<double>(acc) * m.factor)));
}

// Significands have at most 15 bits.
inline int64_t q15_one_step_even(int64_t acc, const Multiplier& m) {
  const int right = 15 - m.exponent;
  const int64_t product = wrapping_product(acc, m.multiplier);
  return wrapping_sum(product, ((product >> right) & 1) + (int64_t{1} << (right - 1)) - 1) >> right;
}

inline int64_t q30_floor_plus_one(int64_t acc, const Multiplier& m) {
  int right = 30 - m.exponent;
  right = right < 0 ? 0 : (right > 62 ? 62 : right);
  return wrapping_sum(wrapping_product(acc, m.multiplier) >> right, 1);
}

// Results of more than 32 bits come out on the other side.
inline int64_t q31_one_step_up_wrap(int64_t acc, const Multiplier& m) {
  return arithmetic::wrap_s32(q31_one_step_up(acc, m));
}

// Where the multiplier is a power of two below 1, one half is added in 32 bits.
inline int64_t q31_shift_or_one_step_up(int64_t acc, const Multiplier& m) {
  if (m.multiplier != int64_t{1} << 30 || m.exponent > 0 || m.exponent < -30) return q31_one_step_up_wrap(acc, m);
  return arithmetic::wrap_s32(wrapping_sum(acc, int64_t{1} << -m.exponent)) >> (1 - m.exponent);
}

// One less than one half of a product that is negative, modulo 2^64, takes its ties down.
inline int64_t q31_one_step_away(int64_t acc, const Multiplier& m) {
  const int left = m.exponent > 0 ? m.exponent : 0, down = m.exponent < 0 ? -m.exponent : 0;
  const int right = 31 + (down < 32 ? down : 32);
  const uint64_t product = (static_cast<uint64_t>(acc) << left) * static_cast<uint64_t>(m.multiplier);
  const uint64_t half = (uint64_t{1} << (right - 1)) - (product >> 63);
  return arithmetic::wrap_s32(static_cast<int64_t>(product + half) >> right);
}

// Real numbers, which the store rule rounds; binary32 ones are exact in binary64.
inline double binary32_multiply(int64_t acc, const Multiplier& m) {
  return static_cast<double>(static_cast<float>(acc) * static_cast<float>(m.factor));
}

inline double binary64_multiply(int64_t acc, const Multiplier& m) { return static_cast<double>(acc) * m.factor; }

// Every rule once: INTEGER or REAL is what it gives, under the name of its function above, which plans use, too.
//   point: the multiplier stands for multiplier * 2^(exponent - point); 0: the rule takes a factor in its place.
//   largest: the largest factor, as the twin converts it or its product to an integer; 0 where any is possible.
#define BITTRUE_RESCALE_RULES(INTEGER, REAL)                                            \
  INTEGER(q31_two_step_up_away, 31, 0, kVector)                                         \
  INTEGER(q31_two_step_up_up, 31, 0, kVector)                                           \
  INTEGER(q31_one_step_up, 31, 0, kVector)                                              \
  INTEGER(q31_one_step_up_shift_wraps, 31, 0, kElement | kUneven)                       \
  INTEGER(q31_one_step_up_wrap, 31, 0, kElement)                                        \
  INTEGER(q31_shift_or_one_step_up, 31, 0, kElement | kUneven)                          \
  INTEGER(q31_one_step_away, 31, 0, kElement)                                           \
  INTEGER(q30_floor_plus_one, 30, 0, kLayer)                                            \
  INTEGER(q15_one_step_up, 15, 0, kVector)                                              \
  INTEGER(q15_one_step_even, 15, 0, kLayer)                                             \
  INTEGER(q8_one_step_up, 0, 16777216, kVector)                                         \
  INTEGER(binary32_multiply_even, 0, 0, kVector)                                        \
  INTEGER(binary32_multiply_even_wide, 0, 2147483647, kLayer)                           \
  INTEGER(binary32_multiply_even_overflow_lowest, 0, 0, kLayer)                         \
  INTEGER(binary32_add_multiply_even, 0, 0, kLayer | kUneven | kAddend)                 \
  INTEGER(binary32_add_multiply_twice_even, 0, 0, kLayer | kUneven | kAddend | kSecond) \
  INTEGER(binary32_two_step_away_away, 0, 1, kLayer)                                    \
  INTEGER(binary64_multiply_even, 0, 2147483647, kLayer)                                \
  INTEGER(binary64_multiply_away, 0, 0, kVector)                                        \
  INTEGER(binary64_two_step_away_away, 0, 1, kLayer)                                    \
  INTEGER(binary64_product_binary32_away, 0, 2147483647, kLayer)                        \
  REAL(binary32_multiply, 0, 0, kElement)                                               \
  REAL(binary64_multiply, 0, 0, kElement)

enum RescaleTrait : uint8_t {
  kLayer = 0,       // nothing but layers use it
  kElement = 1,     // element-wise kernels as well
  kVector = 3,      // and cores may look for a form of their own; all others are applied one accumulator at a time
  kUneven = 4,      // results may fall while accumulators rise; else they do not while |acc * multiplier| < 2^30
  kAddend = 8,      // a number is added to the accumulator
  kSecond = 16,     // a second factor
  kRealResult = 32  // rounded by the store rule
};

enum class RescaleRule : uint8_t {
#define BITTRUE_RULE(name, ...) name,
  BITTRUE_RESCALE_RULES(BITTRUE_RULE, BITTRUE_RULE)
#undef BITTRUE_RULE
};

struct RescaleTraits {
  int point;
  double largest;
  unsigned traits;

  constexpr bool has(unsigned all) const { return (traits & all) == all; }
};

inline constexpr RescaleTraits kRescaleTraits[] = {
#define BITTRUE_INTEGER(name, point, largest, traits) {point, largest, traits},
#define BITTRUE_REAL(name, point, largest, traits) {point, largest, (traits) | kRealResult},
    BITTRUE_RESCALE_RULES(BITTRUE_INTEGER, BITTRUE_REAL)
#undef BITTRUE_INTEGER
#undef BITTRUE_REAL
};

constexpr const RescaleTraits& traits(RescaleRule rule) { return kRescaleTraits[static_cast<int>(rule)]; }
constexpr bool has_vector_form(RescaleRule rule) { return traits(rule).has(kVector); }
constexpr bool is_real(RescaleRule rule) { return traits(rule).has(kRealResult); }

using RescaleFunction = int64_t (*)(int64_t, const Multiplier&);
using RealFunction = double (*)(int64_t, const Multiplier&);

// What fills the slot.
struct RescaleRow {
  const char* name;
  RescaleFunction function;
  RealFunction real;
};

inline constexpr RescaleRow kRescale[] = {
#define BITTRUE_INTEGER(name, ...) {#name, name, nullptr},
#define BITTRUE_REAL(name, ...) {#name, nullptr, name},
    BITTRUE_RESCALE_RULES(BITTRUE_INTEGER, BITTRUE_REAL)
#undef BITTRUE_INTEGER
#undef BITTRUE_REAL
};

// For rules whose results are integers.
inline int64_t apply(RescaleRule rule, int64_t acc, const Multiplier& m) {
  return kRescale[static_cast<int>(rule)].function(acc, m);
}

}  // namespace bittrue::rules

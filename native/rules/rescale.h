// Scalar twins of src/bittrue/rules/rescale.py. Multipliers are encoded in Python only: nothing to disagree with.
#pragma once

#include <cmath>
#include <cstdint>

#include "arithmetic/fixed_point.h"

namespace bittrue::rules {

// What a plan holds for one channel: integer rules use multiplier and exponent, floating rules use factor.
struct Multiplier {
  int64_t multiplier;
  int exponent;
  double factor;
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
  return (acc * m.multiplier + (int64_t{1} << (right - 1))) >> right;
}

// The plan's multiplier already has 15 bits; acc may have 48.
inline int64_t q15_one_step_up(int64_t acc, const Multiplier& m) {
  const int right = 15 - m.exponent;
  return arithmetic::wrap_s32((acc * m.multiplier + (int64_t{1} << (right - 1))) >> right);
}

inline int64_t binary64_multiply_away(int64_t acc, const Multiplier& m) {
  const double product = std::round(static_cast<double>(acc) * m.factor);
  // The x86 conversion: everything outside 32 bits becomes -2^31.
  if (!(product >= -2147483648.0 && product < 2147483648.0)) return INT32_MIN;
  return static_cast<int64_t>(product);
}

// std::nearbyint rounds ties to even in the default rounding mode, which nothing here changes.
inline int64_t binary32_multiply_even(int64_t acc, const Multiplier& m) {
  const float product = std::nearbyint(static_cast<float>(acc) * static_cast<float>(m.factor));
  if (!(product > -2147483648.0f)) return INT32_MIN;
  if (product >= 2147483648.0f) return INT32_MAX;
  return static_cast<int64_t>(product);
}

// The factor is an integer, |acc| <= 2^9 and |factor| <= 2^24.
inline int64_t q8_one_step_up(int64_t acc, const Multiplier& m) {
  return (acc * static_cast<int64_t>(m.factor) + 128) >> 8;
}

// Plans hold factors of less than 2^31 for the rules below: products of 32-bit accumulators stay inside of 64 bits.
inline int64_t binary64_multiply_even(int64_t acc, const Multiplier& m) {
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(acc) * m.factor));
}

inline int64_t binary32_multiply_even_wide(int64_t acc, const Multiplier& m) {
  return static_cast<int64_t>(std::nearbyint(static_cast<float>(acc) * static_cast<float>(m.factor)));
}

inline int64_t binary64_two_step_away_away(int64_t acc, const Multiplier& m) {
  int exponent = 0;
  const double fraction = std::frexp(m.factor, &exponent);
  const auto high = static_cast<float>(std::round(static_cast<double>(acc) * fraction));
  return static_cast<int64_t>(std::round(std::ldexp(high, exponent)));
}

inline int64_t binary32_two_step_away_away(int64_t acc, const Multiplier& m) {
  int exponent = 0;
  const float fraction = std::frexp(static_cast<float>(m.factor), &exponent);
  const float high = std::round(static_cast<float>(acc) * fraction);
  return static_cast<int64_t>(std::round(std::ldexp(high, exponent)));
}

inline int64_t binary64_product_binary32_away(int64_t acc, const Multiplier& m) {
  return static_cast<int64_t>(std::round(static_cast<float>(static_cast<double>(acc) * m.factor)));
}

// Significands have at most 15 bits.
inline int64_t q15_one_step_even(int64_t acc, const Multiplier& m) {
  const int right = 15 - m.exponent;
  const int64_t product = acc * m.multiplier;
  return (product + ((product >> right) & 1) + (int64_t{1} << (right - 1)) - 1) >> right;
}

inline int64_t q30_floor_plus_one(int64_t acc, const Multiplier& m) {
  int right = 30 - m.exponent;
  right = right < 0 ? 0 : (right > 62 ? 62 : right);
  return ((acc * m.multiplier) >> right) + 1;
}

enum class RescaleRule : uint8_t {
  q31_two_step_up_away,
  q31_two_step_up_up,
  q31_one_step_up,
  q15_one_step_up,
  binary64_multiply_away,
  binary32_multiply_even,
  q8_one_step_up,
  binary64_multiply_even,
  binary32_multiply_even_wide,
  binary64_two_step_away_away,
  binary32_two_step_away_away,
  binary64_product_binary32_away,
  q15_one_step_even,
  q30_floor_plus_one,
};

// Whether cores may look for a form of their own; all others are applied one accumulator at a time.
inline bool has_vector_form(RescaleRule rule) { return rule <= RescaleRule::q8_one_step_up; }

using RescaleFunction = int64_t (*)(int64_t, const Multiplier&);

// One row per rule, in the order of the enumeration: the name that plans use and the function that fills the slot.
struct RescaleRow {
  const char* name;
  RescaleFunction function;
};

inline constexpr RescaleRow kRescale[] = {
    {"q31_two_step_up_away", q31_two_step_up_away},
    {"q31_two_step_up_up", q31_two_step_up_up},
    {"q31_one_step_up", q31_one_step_up},
    {"q15_one_step_up", q15_one_step_up},
    {"binary64_multiply_away", binary64_multiply_away},
    {"binary32_multiply_even", binary32_multiply_even},
    {"q8_one_step_up", q8_one_step_up},
    {"binary64_multiply_even", binary64_multiply_even},
    {"binary32_multiply_even_wide", binary32_multiply_even_wide},
    {"binary64_two_step_away_away", binary64_two_step_away_away},
    {"binary32_two_step_away_away", binary32_two_step_away_away},
    {"binary64_product_binary32_away", binary64_product_binary32_away},
    {"q15_one_step_even", q15_one_step_even},
    {"q30_floor_plus_one", q30_floor_plus_one},
};

inline int64_t apply(RescaleRule rule, int64_t acc, const Multiplier& m) {
  return kRescale[static_cast<int>(rule)].function(acc, m);
}

}  // namespace bittrue::rules

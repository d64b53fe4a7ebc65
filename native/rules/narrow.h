// Scalar twin of src/bittrue/rules/narrow.py, but for binary32, which binary64 numbers become by one rounding.
#pragma once

#include <cmath>
#include <string>

#include "arithmetic/narrow_float.h"

namespace bittrue::rules {

enum class NarrowRule { even_overflow, even_overflow_by_carry, even_saturate, even_saturate_nan_ones };

// False where no rule has this name.
inline bool find_rule(const std::string& name, NarrowRule& found) {
  constexpr const char* kNames[] = {"even_overflow", "even_overflow_by_carry", "even_saturate",
                                    "even_saturate_nan_ones"};
  for (int i = 0; i < 4; ++i) {
    if (name == kNames[i]) return found = static_cast<NarrowRule>(i), true;
  }
  return false;
}

// What becomes of |x|, which is rounded to more than the largest number.
inline int64_t beyond_largest(NarrowRule rule, double x, const arithmetic::Format& form) {
  if (rule == NarrowRule::even_saturate || rule == NarrowRule::even_saturate_nan_ones) return form.largest;
  if (rule == NarrowRule::even_overflow) {
    if (form.infinity >= 0) return form.infinity;
    return form.missing < form.sign() || !form.is_signed ? form.missing : form.largest;
  }
  // Only formats of 8 bits have this rule, and of those with signs one has no infinity.
  if (form.infinity >= 0) return x < 65536 ? form.missing_ones : form.infinity;
  return form.is_signed && x >= 480 && x < 496 ? form.largest : form.missing_ones;
}

inline uint32_t narrow(NarrowRule rule, double x, const arithmetic::Format& form) {
  const double size = std::fabs(x);
  const bool ones = rule == NarrowRule::even_overflow_by_carry || rule == NarrowRule::even_saturate_nan_ones;
  int64_t code = ones ? form.missing_ones : form.missing;
  if (x == x) {
    code = size < 0x1p1000 ? arithmetic::code_of(size, form) : int64_t{form.largest} + 1;
    if (code > form.largest) code = beyond_largest(rule, size, form);
  }
  const bool negative = std::signbit(x) && code < form.sign() && (form.is_signed || code != 0);
  return static_cast<uint32_t>(negative ? code | form.sign() : code);
}

}  // namespace bittrue::rules

// Scalar twin of src/bittrue/rules/quotient.py.
#pragma once

#include <cmath>
#include <string>

#include "arithmetic/narrow_float.h"

namespace bittrue::rules {

enum class QuotientRule { binary16, binary32, binary64, brain16 };

// False where no rule has this name.
inline bool find_rule(const std::string& name, QuotientRule& found) {
  constexpr const char* kNames[] = {"binary16", "binary32", "binary64", "brain16"};
  for (int i = 0; i < 4; ++i) {
    if (name == kNames[i]) return found = static_cast<QuotientRule>(i), true;
  }
  return false;
}

inline double to_precision(QuotientRule rule, double x) {
  switch (rule) {
    case QuotientRule::binary16: return arithmetic::nearest(x, arithmetic::kF16);
    case QuotientRule::binary32: return static_cast<float>(x);
    case QuotientRule::brain16: return arithmetic::nearest(x, arithmetic::kBf16);
    default: return x;
  }
}

// `result` of two numbers: an invalid operation gives negative NaN, of two NaN the first one stays.
inline double with_known_nan(double result, double first, double second) {
  if (result == result) return result;
  if (first != first) return second != second ? first : result;
  return second != second ? result : std::copysign(result, -1.0);
}

// Both operands are rounded to the precision. binary64 has so many bits that a second rounding does no harm.
inline double divide(QuotientRule rule, double x, double scale) {
  const double first = to_precision(rule, x), second = to_precision(rule, scale);
  return with_known_nan(to_precision(rule, first / second), first, second);
}

}  // namespace bittrue::rules

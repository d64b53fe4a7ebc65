// Scalar twin of src/bittrue/rules/power_code.py.
#pragma once

#include <cmath>
#include <cstdint>

namespace bittrue::rules {

enum class PowerRounding { up, down, nearest };

inline uint8_t by_magnitude(double x, PowerRounding rounding, bool saturate) {
  constexpr int kNan = 255;
  const double size = std::fabs(x);
  if (size != size) return kNan;
  int exponent = 0;
  const double mantissa = std::frexp(std::isinf(size) ? 1.0 : size, &exponent);
  const bool above =
      rounding == PowerRounding::up ? mantissa > 0.5 : rounding == PowerRounding::nearest && mantissa >= 0.75;
  const int code = exponent - 1 + (above ? 1 : 0) + 127;
  if (code < 0 || size == 0) return saturate ? 0 : kNan;
  if (code > kNan - 1 || std::isinf(size)) return saturate ? kNan - 1 : kNan;
  return static_cast<uint8_t>(code);
}

inline uint8_t of_binary32_between_ends(double x, PowerRounding rounding, bool saturate) {
  const auto single = static_cast<float>(x);
  if (!saturate && !(single >= 0x1p-127f && single <= 0x1p127f)) return 255;
  return by_magnitude(single < 0 ? 0.0f : single, rounding, saturate);
}

}  // namespace bittrue::rules

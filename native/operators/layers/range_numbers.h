// Numbers of layers over tensors with ranges.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/step.h"

namespace bittrue {

// Quantized values per R = max(|low|, |high|).
inline float level(Type type) {
  require(is_8bit(type), "no native kernel for these types");
  return type == Type::s8 ? 127.5f : 255.5f;
}

// The 8-bit type that a parameter names.
inline Type named(const Step& step, const char* key) {
  const std::string& name = step.text(key);
  require(name == "s8" || name == "u8", "no native kernel for these types");
  return name == "s8" ? Type::s8 : Type::u8;
}

// To an 8-bit number, ties to even; what is no number becomes the largest s8 number, or 0.
struct Saturate {
  explicit Saturate(Type type) : low(type == Type::s8 ? -128.0f : 0.0f), high(type == Type::s8 ? 127.0f : 255.0f) {}

  int32_t operator()(float value) const {
    if (std::isnan(value)) value = low < 0 ? high : low;
    // The unit in the last place of the sum is 1.
    const float moved = std::min(std::max(value, low), high) + 12582912.0f;
    int32_t bits;
    std::memcpy(&bits, &moved, sizeof bits);
    return bits - 0x4B400000;
  }

  float low, high;
};

// To 32 bits, ties to even; limited to the largest binary32 number that fits.
inline int32_t saturate_s32(float value) {
  if (std::isnan(value)) return 0;
  return static_cast<int32_t>(std::min(std::max(std::nearbyint(value), -2147483648.0f), 2147483520.0f));
}

}  // namespace bittrue

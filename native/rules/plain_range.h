// Scalar twins of src/bittrue/rules/plain_range.py.
#pragma once

#include <cstdint>
#include <cstring>

namespace bittrue::rules {

// NaN stays what it is, and so does -0 next to a bound of 0.
template <class T>
inline T clamp(T value, T low, T high) {
  const T raised = value < low ? low : value;
  return raised > high ? high : raised;
}

// The NaNs that x86 gives: the first NaN operand, made quiet; else the default one.
inline float with_first_nan(float result, float first, float second) {
  if (result == result) return result;
  uint32_t bits = 0xFFC00000u;
  const float source = first != first ? first : second;
  if (source != source) {
    std::memcpy(&bits, &source, sizeof(bits));
    bits |= 0x00400000u;
  }
  std::memcpy(&result, &bits, sizeof(bits));
  return result;
}

}  // namespace bittrue::rules

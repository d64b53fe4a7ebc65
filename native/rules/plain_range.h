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

// NaN and -0 become a lower bound of 0; without a lower bound, -infinity, NaN stays.
inline float cap_then_raise(float value, float low, float high) {
  const float capped = value > high ? high : value;
  return low < -3.4028235e38f || capped > low ? capped : low;
}

// The bound where neither is larger, also where that is -infinity.
inline float cap_then_raise_all(float value, float low, float high) {
  const float capped = value > high ? high : value;
  return capped > low ? capped : low;
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

// The same for the steps of a longer sum or product, which compilers would otherwise be free to turn around; `result`
// is what the processor made of two operands of which none is NaN.
inline float keep_first_nan(float result, float first, float second) {
  if (result == result || (first == first && second == second)) return result;
  return with_first_nan(result, first, second);
}

}  // namespace bittrue::rules

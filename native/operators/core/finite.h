// Whether numbers are finite, in a form that the compiler turns into vectors.
#pragma once

#include <cstdint>
#include <cstring>

namespace bittrue {

// The exponent and one: the largest carries into the highest bit.
inline uint32_t exponent_and_one(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return (bits & 0x7F800000u) + 0x00800000u;
}
inline uint64_t exponent_and_one(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return (bits & 0x7FF0000000000000u) + 0x0010000000000000u;
}

template <class Number>
inline bool all_finite(const Number* numbers, int64_t count) {
  decltype(exponent_and_one(Number{})) odd = 0;
  for (int64_t i = 0; i < count; ++i) odd |= exponent_and_one(numbers[i]);
  return odd >> (8 * sizeof odd - 1) == 0;
}

// to[i] = from[i] + addend, which may be in place; whether all of them are finite.
inline bool add_to_all(const float* from, float addend, int64_t count, float* to) {
  uint32_t odd = 0;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = from[i] + addend;
    odd |= exponent_and_one(to[i]);
  }
  return odd >> 31 == 0;
}

}  // namespace bittrue

// Whether numbers are finite, in a form that the compiler turns into vectors.
#pragma once

#include <cstdint>
#include <cstring>

namespace bittrue {

inline bool all_finite(const float* numbers, int64_t count) {
  uint32_t odd = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, numbers + i, sizeof bits);
    // The largest exponent carries into the highest bit.
    odd |= (bits & 0x7F800000u) + 0x00800000u;
  }
  return odd >> 31 == 0;
}

inline bool all_finite(const double* numbers, int64_t count) {
  uint64_t odd = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits;
    std::memcpy(&bits, numbers + i, sizeof bits);
    odd |= (bits & 0x7FF0000000000000u) + 0x0010000000000000u;
  }
  return odd >> 63 == 0;
}

// to[i] = from[i] + addend, which may be in place; whether all of them are finite.
inline bool add_to_all(const float* from, float addend, int64_t count, float* to) {
  uint32_t odd = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float sum = from[i] + addend;
    uint32_t bits;
    std::memcpy(&bits, &sum, sizeof bits);
    to[i] = sum;
    odd |= (bits & 0x7F800000u) + 0x00800000u;
  }
  return odd >> 31 == 0;
}

}  // namespace bittrue

// Numbers of two vectors of 16 bytes taken in turn: a0 b0 a1 b1 ..., of their lower halves or of their higher ones.
#pragma once

#include <cstdint>

namespace bittrue {

#if defined(__clang__)
#define BITTRUE_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define BITTRUE_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, decltype(a){__VA_ARGS__})
#endif

using Vector8 = uint8_t __attribute__((vector_size(16)));
using Vector16 = uint16_t __attribute__((vector_size(16)));
using Vector32 = uint32_t __attribute__((vector_size(16)));
using Vector64 = uint64_t __attribute__((vector_size(16)));

inline Vector8 interleave_low(Vector8 a, Vector8 b) {
  return BITTRUE_SHUFFLE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
inline Vector8 interleave_high(Vector8 a, Vector8 b) {
  return BITTRUE_SHUFFLE(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
inline Vector16 interleave_low(Vector16 a, Vector16 b) { return BITTRUE_SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
inline Vector16 interleave_high(Vector16 a, Vector16 b) { return BITTRUE_SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
inline Vector32 interleave_low(Vector32 a, Vector32 b) { return BITTRUE_SHUFFLE(a, b, 0, 4, 1, 5); }
inline Vector32 interleave_high(Vector32 a, Vector32 b) { return BITTRUE_SHUFFLE(a, b, 2, 6, 3, 7); }
inline Vector64 interleave_low(Vector64 a, Vector64 b) { return BITTRUE_SHUFFLE(a, b, 0, 2); }
inline Vector64 interleave_high(Vector64 a, Vector64 b) { return BITTRUE_SHUFFLE(a, b, 1, 3); }

// Every second number, of both.
inline Vector32 even_lanes(Vector32 a, Vector32 b) { return BITTRUE_SHUFFLE(a, b, 0, 2, 4, 6); }
inline Vector16 even_lanes(Vector16 a, Vector16 b) { return BITTRUE_SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14); }

#undef BITTRUE_SHUFFLE

}  // namespace bittrue

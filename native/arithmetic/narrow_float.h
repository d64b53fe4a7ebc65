// binary16 numbers as the 16 bits that hold them. Inlined always, as instruction sets compile them with flags of their own.
#pragma once

#include <cstdint>
#include <cstring>

namespace bittrue::arithmetic {

__attribute__((always_inline)) inline uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

__attribute__((always_inline)) inline float float_of_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Both without branches, so that loops become vectors. A NaN keeps its payload.
__attribute__((always_inline)) inline float half_to_float(uint16_t x) {
  const uint32_t sign = (x & 0x8000u) << 16, moved = (x & 0x7fffu) << 13;
  const uint32_t whole = moved + ((moved >= 31u << 23 ? 224u : 112u) << 23);
  const uint32_t small = bits_of(static_cast<float>(x & 0x3ff) * 0x1p-24f);
  return float_of_bits((moved < 1u << 23 ? small : whole) | sign);
}

// The nearest one, ties to even, infinity beyond the largest; a NaN becomes the quiet one of its sign.
__attribute__((always_inline)) inline uint16_t float_to_half(float x) {
  const uint32_t bits = bits_of(x), size = bits & 0x7fffffffu;
  const uint32_t whole = (size + 0xfffu + ((size >> 13) & 1) - (112u << 23)) >> 13;
  // One half has the smallest number of 16 bits as its unit.
  const uint32_t small = bits_of(float_of_bits(size) + 0.5f) - bits_of(0.5f);
  const uint32_t finite = size < 113u << 23 ? small : whole;
  const uint32_t beyond = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return static_cast<uint16_t>((size >= 0x477ff000u ? beyond : finite) | ((bits >> 16) & 0x8000u));
}

}  // namespace bittrue::arithmetic

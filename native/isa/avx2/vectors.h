// Loads and stores of AVX2 vectors.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "isa/tools.h"

namespace bittrue::BITTRUE_ISA {

static inline __m128i load16(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
static inline __m128i load8(const void* p) { return _mm_loadl_epi64(static_cast<const __m128i*>(p)); }
static inline __m256i load32(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
static inline void store16(void* p, __m128i v) { _mm_storeu_si128(static_cast<__m128i*>(p), v); }
static inline void store8(void* p, __m128i v) { _mm_storel_epi64(static_cast<__m128i*>(p), v); }
static inline void store32(void* p, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }

// 4 bytes in every 32-bit lane.
static inline __m256i broadcast4(const void* p) {
  int32_t value;
  std::memcpy(&value, p, sizeof value);
  return _mm256_set1_epi32(value);
}

// The first `count` (at most 16) bytes of v.
static inline void store_part(uint8_t* p, __m128i v, int64_t count) {
  if (count >= 16) {
    store16(p, v);
    return;
  }
  alignas(16) uint8_t bytes[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(bytes), v);
  std::memcpy(p, bytes, static_cast<size_t>(count));
}

}  // namespace bittrue::BITTRUE_ISA

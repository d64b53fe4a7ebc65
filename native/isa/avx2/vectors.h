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

// Sums of two neighbouring products of unsigned bytes and signed ones, clamped to 16 bits, two of them added to every sum.
static inline __m256i add_pairs(__m256i sum, __m256i x, __m256i w) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(x, w), _mm256_set1_epi16(1)));
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

// A register of bytes, words or binary32 numbers, for sources that sets share.
struct Wide {
  using Integers = __m256i;
  using Reals = __m256;
  static constexpr int64_t kBytes = 32;

  // Whole ones, or `count` elements from the first on.
  static Integers load(const uint8_t* p) { return load32(p); }
  static Integers load(const uint8_t* p, int64_t count) {
    alignas(32) uint8_t bytes[32] = {};
    std::memcpy(bytes, p, static_cast<size_t>(count));
    return load32(bytes);
  }
  static void store(uint8_t* p, Integers v) { store32(p, v); }
  static void store(uint8_t* p, Integers v, int64_t count) {
    alignas(32) uint8_t bytes[32];
    store32(bytes, v);
    std::memcpy(p, bytes, static_cast<size_t>(count));
  }
  static Reals load_reals(const float* p) { return _mm256_loadu_ps(p); }
  static Reals load_reals(const float* p, int64_t count) {
    const __m256i used = words(static_cast<int32_t>(count < 0 ? 0 : count > 8 ? 8 : count));
    return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(used, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
  }

  static Integers bytes(int x) { return _mm256_set1_epi8(static_cast<char>(x)); }
  static Integers words(int32_t x) { return _mm256_set1_epi32(x); }
  static Reals reals(float x) { return _mm256_set1_ps(x); }
  static Integers add_words(Integers a, Integers b) { return _mm256_add_epi32(a, b); }
  static Integers highest_byte(Integers v) { return _mm256_srai_epi32(v, 24); }
  static Reals to_reals(Integers v) { return _mm256_cvtepi32_ps(v); }
  static Integers round(Reals v) { return _mm256_cvtps_epi32(v); }
  static Reals multiply_add(Reals a, Reals b, Reals c) { return _mm256_fmadd_ps(a, b, c); }
  // NaN becomes `low`.
  static Reals limited(Reals v, Reals low, Reals high) { return _mm256_min_ps(_mm256_max_ps(v, low), high); }
  // The words a to d say which bytes make up every lane of 16 bytes.
  static Integers shuffle(Integers v, int a, int b, int c, int d) {
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(_mm_setr_epi32(a, b, c, d)));
  }
  static Integers pack(Integers a, Integers b) { return _mm256_packs_epi32(a, b); }
  static Integers pack_signed(Integers a, Integers b) { return _mm256_packs_epi16(a, b); }
  static Integers pack_unsigned(Integers a, Integers b) { return _mm256_packus_epi16(a, b); }
  // What packing twice made of four vectors, in their order.
  static Integers in_order(Integers v) {
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }
};

}  // namespace bittrue::BITTRUE_ISA

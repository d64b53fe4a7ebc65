// A register of bytes, words or binary32 numbers, for sources that sets share.
#pragma once

#include <cstdint>

#include "isa/avx512vnni/intrinsics.h"

namespace bittrue::avx512vnni {

struct Wide {
  using Integers = __m512i;
  using Reals = __m512;
  static constexpr int64_t kBytes = 64;

  // Whole ones, or `count` elements from the first on.
  static Integers load(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static Integers load(const uint8_t* p, int64_t count) {
    return _mm512_maskz_loadu_epi8((__mmask64{1} << count) - 1, p);
  }
  static void store(uint8_t* p, Integers v) { _mm512_storeu_si512(p, v); }
  static void store(uint8_t* p, Integers v, int64_t count) {
    _mm512_mask_storeu_epi8(p, (__mmask64{1} << count) - 1, v);
  }
  static Reals load_reals(const float* p) { return _mm512_loadu_ps(p); }
  static Reals load_reals(const float* p, int64_t count) {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1 << count) - 1), p);
  }

  static Integers bytes(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  static Integers words(int32_t x) { return _mm512_set1_epi32(x); }
  static Reals reals(float x) { return _mm512_set1_ps(x); }
  static Integers add_words(Integers a, Integers b) { return _mm512_add_epi32(a, b); }
  static Integers highest_byte(Integers v) { return _mm512_srai_epi32(v, 24); }
  static Reals to_reals(Integers v) { return _mm512_cvtepi32_ps(v); }
  static Integers round(Reals v) { return _mm512_cvtps_epi32(v); }
  static Reals multiply_add(Reals a, Reals b, Reals c) { return _mm512_fmadd_ps(a, b, c); }
  // NaN becomes `low`.
  static Reals limited(Reals v, Reals low, Reals high) { return _mm512_min_ps(_mm512_max_ps(v, low), high); }
  // The words a to d say which bytes make up every lane of 16 bytes.
  static Integers shuffle(Integers v, int a, int b, int c, int d) {
    return _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(_mm_setr_epi32(a, b, c, d)));
  }
  static Integers pack(Integers a, Integers b) { return _mm512_packs_epi32(a, b); }
  static Integers pack_signed(Integers a, Integers b) { return _mm512_packs_epi16(a, b); }
  static Integers pack_unsigned(Integers a, Integers b) { return _mm512_packus_epi16(a, b); }
  // What packing twice made of four vectors, in their order.
  static Integers in_order(Integers v) {
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), v);
  }
};

}  // namespace bittrue::avx512vnni

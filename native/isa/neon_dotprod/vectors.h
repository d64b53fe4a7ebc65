// A register of bytes, words or binary32 numbers, for pairs_of_bytes.h and quantize_reals.h.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

namespace bittrue::neon_dotprod {

// The first `count` (at most 16) bytes.
static inline void store_part(uint8_t* p, uint8x16_t bytes, int64_t count) {
  if (count >= 16) {
    vst1q_u8(p, bytes);
    return;
  }
  uint8_t all[16];
  vst1q_u8(all, bytes);
  std::memcpy(p, all, static_cast<size_t>(count));
}

// The first `count` (at most 16) bytes, then zeros.
static inline uint8x16_t load_part(const uint8_t* p, int64_t count) {
  if (count >= 16) return vld1q_u8(p);
  uint8_t all[16] = {};
  std::memcpy(all, p, static_cast<size_t>(count));
  return vld1q_u8(all);
}

struct Wide {
  using Integers = int32x4_t;
  using Reals = float32x4_t;
  static constexpr int64_t kBytes = 16;

  // Whole ones, or `count` elements from the first on.
  static Integers load(const uint8_t* p) { return vreinterpretq_s32_u8(vld1q_u8(p)); }
  static Integers load(const uint8_t* p, int64_t count) { return vreinterpretq_s32_u8(load_part(p, count)); }
  static void store(uint8_t* p, Integers v) { vst1q_u8(p, vreinterpretq_u8_s32(v)); }
  static void store(uint8_t* p, Integers v, int64_t count) { store_part(p, vreinterpretq_u8_s32(v), count); }

  static Reals load_reals(const float* p) { return vld1q_f32(p); }
  static Reals load_reals(const float* p, int64_t count) {
    if (count >= 4) return vld1q_f32(p);
    float all[4] = {};
    if (count > 0) std::memcpy(all, p, static_cast<size_t>(count) * sizeof(float));
    return vld1q_f32(all);
  }

  static Integers bytes(int x) { return vreinterpretq_s32_u8(vdupq_n_u8(static_cast<uint8_t>(x))); }
  static Integers words(int32_t x) { return vdupq_n_s32(x); }
  static Reals reals(float x) { return vdupq_n_f32(x); }
  static Integers add_words(Integers a, Integers b) { return vaddq_s32(a, b); }
  static Integers highest_byte(Integers v) { return vshrq_n_s32(v, 24); }
  static Reals to_reals(Integers v) { return vcvtq_f32_s32(v); }
  // What does not fit 32 bits, or is NaN, becomes -2^31, as x86 converts it.
  static Integers round(Reals v) {
    return vbslq_s32(vcltq_f32(v, vdupq_n_f32(0x1p31f)), vcvtnq_s32_f32(v), vdupq_n_s32(INT32_MIN));
  }
  // NaN becomes `low`.
  static Reals limited(Reals v, Reals low, Reals high) { return vminq_f32(vbslq_f32(vcgtq_f32(v, low), v, low), high); }
  static Integers in_order(Integers v) { return v; }
  static Reals multiply_add(Reals a, Reals b, Reals c) { return vfmaq_f32(c, a, b); }
  // The words a to d say which bytes make up the vector; the upper bit of one makes it 0.
  static Integers shuffle(Integers v, int a, int b, int c, int d) {
    const Integers places = {a, b, c, d};
    return vreinterpretq_s32_u8(vqtbl1q_u8(vreinterpretq_u8_s32(v), vreinterpretq_u8_s32(places)));
  }
  static Integers pack(Integers a, Integers b) { return vreinterpretq_s32_s16(vqmovn_high_s32(vqmovn_s32(a), b)); }
  static Integers pack_signed(Integers a, Integers b) {
    return vreinterpretq_s32_s8(vqmovn_high_s16(vqmovn_s16(vreinterpretq_s16_s32(a)), vreinterpretq_s16_s32(b)));
  }
  static Integers pack_unsigned(Integers a, Integers b) {
    return vreinterpretq_s32_u8(vqmovun_high_s16(vqmovun_s16(vreinterpretq_s16_s32(a)), vreinterpretq_s16_s32(b)));
  }
};

}  // namespace bittrue::neon_dotprod

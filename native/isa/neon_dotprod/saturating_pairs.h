// Products of unsigned and signed bytes of which two neighbours are added up in 16 bits that saturate.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

namespace bittrue::neon_dotprod {

struct Pairs {
  using Vector = int32x4_t;
  // Bytes 0 and 2, and 1 and 3, of every four.
  struct Halves {
    int16x8_t even, odd;
  };
  using Row = Halves;
  using Columns = Halves;
  static constexpr int64_t kLanes = 4;
  static constexpr int kTileRows[] = {8, 4, 4, 2};

  static Row row(const uint8_t* from) {
    uint32_t four;
    std::memcpy(&four, from, 4);
    const uint16x8_t bytes = vreinterpretq_u16_u32(vdupq_n_u32(four));
    return {vreinterpretq_s16_u16(vandq_u16(bytes, vdupq_n_u16(255))), vreinterpretq_s16_u16(vshrq_n_u16(bytes, 8))};
  }
  static Columns columns(const int8_t* from) {
    const int16x8_t bytes = vreinterpretq_s16_s8(vld1q_s8(from));
    return {vshrq_n_s16(vshlq_n_s16(bytes, 8), 8), vshrq_n_s16(bytes, 8)};
  }
  // No product leaves 16 bits; sums are modulo 2^32.
  static Vector add(Vector sum, Row row, Columns columns) {
    return vpadalq_s16(sum, vqaddq_s16(vmulq_s16(row.even, columns.even), vmulq_s16(row.odd, columns.odd)));
  }
};

}  // namespace bittrue::neon_dotprod

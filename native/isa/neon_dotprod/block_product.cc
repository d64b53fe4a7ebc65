// Products with weights in blocks by sdot. Numbers of 8 bits become signed as n - 128, so 128 times the sum of the row's
// bytes is added.
#include <arm_neon.h>

#include "isa/block_tiles.h"

#include "isa/neon_dotprod/cores.h"

namespace bittrue::neon_dotprod {
namespace {

struct Set {
  using Reals = float32x4_t;
  static constexpr int64_t kLanes = 4;
  static constexpr int kTileRows = 4, kTileRowsOfBytes = 4, kHeld = 8;
  struct Numbers {
    int8x16_t first, second;
  };

  static Numbers numbers_4(const uint8_t* from) {
    const uint8x16_t bytes = vld1q_u8(from);
    return {vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(15))), vreinterpretq_s8_u8(vshrq_n_u8(bytes, 4))};
  }
  static Numbers numbers_8(const uint8_t* first, const uint8_t* second) {
    const uint8x16_t sign = vdupq_n_u8(0x80);
    return {vreinterpretq_s8_u8(veorq_u8(vld1q_u8(first), sign)),
            vreinterpretq_s8_u8(veorq_u8(vld1q_u8(second), sign))};
  }
  template <bool kBytes>
  static Reals dot(Numbers numbers, const int8_t* row) {
    const int8x8_t eight = vld1_s8(row);
    int32x4_t sum = vdupq_n_s32(0);
    if constexpr (kBytes) {
      const int8x16_t half = vdupq_n_s8(64);
      for (int twice = 0; twice < 2; ++twice) sum = vdotq_lane_s32(vdotq_lane_s32(sum, half, eight, 0), half, eight, 1);
    }
    sum = vdotq_lane_s32(sum, numbers.first, eight, 0);
    return vcvtq_f32_s32(vdotq_lane_s32(sum, numbers.second, eight, 1));
  }
  static Reals broadcast(float x) { return vdupq_n_f32(x); }
  static Reals multiply_add(Reals a, Reals b, Reals c) { return vfmaq_f32(c, a, b); }
  static Reals half_bytes(const uint8_t* from, bool high) {
    uint32_t four;
    std::memcpy(&four, from, 4);
    four = (high ? four >> 4 : four) & 0x0F0F0F0F;
    const uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(words)));
  }
};

}  // namespace

const BlockProduct kBlockProduct = BlockTiles<Set>::product();

}  // namespace bittrue::neon_dotprod

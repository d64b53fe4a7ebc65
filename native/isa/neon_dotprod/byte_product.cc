// Products of bytes with sdot: rows become signed as x - 128, so 128 times the sum of four weights is added.
#include <arm_neon.h>

#include "isa/byte_tiles.h"

#include "isa/neon_dotprod/cores.h"
#include "isa/neon_dotprod/saturating_pairs.h"

namespace bittrue::neon_dotprod {
namespace {

struct Bytes {
  using Vector = int32x4_t;
  using Row = int8x16_t;
  struct Columns {
    int8x16_t bytes;
    int32x4_t moved;
  };
  static constexpr int64_t kLanes = 4;
  static constexpr int kTileRows[] = {8, 6, 4, 4};

  static Row row(const uint8_t* from) {
    uint32_t four;
    std::memcpy(&four, from, 4);
    return vreinterpretq_s8_u32(vdupq_n_u32(four ^ 0x80808080u));
  }
  static Columns columns(const int8_t* from) {
    const int8x16_t bytes = vld1q_s8(from), half = vdupq_n_s8(64);
    return {bytes, vdotq_s32(vdotq_s32(vdupq_n_s32(0), bytes, half), bytes, half)};
  }
  static Vector add(Vector sum, Row row, Columns columns) {
    const uint32x4_t moved = vaddq_u32(vreinterpretq_u32_s32(sum), vreinterpretq_u32_s32(columns.moved));
    return vdotq_s32(vreinterpretq_s32_u32(moved), columns.bytes, row);
  }
};

}  // namespace

const ByteProduct kByteProduct = ByteTiles<Bytes>::product();
const PairProduct kPairProduct = ByteTiles<Pairs>::pair_product();

}  // namespace bittrue::neon_dotprod

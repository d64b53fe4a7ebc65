#include "isa/peak.h"

#include <arm_neon.h>

#include "isa/neon_dotprod/cores.h"

namespace bittrue::neon_dotprod {
namespace {

struct Chain {
  using Vector = int32x4_t;
  static Vector filled(int byte) { return vreinterpretq_s32_u8(vdupq_n_u8(static_cast<uint8_t>(byte))); }
  static constexpr int kChains = 16, kProducts = 16;
  static Vector add(Vector sum, Vector bytes) {
    return vdotq_s32(sum, vreinterpretq_s8_s32(bytes), vreinterpretq_s8_s32(bytes));
  }
};

}  // namespace

int64_t peak_multiply_adds(int64_t rounds) { return run_chains<Chain>(rounds); }

}  // namespace bittrue::neon_dotprod

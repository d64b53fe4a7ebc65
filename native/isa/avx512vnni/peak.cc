#include "isa/peak.h"

#include "isa/avx512vnni/cores.h"
#include "isa/avx512vnni/intrinsics.h"

namespace bittrue::avx512vnni {
namespace {

struct Chain {
  using Vector = __m512i;
  static Vector filled(int byte) { return _mm512_set1_epi8(static_cast<char>(byte)); }
  static constexpr int kChains = 16, kProducts = 64;
  static Vector add(Vector sum, Vector bytes) { return _mm512_dpbusd_epi32(sum, bytes, bytes); }
};

}  // namespace

int64_t peak_multiply_adds(int64_t rounds) { return run_chains<Chain>(rounds); }

}  // namespace bittrue::avx512vnni

#include "isa/peak.h"

#include <immintrin.h>

#include "isa/avx2/cores.h"

namespace bittrue::BITTRUE_ISA {
namespace {

struct Chain {
  using Vector = __m256i;
  static Vector filled(int byte) { return _mm256_set1_epi8(static_cast<char>(byte)); }
  static constexpr int kChains = 12;
#if defined(__AVXVNNI__)
  static constexpr int kProducts = 32;
  static Vector add(Vector sum, Vector bytes) { return _mm256_dpbusd_avx_epi32(sum, bytes, bytes); }
#else
  static constexpr int kProducts = 16;
  static Vector add(Vector sum, Vector bytes) { return _mm256_add_epi32(sum, _mm256_madd_epi16(sum, bytes)); }
#endif
};

}  // namespace

int64_t peak_multiply_adds(int64_t rounds) { return run_chains<Chain>(rounds); }

}  // namespace bittrue::BITTRUE_ISA

// The rate of the multiply-add instruction on registers: the ceiling of every kernel of this folder.
#include <immintrin.h>

#include "isa/cores.h"

namespace bittrue::BITTRUE_ISA {

int64_t peak_multiply_adds(int64_t rounds) {
  // More chains than latency times throughput.
  constexpr int kChains = 8;
  __m256i acc[kChains];
  const __m256i b = _mm256_set1_epi8(5);
  for (auto& chain : acc) chain = _mm256_set1_epi8(3);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < kChains; ++i) {
#if defined(__AVXVNNI__)
      acc[i] = _mm256_dpbusd_avx_epi32(acc[i], b, b);
#else
      acc[i] = _mm256_madd_epi16(acc[i], b);
#endif
    }
  }
  int32_t lanes[8];
  __m256i sum = acc[0];
  for (int i = 1; i < kChains; ++i) sum = _mm256_add_epi32(sum, acc[i]);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), sum);
  volatile int32_t sink = lanes[0];
  (void)sink;
#if defined(__AVXVNNI__)
  return rounds * kChains * 32;
#else
  return rounds * kChains * 16;
#endif
}

}  // namespace bittrue::BITTRUE_ISA

// The rate of VPDPBUSD on registers: the ceiling of every kernel of this folder.
#include "isa/avx512vnni/intrinsics.h"

#include "isa/cores.h"

namespace bittrue::avx512vnni {

int64_t peak_multiply_adds(int64_t rounds) {
  // More chains than latency times throughput (4 or 5 cycles, at most 2 a cycle).
  constexpr int kChains = 16;
  __m512i acc[kChains];
  const __m512i b = _mm512_set1_epi8(5);
  for (auto& chain : acc) chain = _mm512_set1_epi8(3);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) acc[i] = _mm512_dpbusd_epi32(acc[i], b, b);
  }
  __m512i sum = acc[0];
  for (int i = 1; i < kChains; ++i) sum = _mm512_add_epi32(sum, acc[i]);
  volatile int32_t sink = _mm_cvtsi128_si32(_mm512_castsi512_si128(sum));
  (void)sink;
  return rounds * kChains * 64;
}

}  // namespace bittrue::avx512vnni

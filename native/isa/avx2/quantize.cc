// Real numbers to bytes by a true division.
#if !defined(__AVXVNNI__)

#include "isa/avx2/cores.h"
#include "isa/avx2/vectors.h"

namespace bittrue::BITTRUE_ISA {

void quantize_reals(const QuantizeSpec& spec, const float* in, uint8_t* out, int64_t count) {
  const __m256 scale = _mm256_set1_ps(spec.scale), low = _mm256_set1_ps(spec.low), high = _mm256_set1_ps(spec.high);
  const __m256i zero_point = _mm256_set1_epi32(spec.zero_point);
  // The second operand of a maximum is what NaN becomes.
  const auto stored = [&](const float* from) {
    const __m256 quotient = _mm256_div_ps(_mm256_loadu_ps(from), scale);
    return _mm256_add_epi32(_mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(quotient, low), high)), zero_point);
  };
  const auto bytes = [&](const float* from) {
    const __m256i first = _mm256_packs_epi32(stored(from), stored(from + 8));
    const __m256i second = _mm256_packs_epi32(stored(from + 16), stored(from + 24));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(first, second), order);
  };
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) store32(out + i, bytes(in + i));
  if (i == count) return;
  const auto rest = static_cast<size_t>(count - i);
  alignas(32) float last[32] = {};
  alignas(32) uint8_t results[32];
  std::memcpy(last, in + i, rest * sizeof(float));
  store32(results, bytes(last));
  std::memcpy(out + i, results, rest);
}

}  // namespace bittrue::BITTRUE_ISA

#endif

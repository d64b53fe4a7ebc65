// Real numbers to bytes by a true division.
#include "isa/avx512vnni/cores.h"
#include "isa/avx512vnni/intrinsics.h"

namespace bittrue::avx512vnni {

void quantize_reals(const QuantizeSpec& spec, const float* in, uint8_t* out, int64_t count) {
  const __m512 scale = _mm512_set1_ps(spec.scale), low = _mm512_set1_ps(spec.low), high = _mm512_set1_ps(spec.high);
  const __m512i zero_point = _mm512_set1_epi32(spec.zero_point);
  // The second operand of a maximum is what NaN becomes.
  const auto stored = [&](__m512 x) {
    const __m512 limited = _mm512_min_ps(_mm512_max_ps(_mm512_div_ps(x, scale), low), high);
    return _mm512_add_epi32(_mm512_cvtps_epi32(limited), zero_point);
  };
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    const __m512i first = _mm512_packs_epi32(stored(_mm512_loadu_ps(in + i)), stored(_mm512_loadu_ps(in + i + 16)));
    const __m512i second =
        _mm512_packs_epi32(stored(_mm512_loadu_ps(in + i + 32)), stored(_mm512_loadu_ps(in + i + 48)));
    _mm512_storeu_si512(out + i, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(first, second)));
  }
  for (; i < count; i += 16) {
    const int64_t rest = count - i;
    const __mmask16 mask = rest >= 16 ? 0xffff : static_cast<__mmask16>((1u << rest) - 1);
    _mm512_mask_cvtepi32_storeu_epi8(out + i, mask, stored(_mm512_maskz_loadu_ps(mask, in + i)));
  }
}

}  // namespace bittrue::avx512vnni

// Sums of two scaled operands by two multiply-adds in binary32.
#include "isa/avx512vnni/cores.h"
#include "isa/avx512vnni/intrinsics.h"

namespace bittrue::avx512vnni {
namespace {

// Byte 4 * k + j of every 128-bit lane as the 32-bit word j of that lane: what packing twice puts back in order. Signed
// bytes come into the highest byte of their word first.
template <int k, bool is_signed>
inline __m512 words(__m512i bytes) {
  const auto place = [](unsigned j) {
    return static_cast<int>(is_signed ? 0x00808080u | (4u * k + j) << 24 : 0x80808000u | (4u * k + j));
  };
  const __m512i order = _mm512_broadcast_i32x4(_mm_setr_epi32(place(0), place(1), place(2), place(3)));
  const __m512i spread = _mm512_shuffle_epi8(bytes, order);
  return _mm512_cvtepi32_ps(is_signed ? _mm512_srai_epi32(spread, 24) : spread);
}

template <bool is_signed>
class FusedSum final : public Elementwise {
 public:
  explicit FusedSum(const FusedSumSpec& spec)
      : first_scale_(spec.first_scale), second_scale_(spec.second_scale), addend_(spec.addend) {}

  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    for (int64_t i = 0; i < count; i += 64) {
      const int64_t rest = count - i;
      const __mmask64 mask = rest >= 64 ? ~__mmask64{0} : (__mmask64{1} << rest) - 1;
      const __m512i sums = sum(_mm512_maskz_loadu_epi8(mask, first + i), _mm512_maskz_loadu_epi8(mask, second + i));
      _mm512_mask_storeu_epi8(out + i, mask, sums);
    }
  }

 private:
  template <int k>
  __m512i quarter(__m512i a, __m512i b) const {
    const __m512 inner =
        _mm512_fmadd_ps(words<k, is_signed>(b), _mm512_set1_ps(second_scale_), _mm512_set1_ps(addend_));
    return _mm512_cvtps_epi32(_mm512_fmadd_ps(words<k, is_signed>(a), _mm512_set1_ps(first_scale_), inner));
  }

  __m512i sum(__m512i a, __m512i b) const {
    const __m512i flip = _mm512_set1_epi8(-128);
    if (is_signed) {
      a = _mm512_xor_si512(a, flip);
      b = _mm512_xor_si512(b, flip);
    }
    const __m512i low = _mm512_packs_epi32(quarter<0>(a, b), quarter<1>(a, b));
    const __m512i high = _mm512_packs_epi32(quarter<2>(a, b), quarter<3>(a, b));
    return is_signed ? _mm512_xor_si512(_mm512_packs_epi16(low, high), flip) : _mm512_packus_epi16(low, high);
  }

  float first_scale_, second_scale_, addend_;
};

}  // namespace

std::unique_ptr<Elementwise> make_fused_sum(const FusedSumSpec& spec) {
  if (spec.is_signed) return std::make_unique<FusedSum<true>>(spec);
  return std::make_unique<FusedSum<false>>(spec);
}

}  // namespace bittrue::avx512vnni

// Sums of two scaled operands by two multiply-adds in binary32.
#if !defined(__AVXVNNI__)

#include "isa/avx2/cores.h"
#include "isa/avx2/vectors.h"

namespace bittrue::BITTRUE_ISA {
namespace {

// Byte 4 * k + j of every 128-bit lane as the 32-bit word j of that lane: what packing twice puts back in order. Signed
// bytes come into the highest byte of their word first.
template <int k, bool is_signed>
inline __m256 words(__m256i bytes) {
  const auto place = [](unsigned j) {
    return static_cast<int>(is_signed ? 0x00808080u | (4u * k + j) << 24 : 0x80808000u | (4u * k + j));
  };
  const __m256i order = _mm256_broadcastsi128_si256(_mm_setr_epi32(place(0), place(1), place(2), place(3)));
  const __m256i spread = _mm256_shuffle_epi8(bytes, order);
  return _mm256_cvtepi32_ps(is_signed ? _mm256_srai_epi32(spread, 24) : spread);
}

template <bool is_signed>
class FusedSum final : public Elementwise {
 public:
  explicit FusedSum(const FusedSumSpec& spec)
      : first_scale_(spec.first_scale), second_scale_(spec.second_scale), addend_(spec.addend) {}

  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) store32(out + i, sum(load32(first + i), load32(second + i)));
    if (i == count) return;
    const auto rest = static_cast<size_t>(count - i);
    alignas(32) uint8_t a[32] = {}, b[32] = {};
    std::memcpy(a, first + i, rest);
    std::memcpy(b, second + i, rest);
    store32(a, sum(load32(a), load32(b)));
    std::memcpy(out + i, a, rest);
  }

 private:
  template <int k>
  __m256i quarter(__m256i a, __m256i b) const {
    const __m256 inner =
        _mm256_fmadd_ps(words<k, is_signed>(b), _mm256_set1_ps(second_scale_), _mm256_set1_ps(addend_));
    return _mm256_cvtps_epi32(_mm256_fmadd_ps(words<k, is_signed>(a), _mm256_set1_ps(first_scale_), inner));
  }

  __m256i sum(__m256i a, __m256i b) const {
    const __m256i flip = _mm256_set1_epi8(-128);
    if (is_signed) {
      a = _mm256_xor_si256(a, flip);
      b = _mm256_xor_si256(b, flip);
    }
    const __m256i low = _mm256_packs_epi32(quarter<0>(a, b), quarter<1>(a, b));
    const __m256i high = _mm256_packs_epi32(quarter<2>(a, b), quarter<3>(a, b));
    return is_signed ? _mm256_xor_si256(_mm256_packs_epi16(low, high), flip) : _mm256_packus_epi16(low, high);
  }

  float first_scale_, second_scale_, addend_;
};

}  // namespace

std::unique_ptr<Elementwise> make_fused_sum(const FusedSumSpec& spec) {
  if (spec.is_signed) return std::make_unique<FusedSum<true>>(spec);
  return std::make_unique<FusedSum<false>>(spec);
}

}  // namespace bittrue::BITTRUE_ISA

#endif

// Products with weights in blocks: by VPDPBUSD where it is there, else by half-bytes, whose pairs fit 16 bits.
#include "isa/avx2/cores.h"
#include "isa/avx2/vectors.h"

#include "isa/block_tiles.h"

namespace bittrue::BITTRUE_ISA {
namespace {

struct Set {
  using Reals = __m256;
  static constexpr int64_t kLanes = 8;
#if defined(__AVXVNNI__)
  static constexpr int kTileRows = 2, kTileRowsOfBytes = 2, kHeld = 8;
#else
  static constexpr int kTileRows = 2, kTileRowsOfBytes = 1, kHeld = 8;
#endif
  struct Numbers {
    __m256i first, second;
  };

  static __m256i low(__m256i bytes) { return _mm256_and_si256(bytes, _mm256_set1_epi8(15)); }
  static __m256i high(__m256i bytes) { return low(_mm256_srli_epi16(bytes, 4)); }
  static Numbers numbers_4(const uint8_t* from) {
    const __m256i bytes = load32(from);
    return {low(bytes), high(bytes)};
  }
  static Numbers numbers_8(const uint8_t* first, const uint8_t* second) { return {load32(first), load32(second)}; }
  template <bool kBytes>
  static Reals dot(Numbers numbers, const int8_t* row) {
    const __m256i one = broadcast4(row), two = broadcast4(row + 4);
#if defined(__AVXVNNI__)
    const __m256i first = _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), numbers.first, one);
    return _mm256_cvtepi32_ps(_mm256_dpbusd_avx_epi32(first, numbers.second, two));
#else
    // Four products of at most 15 * 128 each.
    const auto pairs = [&](__m256i first, __m256i second) {
      return _mm256_add_epi16(_mm256_maddubs_epi16(first, one), _mm256_maddubs_epi16(second, two));
    };
    if constexpr (!kBytes) {
      return _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs(numbers.first, numbers.second), _mm256_set1_epi16(1)));
    } else {
      const __m256i lows = pairs(low(numbers.first), low(numbers.second));
      const __m256i highs = pairs(high(numbers.first), high(numbers.second));
      return _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_madd_epi16(lows, _mm256_set1_epi16(1)),
                                                 _mm256_madd_epi16(highs, _mm256_set1_epi16(16))));
    }
#endif
  }
  static Reals broadcast(float x) { return _mm256_set1_ps(x); }
  static Reals multiply_add(Reals a, Reals b, Reals c) { return _mm256_fmadd_ps(a, b, c); }
  static Reals half_bytes(const uint8_t* from, bool high) {
    const __m128i bytes = load8(from);
    const __m128i four = _mm_and_si128(high ? _mm_srli_epi16(bytes, 4) : bytes, _mm_set1_epi8(15));
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(four));
  }
};

}  // namespace

const BlockProduct kBlockProduct = BlockTiles<Set>::product();

}  // namespace bittrue::BITTRUE_ISA

// Products with weights in blocks, by VPDPBUSD.
#include "isa/avx512vnni/intrinsics.h"

#include "isa/block_tiles.h"

#include "isa/avx512vnni/cores.h"

namespace bittrue::avx512vnni {
namespace {

struct Set {
  using Reals = __m512;
  static constexpr int64_t kLanes = 16;
  static constexpr int kTileRows = 4, kTileRowsOfBytes = 4, kHeld = 16;
  struct Numbers {
    __m512i first, second;
  };

  static Numbers numbers_4(const uint8_t* from) {
    const __m512i bytes = _mm512_loadu_si512(from), low = _mm512_set1_epi8(15);
    return {_mm512_and_si512(bytes, low), _mm512_and_si512(_mm512_srli_epi16(bytes, 4), low)};
  }
  static Numbers numbers_8(const uint8_t* first, const uint8_t* second) {
    return {_mm512_loadu_si512(first), _mm512_loadu_si512(second)};
  }
  static __m512i broadcast_four(const int8_t* from) {
    int32_t four;
    std::memcpy(&four, from, 4);
    return _mm512_set1_epi32(four);
  }
  template <bool kBytes>
  static Reals dot(Numbers numbers, const int8_t* row) {
    const __m512i first = _mm512_dpbusd_epi32(_mm512_setzero_si512(), numbers.first, broadcast_four(row));
    return _mm512_cvtepi32_ps(_mm512_dpbusd_epi32(first, numbers.second, broadcast_four(row + 4)));
  }
  static Reals broadcast(float x) { return _mm512_set1_ps(x); }
  static Reals multiply_add(Reals a, Reals b, Reals c) { return _mm512_fmadd_ps(a, b, c); }
  static Reals half_bytes(const uint8_t* from, bool high) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    const __m128i four = _mm_and_si128(high ? _mm_srli_epi16(bytes, 4) : bytes, _mm_set1_epi8(15));
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(four));
  }
};

}  // namespace

const BlockProduct kBlockProduct = BlockTiles<Set>::product();

}  // namespace bittrue::avx512vnni

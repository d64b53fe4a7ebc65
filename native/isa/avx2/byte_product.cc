// Products of bytes: by VPDPBUSD where it is there, else the even and the odd bytes by 16-bit products.
#include "isa/avx2/cores.h"
#include "isa/avx2/vectors.h"

#include "isa/byte_tiles.h"

namespace bittrue::BITTRUE_ISA {
namespace {

struct Bytes {
  using Vector = __m256i;
  static constexpr int64_t kLanes = 8;

  static __m256i broadcast(const uint8_t* from) {
    int32_t four;
    std::memcpy(&four, from, 4);
    return _mm256_set1_epi32(four);
  }
#if defined(__AVXVNNI__)
  using Row = __m256i;
  using Columns = __m256i;
  static constexpr int kTileRows[] = {8, 4, 3, 2};

  static Row row(const uint8_t* from) { return broadcast(from); }
  static Columns columns(const int8_t* from) { return load32(from); }
  static Vector add(Vector sum, Row row, Columns columns) { return _mm256_dpbusd_avx_epi32(sum, row, columns); }
#else
  struct Pair {
    __m256i even, odd;
  };
  using Row = Pair;
  using Columns = Pair;
  static constexpr int kTileRows[] = {6, 3, 2, 1};

  static Row row(const uint8_t* from) {
    const __m256i bytes = broadcast(from);
    return {_mm256_and_si256(bytes, _mm256_set1_epi16(255)), _mm256_srli_epi16(bytes, 8)};
  }
  static Columns columns(const int8_t* from) {
    const __m256i bytes = load32(from);
    return {_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8), _mm256_srai_epi16(bytes, 8)};
  }
  // Two products of at most 255 * 128 each.
  static Vector add(Vector sum, Row row, Columns columns) {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(row.even, columns.even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(row.odd, columns.odd));
  }
#endif
};

#if !defined(__AVXVNNI__)
struct Pairs {
  using Vector = __m256i;
  using Row = __m256i;
  using Columns = __m256i;
  static constexpr int64_t kLanes = 8;
  static constexpr int kTileRows[] = {8, 4, 3, 2};

  static Row row(const uint8_t* from) { return Bytes::broadcast(from); }
  static Columns columns(const int8_t* from) { return load32(from); }
  static Vector add(Vector sum, Row row, Columns columns) { return add_pairs(sum, row, columns); }
};
#endif

}  // namespace

#if defined(__AVXVNNI__)
const ByteProduct kByteProduct = ByteTiles<Bytes>::product();
#else
// Columns are widened for every tile, which three rows share.
const ByteProduct kByteProduct = ByteTiles<Bytes>::product(2);
const PairProduct kPairProduct = ByteTiles<Pairs>::pair_product();
#endif

}  // namespace bittrue::BITTRUE_ISA

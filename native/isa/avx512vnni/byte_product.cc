// Products of bytes with VPDPBUSD: the second factor is computed at run time.
#include "isa/avx512vnni/intrinsics.h"

#include "isa/byte_tiles.h"

#include "isa/avx512vnni/cores.h"

namespace bittrue::avx512vnni {
namespace {

struct Bytes {
  using Vector = __m512i;
  using Row = __m512i;
  using Columns = __m512i;
  static constexpr int64_t kLanes = 16;
  static constexpr int kTileRows[] = {8, 8, 6, 6};

  static Row row(const uint8_t* from) {
    int32_t four;
    std::memcpy(&four, from, 4);
    return _mm512_set1_epi32(four);
  }
  static Columns columns(const int8_t* from) { return _mm512_loadu_si512(from); }
  static Vector add(Vector sum, Row row, Columns columns) { return _mm512_dpbusd_epi32(sum, row, columns); }
};

}  // namespace

const ByteProduct kByteProduct = ByteTiles<Bytes>::product();

}  // namespace bittrue::avx512vnni

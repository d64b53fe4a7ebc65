// Products of bytes in plain C++: products fit 16 bits, sums of two do not.
#include "isa/byte_tiles.h"

#include "isa/portable/cores.h"

namespace bittrue::portable {
namespace {

typedef int16_t Halves __attribute__((vector_size(16)));
typedef uint16_t Unsigned __attribute__((vector_size(16)));
typedef int32_t Sums __attribute__((vector_size(16)));
typedef uint32_t Words __attribute__((vector_size(16)));

struct Bytes {
  using Vector = Sums;
  struct Pair {
    Halves even, odd;
  };
  using Row = Pair;
  using Columns = Pair;
  static constexpr int64_t kLanes = 4;
  static constexpr int kTileRows[] = {4, 2, 1, 1};

  // Bytes 0 and 2, and 1 and 3 of four, in the order of memory or its reverse: both factors have the same.
  static Row row(const uint8_t* from) {
    uint32_t four;
    std::memcpy(&four, from, 4);
    const Unsigned bytes = reinterpret_cast<Unsigned>(Words{four, four, four, four});
    return {reinterpret_cast<Halves>(bytes & 255), reinterpret_cast<Halves>(bytes >> 8)};
  }
  static Columns columns(const int8_t* from) {
    Unsigned bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    return {reinterpret_cast<Halves>(bytes << 8) >> 8, reinterpret_cast<Halves>(bytes) >> 8};
  }
  static Vector add(Vector sum, Row row, Columns columns) {
    return add_pairs(add_pairs(sum, row.even * columns.even), row.odd * columns.odd);
  }
  // Modulo 2^32.
  static Vector add_pairs(Vector sum, Halves products) {
    const Words pairs = reinterpret_cast<Words>(products);
    const Words low = reinterpret_cast<Words>(reinterpret_cast<Sums>(pairs << 16) >> 16);
    const Words high = reinterpret_cast<Words>(reinterpret_cast<Sums>(pairs) >> 16);
    return reinterpret_cast<Sums>(reinterpret_cast<Words>(sum) + low + high);
  }
};

struct Pairs : Bytes {
  static Vector add(Vector sum, Row row, Columns columns) {
    const Words even = reinterpret_cast<Words>(row.even * columns.even);
    const Words odd = reinterpret_cast<Words>(row.odd * columns.odd);
    const Sums low = (reinterpret_cast<Sums>(even << 16) >> 16) + (reinterpret_cast<Sums>(odd << 16) >> 16);
    const Sums high = (reinterpret_cast<Sums>(even) >> 16) + (reinterpret_cast<Sums>(odd) >> 16);
    const Words both = reinterpret_cast<Words>(clamped(low)) + reinterpret_cast<Words>(clamped(high));
    return reinterpret_cast<Sums>(reinterpret_cast<Words>(sum) + both);
  }
  static Sums clamped(Sums pair) {
    constexpr int32_t kLow = -32768, kHigh = 32767;
    const Sums below = pair<kLow, above = pair> kHigh;
    return (pair & ~(below | above)) | (below & kLow) | (above & kHigh);
  }
};

}  // namespace

const ByteProduct kByteProduct = ByteTiles<Bytes>::product();
const PairProduct kPairProduct = ByteTiles<Pairs>::pair_product();

}  // namespace bittrue::portable

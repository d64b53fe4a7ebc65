// Products with weights in blocks in plain C++: products fit 16 bits.
#include "isa/block_tiles.h"

#include "isa/portable/cores.h"
#include "isa/portable/vectors.h"

namespace bittrue::portable {
namespace {

typedef int16_t Halves __attribute__((vector_size(16)));
typedef uint16_t Unsigned __attribute__((vector_size(16)));
typedef int32_t Sums __attribute__((vector_size(16)));
typedef uint32_t Words __attribute__((vector_size(16)));

struct Set {
  using Reals = Vector;
  static constexpr int64_t kLanes = 4;
  static constexpr int kTileRows = 2, kTileRowsOfBytes = 2, kHeld = 4;
  struct Numbers {
    Unsigned first, second;
  };

  static Unsigned load(const uint8_t* from) {
    Unsigned bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    return bytes;
  }
  static Numbers numbers_4(const uint8_t* from) {
    const Unsigned bytes = load(from);
    return {bytes & 0x0F0F, bytes >> 4 & 0x0F0F};
  }
  static Numbers numbers_8(const uint8_t* first, const uint8_t* second) { return {load(first), load(second)}; }
  // Bytes 0 and 2, and 1 and 3 of four, in the order of memory or its reverse: both factors have the same.
  static Sums four(Sums sum, Unsigned numbers, const int8_t* row) {
    uint32_t bytes;
    std::memcpy(&bytes, row, 4);
    const Unsigned both = reinterpret_cast<Unsigned>(Words{bytes, bytes, bytes, bytes});
    const Halves even = reinterpret_cast<Halves>(both << 8) >> 8, odd = reinterpret_cast<Halves>(both) >> 8;
    sum = add_pairs(sum, even * reinterpret_cast<Halves>(numbers & 255));
    return add_pairs(sum, odd * reinterpret_cast<Halves>(numbers >> 8));
  }
  static Sums add_pairs(Sums sum, Halves products) {
    const Words pairs = reinterpret_cast<Words>(products);
    return sum + (reinterpret_cast<Sums>(pairs << 16) >> 16) + (reinterpret_cast<Sums>(pairs) >> 16);
  }
  template <bool kBytes>
  static Reals dot(Numbers numbers, const int8_t* row) {
    const Sums sum = four(four(Sums{}, numbers.first, row), numbers.second, row + 4);
    return __builtin_convertvector(sum, Reals);
  }
  static Reals broadcast(float x) { return x - Reals{}; }
  static Reals multiply_add(Reals a, Reals b, Reals c) { return portable::multiply_add(a, b, c); }
  static Reals half_bytes(const uint8_t* from, bool high) {
    Reals numbers;
    for (int i = 0; i < 4; ++i) numbers[i] = static_cast<float>(high ? from[i] >> 4 : from[i] & 15);
    return numbers;
  }
};

}  // namespace

const BlockProduct kBlockProduct = BlockTiles<Set>::product();

}  // namespace bittrue::portable

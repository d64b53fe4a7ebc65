#include "isa/portable/turned_weights.h"

#include <algorithm>
#include <cstring>

namespace bittrue::portable {
namespace {

// Of eight lines of eight bytes, kStep lines and the same number of bytes change places.
template <int kStep>
[[gnu::always_inline]] inline void exchange(uint64_t* lines) {
  constexpr uint64_t kKept = kStep == 4 ? 0x00000000FFFFFFFF : kStep == 2 ? 0x0000FFFF0000FFFF : 0x00FF00FF00FF00FF;
  for (int k = 0; k < 4; ++k) {
    uint64_t &one = lines[k / kStep * 2 * kStep + k % kStep], &other = (&one)[kStep];
    const uint64_t moved = (one >> (8 * kStep) ^ other) & kKept;
    other ^= moved;
    one ^= moved << (8 * kStep);
  }
}

}  // namespace

// By tiles that are copied first: lines of large matrices meet in few sets of the cache.
[[gnu::hot]] void turn(const int8_t* from, int64_t rows, int64_t columns, int8_t* to) {
  // Lines longer than a tile: else the addresses of what is read and written would have the same low bits.
  constexpr int64_t kTile = 64, kBlock = 8, kLine = kTile + 8;
  alignas(64) int8_t tile[kTile][kLine] = {}, turned[kTile][kLine];
  for (int64_t top = 0; top < rows; top += kTile) {
    const int64_t height = std::min(kTile, rows - top);
    for (int64_t left = 0; left < columns; left += kTile) {
      const int64_t width = std::min(kTile, columns - left);
      for (int64_t r = 0; r < height; ++r) {
        std::memcpy(tile[r], from + (top + r) * columns + left, static_cast<size_t>(width));
      }
      for (int64_t c = 0; c < kTile; c += kBlock) {
        for (int64_t r = 0; r < kTile; r += kBlock) {
          uint64_t lines[kBlock];
          for (int64_t i = 0; i < kBlock; ++i) std::memcpy(&lines[i], &tile[r + i][c], kBlock);
          exchange<4>(lines), exchange<2>(lines), exchange<1>(lines);
          for (int64_t i = 0; i < kBlock; ++i) std::memcpy(&turned[c + i][r], &lines[i], kBlock);
        }
      }
      for (int64_t c = 0; c < width; ++c) {
        std::memcpy(to + (left + c) * rows + top, turned[c], static_cast<size_t>(height));
      }
    }
  }
}

ByColumns::ByColumns(const MatmulSpec& spec) : spec_(spec), turned_(static_cast<size_t>(spec.columns * spec.depth)) {
  turn(spec.weights, spec.depth, spec.columns, turned_.data());
  spec_.weights = turned_.data();
  spec_.by_rows = false;
}

}  // namespace bittrue::portable

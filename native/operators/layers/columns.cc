#include "operators/layers/columns.h"

#include <algorithm>

#include "core/share.h"

namespace bittrue {
namespace {

constexpr int64_t kDepthLanes = 16;  // depths are padded to a multiple of this

// sums[r][c] = rows[r] . columns[c], exact. Products are added in 32 bits for `block` elements at a time, over which
// sum |a| |w| <= 2^31 - 1, then in 64.
template <int kRows, int kWide>
void dots(const int16_t* const* rows, const int16_t* columns, int64_t depth, int64_t block, int64_t* const* sums) {
  int64_t total[kRows][kWide] = {};
  for (int64_t begin = 0; begin < depth; begin += block) {
    const int64_t count = std::min(block, depth - begin) / kDepthLanes * kDepthLanes;
    int32_t part[kRows][kWide] = {};
    for (int64_t k = 0; k < count; ++k) {
      for (int r = 0; r < kRows; ++r) {
        for (int c = 0; c < kWide; ++c) part[r][c] += rows[r][begin + k] * columns[c * depth + begin + k];
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < kWide; ++c) total[r][c] += part[r][c];
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kWide; ++c) sums[r][c] = total[r][c];
  }
}

template <int kRows>
void dots_row(const int16_t* const* rows, const int16_t* columns, int64_t count, int64_t depth, int64_t block,
              int64_t* const* sums) {
  int64_t* at[kRows];
  for (int r = 0; r < kRows; ++r) at[r] = sums[r];
  const auto move = [&](int64_t by) {
    for (int r = 0; r < kRows; ++r) at[r] += by;
    columns += by * depth;
  };
  int64_t c = 0;
  for (; c + 4 <= count; c += 4, move(4)) dots<kRows, 4>(rows, columns, depth, block, at);
  for (; c < count; ++c, move(1)) dots<kRows, 1>(rows, columns, depth, block, at);
}

}  // namespace

Columns::Columns(int64_t columns, int64_t used_depth, int64_t largest_input, int64_t largest_weight)
    : count(columns), used(used_depth), depth(round_up(used_depth, kDepthLanes)) {
  planes = largest_weight <= 32767 && kDepthLanes * largest_input * largest_weight <= kMostSum ? 1 : 2;
  const int64_t product = largest_input * (planes == 1 ? std::max<int64_t>(1, largest_weight) : 256);
  block = std::max(kDepthLanes, kMostSum / std::max<int64_t>(1, product) / kDepthLanes * kDepthLanes);
}

void Columns::multiply(const int16_t* packed, const int16_t* rows, int64_t row_count, int64_t first, int64_t wide,
                       int64_t* sums, int64_t* plane_sums) const {
  for (int64_t plane = 0; plane < planes; ++plane) {
    int64_t* into = plane == 0 ? sums : plane_sums;
    const int16_t* columns = packed + (plane * count + first) * depth;
    for (int64_t r = 0; r < row_count; r += 2) {
      const int16_t* pair[2] = {rows + r * depth, rows + (r + 1) * depth};
      int64_t* targets[2] = {into + r * kColumns, into + (r + 1) * kColumns};
      if (r + 1 < row_count) {
        dots_row<2>(pair, columns, wide, depth, block, targets);
      } else {
        dots_row<1>(pair, columns, wide, depth, block, targets);
      }
    }
  }
  for (int64_t i = 0; planes == 2 && i < row_count * kColumns; ++i) {
    if (i % kColumns < wide) sums[i] += 256 * plane_sums[i];
  }
}

}  // namespace bittrue

#include "operators/layers/single_rows.h"

#include <algorithm>
#include <cstring>

namespace bittrue {
namespace {

typedef float FourReals __attribute__((vector_size(16)));

inline FourReals load(const float* from) {
  FourReals value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Rows `place` to `place + kRows`.
template <int kRows>
void sum_rows(const float* matrix, const float* column, int64_t depth, int64_t place, int64_t rows, float* out) {
  FourReals low[kRows] = {}, high[kRows] = {};
  const float* row = matrix + place * depth;
  int64_t k = 0;
  for (; k + 8 <= depth; k += 8) {
    const FourReals first = load(column + k), second = load(column + k + 4);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      low[r] += load(row + r * depth + k) * first;
      high[r] += load(row + r * depth + k + 4) * second;
    }
  }
  for (int r = 0; r < kRows; ++r) {
    float lanes[8];
    std::memcpy(lanes, &low[r], sizeof low[r]);
    std::memcpy(lanes + 4, &high[r], sizeof high[r]);
    for (int64_t i = k; i < depth; ++i) lanes[i - k] += row[r * depth + i] * column[i];
    out[place + r] = fold_lanes_of_eight(lanes, place + r, rows);
  }
}

}  // namespace

void sums_of_lanes_of_eight(const float* matrix, const float* column, int64_t depth, int64_t rows, float* out) {
  int64_t place = 0;
  for (; place + 4 <= rows; place += 4) sum_rows<4>(matrix, column, depth, place, rows, out);
  for (; place < rows; ++place) sum_rows<1>(matrix, column, depth, place, rows, out);
}

}  // namespace bittrue

#include "operators/layers/single_rows.h"

#include <algorithm>

namespace bittrue {
namespace {

template <int kRows>
void sum_rows(const float* matrix, const float* column, int64_t depth, int64_t place, int64_t rows, float* out) {
  float lanes[kRows][8] = {};
  const float* row = matrix + place * depth;
  int64_t k = 0;
  for (; k + 8 <= depth; k += 8) {
    for (int r = 0; r < kRows; ++r) {
      for (int lane = 0; lane < 8; ++lane) lanes[r][lane] += row[r * depth + k + lane] * column[k + lane];
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int64_t i = k; i < depth; ++i) lanes[r][i - k] += row[r * depth + i] * column[i];
    out[place + r] = fold_lanes_of_eight(lanes[r], place + r, rows);
  }
}

}  // namespace

void sums_of_lanes_of_eight(const float* matrix, const float* column, int64_t depth, int64_t rows, float* out) {
  int64_t place = 0;
  for (; place + 4 <= rows; place += 4) sum_rows<4>(matrix, column, depth, place, rows, out);
  for (; place < rows; ++place) sum_rows<1>(matrix, column, depth, place, rows, out);
}

}  // namespace bittrue

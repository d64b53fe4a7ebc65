// binary32 products of single rows and columns, as the rule binary32_fused_blocks orders them: nothing is fused.
#pragma once

#include <cstdint>

namespace bittrue {

// out[n] += the sum over k of row[k] * matrix(k)[n]: terms in fours (then two, then one), each rounded and added up, and
// then added to the sum so far.
template <class Matrix>
inline void add_fours(const float* row, const Matrix& matrix, int64_t depth, int64_t columns, float* out) {
  int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    const float *b = matrix(k), *c = matrix(k + 1), *d = matrix(k + 2), *e = matrix(k + 3);
    const float w0 = row[k], w1 = row[k + 1], w2 = row[k + 2], w3 = row[k + 3];
    for (int64_t n = 0; n < columns; ++n) out[n] = (((w0 * b[n] + w1 * c[n]) + w2 * d[n]) + w3 * e[n]) + out[n];
  }
  if (k + 2 <= depth) {
    const float *b = matrix(k), *c = matrix(k + 1), w0 = row[k], w1 = row[k + 1];
    for (int64_t n = 0; n < columns; ++n) out[n] = (w0 * b[n] + w1 * c[n]) + out[n];
    k += 2;
  }
  if (k < depth) {
    const float *b = matrix(k), w0 = row[k];
    for (int64_t n = 0; n < columns; ++n) out[n] = w0 * b[n] + out[n];
  }
}

// The same with rows of the matrix that are `step` apart.
inline void add_fours(const float* row, const float* matrix, int64_t step, int64_t depth, int64_t columns, float* out) {
  add_fours(row, [=](int64_t k) { return matrix + k * step; }, depth, columns, out);
}

// The product of row `place` of `rows` rows with a column whose numbers are `step` apart: 8 lanes, which groups of 4, 2
// and 1 rows fold in ways of their own.
inline float fold_lanes_of_eight(const float* lane, int64_t place, int64_t rows) {
  if (place >= rows / 4 * 4 && place < rows / 2 * 2) {
    const float even[2] = {lane[2] + lane[0], lane[6] + lane[4]}, odd[2] = {lane[3] + lane[1], lane[7] + lane[5]};
    return (even[0] + even[1]) + (odd[0] + odd[1]);
  }
  if (place < rows / 4 * 4) {
    return (((lane[0] + lane[1]) + lane[2]) + lane[3]) + (((lane[4] + lane[5]) + lane[6]) + lane[7]);
  }
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

inline float sum_lanes_of_eight(const float* row, const float* column, int64_t step, int64_t depth, int64_t place,
                                int64_t rows) {
  float lane[8] = {};
  for (int64_t k = 0; k < depth; ++k) lane[k % 8] += row[k] * column[k * step];
  return fold_lanes_of_eight(lane, place, rows);
}

// All `rows` rows, which lie side by side, times one column: as sum_lanes_of_eight does it, four at a time.
void sums_of_lanes_of_eight(const float* matrix, const float* column, int64_t depth, int64_t rows, float* out);

}  // namespace bittrue

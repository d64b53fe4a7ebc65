// binary32 sums of products whose order is part of their meaning: scalar twins of arithmetic/ordered_sums.py.
#pragma once

#include <cstdint>
#include <cstring>

namespace bittrue {

constexpr int kOrderedColumns = 8;  // columns that one call adds to

// sums[r][n] += rows[r][k] * columns[k * column_step + n] for k = 0, 1, ...; every product and sum is rounded alone.
// Vectors lie across the columns: compilers left alone would put them across k and add up element by element.
template <int kRows>
inline void add_products(const float* const* rows, const float* columns, int64_t column_step, int64_t depth,
                         float (*sums)[kOrderedColumns]) {
  typedef float Four __attribute__((vector_size(16)));
  constexpr int kVectors = kOrderedColumns / 4;
  Four part[kRows][kVectors];
  std::memcpy(part, sums, sizeof(part));
  for (int64_t k = 0; k < depth; ++k, columns += column_step) {
    Four column[kVectors];
    std::memcpy(column, columns, sizeof(column));
    for (int r = 0; r < kRows; ++r) {
      const float x = rows[r][k];
      const Four factor = {x, x, x, x};
      for (int v = 0; v < kVectors; ++v) part[r][v] += factor * column[v];
    }
  }
  std::memcpy(sums, part, sizeof(part));
}

}  // namespace bittrue

// binary32 sums of products whose order is part of their meaning: scalar twins of arithmetic/ordered_sums.py.
#pragma once

#include <cstdint>

#include "rules/plain_range.h"

namespace bittrue {

constexpr int kOrderedColumns = 8;  // columns that one call adds to

// sums[r][n] += rows[r][k] * columns[k * column_step + n] for k = 0, 1, ...; every product and sum is rounded alone.
template <int kRows>
inline void add_products(const float* const* rows, const float* columns, int64_t column_step, int64_t depth,
                         float (*sums)[kOrderedColumns]) {
  float part[kRows][kOrderedColumns];
  for (int r = 0; r < kRows; ++r) {
    for (int n = 0; n < kOrderedColumns; ++n) part[r][n] = sums[r][n];
  }
  for (int64_t k = 0; k < depth; ++k, columns += column_step) {
    for (int r = 0; r < kRows; ++r) {
      const float factor = rows[r][k];
      for (int n = 0; n < kOrderedColumns; ++n) part[r][n] += factor * columns[n];
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int n = 0; n < kOrderedColumns; ++n) sums[r][n] = part[r][n];
  }
}

}  // namespace bittrue

// Sums by the rule binary32_eights_then_fused of `sum_of_products`: products of whole eights of terms are rounded, those that
// are left are joined with their sums.
#pragma once

#include <cstdint>

#include "isa/cores.h"

namespace bittrue {

inline constexpr int64_t kEight = 8;

// sums[r][n] += products of the `depth` terms of rows[r] with panel[depth][width], for `count` rows. `begins`: the sums are
// +0 so far. `room` holds `count` pointers.
inline void add_eights(const RealMatmul& core, const float* const* rows, int64_t count, int64_t depth,
                       const float* panel, int64_t width, bool begins, const float** room, float* sums) {
  const int64_t whole = depth / kEight * kEight;
  RealRows part;
  part.rows = rows;
  part.capacity = part.count = count;
  part.sums = sums;
  part.stride = width;
  if (begins) {
    part.depth = whole;
    core.run(part, panel, width);
  } else {
    for (int64_t r = 0; r < count; ++r) {
      float* to = sums + r * width;
      for (int64_t k = 0; k < whole; ++k) {
        const float x = rows[r][k];
        const float* weights = panel + k * width;
        for (int64_t n = 0; n < width; ++n) to[n] += x * weights[n];
      }
    }
  }
  if (whole == depth) return;
  for (int64_t r = 0; r < count; ++r) room[r] = rows[r] + whole;
  part.rows = room;
  part.depth = depth - whole;
  core.run_fused(part, panel + whole * width, width);
}

}  // namespace bittrue

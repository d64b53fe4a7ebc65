// Scalar twin of src/bittrue/rules/table_product.py: rows times 2-bit numbers in blocks, by tables of sums of four.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace bittrue::rules {

// The tables of one row: of every four terms 16 sums, of every group of terms a scale and the sum of all, negated.
struct TablesOfFours {
  int8_t* sums;           // [depth / 4][16]
  float *scales, *added;  // [depth / group]
};

// False where a scale is no finite number.
inline bool make_tables_of_fours(const float* row, int64_t depth, int64_t group, const TablesOfFours& to) {
  const int64_t fours = group / 4;
  bool finite = true;
  for (int64_t g = 0; g < depth / group; ++g, row += group) {
    float scale = 0.0f, added = 0.0f;
    for (int64_t first = 0; first < fours; first += 8) {
      float largest[8], lanes[8];
      for (int64_t i = 0; i < 8; ++i) {
        const float* x = row + (first + i) * 4;
        largest[i] = (std::fabs(x[0]) + std::fabs(x[1])) + (std::fabs(x[2]) + std::fabs(x[3]));
        lanes[i] = ((-x[0] + -x[1]) + -x[2]) + -x[3];
      }
      for (int half = 4; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) largest[i] = std::max(largest[i], largest[half + i]);
        for (int i = 0; i < half; ++i) lanes[i] = half == 4 ? lanes[4 + i] + lanes[i] : lanes[i] + lanes[half + i];
      }
      scale = std::max(scale, largest[0] / 127.0f);
      added = first == 0 ? lanes[0] : added + lanes[0];
    }
    finite = finite && std::isfinite(scale);
    to.scales[g] = scale, to.added[g] = added;
    const float inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
    for (int64_t i = 0; i < fours; ++i) {
      const float* x = row + i * 4;
      int8_t* sums = to.sums + (g * fours + i) * 16;
      for (int entry = 0; entry < 16; ++entry) {
        float sum = entry & 1 ? x[0] : -x[0];
        for (int bit = 1; bit < 4; ++bit) sum = sum + (entry >> bit & 1 ? x[bit] : -x[bit]);
        const float real = std::nearbyint(sum * inverse);
        sums[entry] = static_cast<int8_t>(std::isnan(real) ? -128.0f : std::clamp(real, -128.0f, 127.0f));
      }
    }
  }
  return finite;
}

// binary32_tables_of_fours: the row times one column, whose four numbers of a byte look up a sum by their low and one by their
// high bits. Zero points are given or null.
inline float row_by_tables(const TablesOfFours& row, const uint8_t* column, int64_t depth, int64_t group, int64_t block,
                           const float* scales, const float* points) {
  const int64_t fours = group / 4;
  float low = 0.0f, high = 0.0f;
  const int8_t* sums = row.sums;
  for (int64_t g = 0; g < depth / group; ++g) {
    int32_t found[2] = {};
    for (int64_t i = 0; i < fours; ++i, ++column, sums += 16) {
      // Bits 0, 2, 4 and 6 side by side, and the others.
      for (int bit = 0; bit < 2; ++bit) {
        const int spread = *column >> bit & 0x55, pairs = (spread | spread >> 1) & 0x33;
        found[bit] += sums[(pairs | pairs >> 2) & 15];
      }
    }
    const float t = row.scales[g], o = row.added[g], s = scales[g * group / block];
    low = std::fma(std::fma(static_cast<float>(found[0]), t, o), s, low);
    high = std::fma(static_cast<float>(found[1]) * t, s, high);
    if (points != nullptr) low = std::fma((points[g * group / block] - 2.0f) * s, o * 2.0f, low);
  }
  return low * 0.5f + high;
}

}  // namespace bittrue::rules

// Scalar twins of src/bittrue/rules/dot.py: binary32 dot products, each in its own order.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace bittrue::rules {

enum class DotRule : uint8_t {
  lanes_4_in_order,
  lanes_4_by_halves,
  fused_lanes_4_in_pairs,
  fused_lanes_4_or_in_order,
  unknown
};

inline DotRule find_dot(const std::string& name) {
  if (name == "binary32_lanes_4_in_order") return DotRule::lanes_4_in_order;
  if (name == "binary32_fused_lanes_4_in_pairs") return DotRule::fused_lanes_4_in_pairs;
  if (name == "binary32_fused_lanes_4_or_in_order") return DotRule::fused_lanes_4_or_in_order;
  return name == "binary32_lanes_4_by_halves" ? DotRule::lanes_4_by_halves : DotRule::unknown;
}

inline void add_block(float* lanes, const float* row, const float* x) {
  for (int lane = 0; lane < 4; ++lane) lanes[lane] += row[lane] * x[lane];
}

inline float lanes_4_in_order(const float* row, const float* x, int64_t n, float start) {
  float lanes[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) add_block(lanes, row + i, x + i);
  float total = start + (((lanes[0] + lanes[1]) + lanes[2]) + lanes[3]);
  for (; i < n; ++i) total += row[i] * x[i];
  return total;
}

// `alone`: the row is the matrix' only one.
inline float lanes_4_by_halves(const float* row, const float* x, int64_t n, float start, bool alone) {
  const int64_t blocks = n / 4;
  float sets[4][4] = {};
  if (!alone) {
    for (int64_t b = 0; b < blocks; ++b) add_block(sets[0], row + 4 * b, x + 4 * b);
  } else {
    const int64_t full = blocks < 4 ? blocks : blocks / 4 * 4;
    for (int64_t b = 0; b < full; ++b) add_block(sets[b % 4], row + 4 * b, x + 4 * b);
    for (int64_t b = full; b < blocks; ++b) add_block(sets[b - full], row + 4 * b, x + 4 * b);
    for (int64_t s = full < 4 ? full - 1 : 3; s > 0; --s) {
      for (int lane = 0; lane < 4; ++lane) sets[s - 1][lane] += sets[s][lane];
    }
  }
  float total = (sets[0][0] + sets[0][2]) + (sets[0][1] + sets[0][3]);
  for (int64_t i = 4 * blocks; i < n; ++i) total += row[i] * x[i];
  return start + total;
}

inline float in_pairs(const float* lanes) { return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]); }

inline float fused_in_order(const float* row, const float* x, int64_t first, int64_t n, float total) {
  for (int64_t i = first; i < n; ++i) total = std::fma(row[i], x[i], total);
  return total;
}

inline void add_block_fused(float* lanes, const float* row, const float* x) {
  for (int lane = 0; lane < 4; ++lane) lanes[lane] = std::fma(row[lane], x[lane], lanes[lane]);
}

inline float fused_lanes_4_in_pairs(const float* row, const float* x, int64_t n, float start) {
  float lanes[4] = {};
  for (int64_t i = 0; i + 4 <= n; i += 4) add_block_fused(lanes, row + i, x + i);
  return fused_in_order(row, x, n / 4 * 4, n, start + in_pairs(lanes));
}

// `rows`: how many the matrix has.
inline float fused_lanes_4_or_in_order(const float* row, const float* x, int64_t n, float start, int64_t rows) {
  if (rows < 4 || n < 4) return start + fused_in_order(row, x, 0, n, 0.0f);
  float lanes[4] = {};
  for (int64_t i = 0; i + 4 <= n; i += 4) add_block_fused(lanes, row + i, x + i);
  if (n % 4 != 0) {
    float last[4] = {};
    for (int64_t lane = 4 - n % 4; lane < 4; ++lane) last[lane] = x[n - 4 + lane];
    add_block_fused(lanes, row + n - 4, last);
  }
  return start + in_pairs(lanes);
}

inline float dot(DotRule rule, const float* row, const float* x, int64_t n, float start, int64_t rows) {
  switch (rule) {
    case DotRule::lanes_4_in_order: return lanes_4_in_order(row, x, n, start);
    case DotRule::fused_lanes_4_in_pairs: return fused_lanes_4_in_pairs(row, x, n, start);
    case DotRule::fused_lanes_4_or_in_order: return fused_lanes_4_or_in_order(row, x, n, start, rows);
    default: return lanes_4_by_halves(row, x, n, start, rows == 1);
  }
}

// The sum of n numbers in the order of `dot` in a matrix of many rows.
inline float sum(DotRule rule, const float* x, int64_t n) {
  const int64_t blocks = n / 4;
  float lanes[4] = {};
  for (int64_t i = 0; i < 4 * blocks; ++i) lanes[i % 4] += x[i];
  float total = rule == DotRule::lanes_4_in_order         ? ((lanes[0] + lanes[1]) + lanes[2]) + lanes[3]
                : rule == DotRule::fused_lanes_4_in_pairs ? in_pairs(lanes)
                                                          : (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  for (int64_t i = 4 * blocks; i < n; ++i) total += x[i];
  return total;
}

}  // namespace bittrue::rules

// Overlap of axis-aligned boxes in binary32, one rounding per operation, as arithmetic/boxes.py.
#pragma once

namespace bittrue::arithmetic {

struct Box {
  float low_y, low_x, high_y, high_x;
};

// The second only where it is truly larger (smaller).
inline float larger(float a, float b) { return a < b ? b : a; }
inline float smaller(float a, float b) { return b < a ? b : a; }

inline float intersection_over_union(const Box& a, const Box& b) {
  const float area_a = (a.high_y - a.low_y) * (a.high_x - a.low_x);
  const float area_b = (b.high_y - b.low_y) * (b.high_x - b.low_x);
  if (area_a <= 0 || area_b <= 0) return 0;
  const float high = smaller(a.high_y, b.high_y) - larger(a.low_y, b.low_y);
  const float wide = smaller(a.high_x, b.high_x) - larger(a.low_x, b.low_x);
  const float shared = larger(high, 0) * larger(wide, 0);
  return shared / ((area_a + area_b) - shared);
}

// Whether there is a gap between two boxes.
inline bool apart(const Box& a, const Box& b) {
  return a.high_y < b.low_y || b.high_y < a.low_y || a.high_x < b.low_x || b.high_x < a.low_x;
}

// Corners (y, x, y, x) in any order.
inline Box sorted_corners(const float* c) {
  return {smaller(c[0], c[2]), smaller(c[1], c[3]), larger(c[0], c[2]), larger(c[1], c[3])};
}

}  // namespace bittrue::arithmetic

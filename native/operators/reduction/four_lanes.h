// Sums of rows of real numbers in two vectors of four lanes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace bittrue {

// Rules four_lanes_twice and, with kNeighbours, four_lanes_twice_by_neighbours: vectors from element `boundary` on, then
// what lies before it and behind the last vector.
template <bool kNeighbours>
float sum_in_four_lanes(const float* x, int64_t length, int64_t boundary) {
  const int64_t first = std::min(boundary, length), vectors = (length - first) / 4;
  float total = x[0];
  if (vectors == 0) {
    for (int64_t i = 1; i < length; ++i) total += x[i];
    return total;
  }
  const float* v = x + first;
  float even[4], odd[4];
  for (int lane = 0; lane < 4; ++lane) {
    even[lane] = v[lane];
    odd[lane] = vectors > 1 ? v[4 + lane] : 0.0f;
    for (int64_t i = 2; i + 1 < vectors; i += 2) {
      even[lane] += v[4 * i + lane];
      odd[lane] += v[4 * i + 4 + lane];
    }
    if (vectors == 1) continue;
    even[lane] += odd[lane];
    if (vectors % 2) even[lane] += v[4 * (vectors - 1) + lane];
  }
  total = kNeighbours ? (even[0] + even[1]) + (even[2] + even[3]) : (even[0] + even[2]) + (even[1] + even[3]);
  for (int64_t i = 0; i < first; ++i) total += x[i];
  for (int64_t i = first + 4 * vectors; i < length; ++i) total += x[i];
  return total;
}

}  // namespace bittrue

// How work is cut into tasks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace bittrue {

inline int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Into how many tasks of at most `most` items to cut: all threads shall finish at about the same time, when work comes in
// units (rows of a tile) that cannot be cut.
inline int64_t task_count(int64_t items, int64_t most, int64_t unit, int threads) {
  const int64_t fewest = std::max<int64_t>(1, (items + most - 1) / most);
  if (threads <= 1 || items <= unit) return fewest;
  int64_t best = 0, cost = 0;
  const int64_t first = (fewest + threads - 1) / threads;
  for (int64_t each = first; each < first + 4; ++each) {
    const int64_t size = (items + each * threads - 1) / (each * threads);
    const int64_t units = each * ((size + unit - 1) / unit);
    if (best == 0 || units < cost) best = each * threads, cost = units;
  }
  return best;
}

// The most work and the most bytes of one task: runs end between tasks.
constexpr int64_t kTaskMostWork = int64_t{1} << 27;
constexpr int64_t kTaskMostBytes = int64_t{4} << 20;

// At least `parts`, and more where each of them would be more than `most` of `whole`; at most `limit`.
inline int64_t cut(int64_t parts, int64_t whole, int64_t most, int64_t limit) {
  return std::max<int64_t>(1, std::min(std::max(parts, whole / most), limit));
}

// Into how many groups to cut `panels` columns of a matrix product.
inline int64_t group_count(int64_t panels, int threads) {
  return panels % threads == 0 ? threads : std::min<int64_t>(panels, 4 * threads);
}

}  // namespace bittrue

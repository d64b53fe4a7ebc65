// How work is cut into tasks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace bittrue {

inline int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Multiply-adds below which a step is done by one thread: handing work out costs a few hundred nanoseconds.
constexpr int64_t kWorthSharing = 200'000;

// The size of tasks of at most `most` items (a multiple of `unit`), whose number suits the threads: all of them finish
// at about the same time. Sizes are multiples of `unit`.
inline int64_t task_size(int64_t items, int64_t most, int64_t unit, int threads) {
  if (threads <= 1 || items <= unit) return most;
  const int64_t tasks = round_up((items + most - 1) / most, threads);
  return std::min(most, round_up((items + tasks - 1) / tasks, unit));
}

}  // namespace bittrue

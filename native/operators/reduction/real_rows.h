// Rows of real numbers: how they are shared out, and sums of them by packets.
#pragma once

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "core/kernel.h"

namespace bittrue {

template <class T = float>
inline void require_reals(const Step& step) {
  constexpr Type kReal = std::is_same_v<T, float> ? Type::f32 : Type::f64;
  require(step.input(0).type == kReal && step.output().type == kReal && step.input(0).dense() && step.output().dense(),
          "no native kernel for these types");
}

// body(first, last, worker) for stretches of `unit` rows, or multiples of them, of `length` elements; false from any of
// them leaves the step to the reference.
template <class Body>
void for_stretches(const Run& run, int64_t rows, int64_t length, int64_t unit, const Body& body) {
  constexpr int64_t kElements = 8192;  // of one task, about
  const int64_t together = std::max<int64_t>(1, kElements / std::max<int64_t>(1, length) / unit) * unit;
  std::atomic<bool> defined{true};
  run.pool.parallel((rows + together - 1) / together, [&](int64_t task, int worker) {
    if (!body(task * together, std::min(rows, (task + 1) * together), worker)) {
      defined.store(false, std::memory_order_relaxed);
    }
  });
  if (!defined.load(std::memory_order_relaxed)) throw Undefined();
}

// The same with body(row, worker).
template <class Body>
void for_rows(const Run& run, int64_t rows, int64_t length, const Body& body) {
  for_stretches(run, rows, length, 1, [&](int64_t first, int64_t last, int worker) {
    bool defined = true;
    for (int64_t row = first; row < last; ++row) defined = body(row, worker) && defined;
    return defined;
  });
}

// value(i), i < count, by `operation`: whole packets of 4 (2 of binary64 numbers) as they are aligned in memory, `start`
// elements behind a boundary, in two sets that take turns, then what stands before and behind them. There is at least one.
template <class Value, class Operation>
auto packet_fold(const Value& value, int64_t count, int64_t start, const Operation& operation) {
  using T = std::decay_t<decltype(value(0))>;
  constexpr int kLanes = 16 / sizeof(T);
  const int64_t first = std::min<int64_t>((kLanes - start % kLanes) % kLanes, count), whole = (count - first) / kLanes;
  if (whole == 0) {
    T kept = value(0);
    for (int64_t i = 1; i < count; ++i) kept = operation(kept, value(i));
    return kept;
  }
  T one[kLanes], two[kLanes] = {};
  const auto packet = [&](int64_t index, T* lanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] = operation(lanes[l], value(first + kLanes * index + l));
  };
  for (int l = 0; l < kLanes; ++l) one[l] = value(first + l);
  if (whole > 1) {
    for (int l = 0; l < kLanes; ++l) two[l] = value(first + kLanes + l);
    for (int64_t i = 2; i + 2 <= whole; i += 2) packet(i, one), packet(i + 1, two);
    for (int l = 0; l < kLanes; ++l) one[l] = operation(one[l], two[l]);
    if (whole % 2 == 1) packet(whole - 1, one);
  }
  // Without loops, so that lanes stay in registers.
  T kept;
  if constexpr (kLanes == 4) {
    kept = operation(operation(one[0], one[2]), operation(one[1], one[3]));
  } else {
    kept = operation(one[0], one[1]);
  }
  for (int64_t i = 0; i < first; ++i) kept = operation(kept, value(i));
  for (int64_t i = first + kLanes * whole; i < count; ++i) kept = operation(kept, value(i));
  return kept;
}

// The sum of value(i), i < count, by packets.
template <class Value>
auto packet_sum(const Value& value, int64_t count, int64_t start) {
  using T = std::decay_t<decltype(value(0))>;
  return count == 0 ? T{0} : packet_fold(value, count, start, [](T a, T b) { return a + b; });
}

}  // namespace bittrue

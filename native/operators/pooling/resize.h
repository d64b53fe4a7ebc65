// What resizing shares.
#pragma once

#include <algorithm>
#include <memory>

#include "core/kernel.h"

namespace bittrue {

// Calls body(begin, end, worker) for all output rows of `elements` each. A few are one task: they share input rows.
template <class Body>
void each_row(ThreadPool& pool, int64_t rows, int64_t elements, const Body& body) {
  constexpr int64_t kTaskElements = 16 << 10;
  const int64_t each = pool.threads() > 1 ? std::max<int64_t>(1, kTaskElements / std::max<int64_t>(1, elements)) : rows;
  pool.parallel(rows == 0 ? 0 : (rows + each - 1) / each,
                [&](int64_t task, int worker) { body(task * each, std::min(rows, (task + 1) * each), worker); });
}

// resize_linear, slot `weighted`: in resize_by_factors.cc.
std::unique_ptr<Kernel> make_weighted_resize(const Step& step, const CoreSet& cores);

// Bytes, whose weights are multiples of 1 / `whole`, or binary32 numbers where that is 0; ties of the values away from zero,
// or up. Null where a sum need not be exact: in resize_exact.cc.
std::unique_ptr<Kernel> make_exact_resize(const Step& step, int whole, bool away);

}  // namespace bittrue

// Exact matrix products of 16-bit numbers with 64-bit sums: what general layers are made of.
#pragma once

#include <cstdint>

#include "core/thread_pool.h"
#include "operators/layers/general_layer.h"

namespace bittrue {

constexpr int64_t kPixels = 16;           // rows per block
constexpr int64_t kColumns = 64;          // columns per block
constexpr int64_t kTaskWork = 32 << 10;   // multiply-accumulates below which a task is not worth it
constexpr int64_t kMostSum = 2147483647;  // of 32 bits

// function(task, worker) for all tasks; on the calling thread alone when `work` multiply-accumulates are too few.
template <class Function>
void share(ThreadPool& pool, int64_t tasks, int64_t work, const Function& function) {
  if (work >= kTaskWork) return pool.parallel(tasks, function);
  for (int64_t task = 0; task < tasks; ++task) function(task, 0);
}

// Weights as columns of `depth` 16-bit numbers in one or two planes: w = plane 0, or plane 0 + 256 * plane 1 where 16
// products would leave 32 bits. |w| < 2^16 keeps both planes within [-256, 256].
struct Columns {
  int64_t count, used, depth, planes, block;

  Columns(int64_t columns, int64_t used_depth, int64_t largest_input, int64_t largest_weight);

  int64_t elements() const { return planes * count * depth; }

  // Column `column` of `out` from weights [column][used]; `stored` is their memory unless they are constant.
  void pack(const CenteredWeights& weights, const uint8_t* stored, int64_t column, int16_t* out) const {
    pack(column, out, [&](int64_t k) { return weights.at(stored, column * used + k); });
  }
  // The same from weight(k), k < used.
  template <class Weight>
  void pack(int64_t column, int16_t* out, const Weight& weight) const {
    int16_t* low = out + column * depth;
    int16_t* high = low + count * depth;
    for (int64_t k = 0; k < depth; ++k) {
      const int32_t w = k < used ? weight(k) : 0;
      if (planes == 1) {
        low[k] = static_cast<int16_t>(w);
      } else {
        const int below = ((w + 128) & 255) - 128;
        low[k] = static_cast<int16_t>(below);
        high[k] = static_cast<int16_t>((w - below) / 256);
      }
    }
  }

  // sums[r * kColumns + c] for `row_count` rows (at most kPixels, `depth` apart) and columns [first, first + wide),
  // wide <= kColumns. `plane_sums` is scratch memory of the same size.
  void multiply(const int16_t* packed, const int16_t* rows, int64_t row_count, int64_t first, int64_t wide,
                int64_t* sums, int64_t* plane_sums) const;
};

}  // namespace bittrue

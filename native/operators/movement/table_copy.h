// Copies whose source positions are looked up, one table per axis.
#pragma once

#include <cstdint>
#include <vector>

#include "core/thread_pool.h"

namespace bittrue {

// One axis of the target: where in the source each of its positions is read, in bytes, and its stride in the target.
struct TableAxis {
  std::vector<int64_t> source;
  int64_t target;
};

// target[i * t0 + j * t1 + ...] = source[table0[i] + table1[j] + ...], `chunk` contiguous bytes each.
class TableCopy {
 public:
  // At least one axis, the last one inside.
  TableCopy(std::vector<TableAxis> axes, int64_t chunk);
  // The last axis has `count` positions `stride` bytes apart, whose table is given to `run`.
  TableCopy(std::vector<TableAxis> outer, int64_t count, int64_t stride, int64_t chunk);

  void run(const uint8_t* source, uint8_t* target, ThreadPool& pool) const { run(source, last_.data(), target, pool); }
  void run(const uint8_t* source, const int64_t* table, uint8_t* target, ThreadPool& pool) const;

 private:
  using Rows = void (*)(const uint8_t* source, const int64_t* offsets, uint8_t* target, int64_t stride, int64_t count,
                        int64_t chunk);
  // Positions [first, last) of a row.
  void around_piece(const uint8_t* source, const int64_t* table, uint8_t* target, int64_t first, int64_t last) const;

  std::vector<TableAxis> outer_;
  std::vector<int64_t> last_;
  int64_t count_, stride_, chunk_, rows_ = 1;
  Rows copy_;
  int64_t piece_ = 0, piece_end_ = 0;  // positions of the last axis that are one piece of the source
};

// 0, step, 2 * step, ...: the table of an axis that is copied as it is.
std::vector<int64_t> plain_table(int64_t dimension, int64_t step);

}  // namespace bittrue

// The product of two matrices by the rules binary32_fused_blocks and binary64_fused_blocks: blocks of fused multiply-adds from 0 on, added up.
#pragma once

#include <cstdint>

#include "core/core_set.h"

namespace bittrue {

// What the sums of rows begin with: number n of row r is from[r * down + n * across].
template <class T>
struct AddendOf {
  const T* from = nullptr;       // none
  int64_t down = 0, across = 1;  // `across` is 0 or 1
};

using Addend = AddendOf<float>;

// [rows][depth] times [depth][columns]. Matrices on the right are packed in panels of columns first.
template <class T>
class FusedProductOf {
 public:
  static constexpr int64_t kRows = 48;       // that are worked on together,
  static constexpr int64_t kMostRows = 192;  // and at most: then large panels are read less often

  // Terms of a block, but for a matrix on the left that lies transposed.
  static int64_t block_of(int64_t depth, int64_t columns, bool packed);
  static constexpr int64_t kTurnedBlock = 128;

  FusedProductOf(const MatmulOf<T>& core, int64_t depth, int64_t columns, T alpha, bool packed);
  FusedProductOf(const MatmulOf<T>& core, int64_t depth, int64_t columns, T alpha, int64_t block);

  // The product of the first `depth` terms and `columns` columns, a multiple of a panel's or all, of the same matrices.
  FusedProductOf within(int64_t depth, int64_t columns) const;

  int64_t panels() const { return panels_; }
  int64_t panel() const { return most_; }  // columns of one, at most
  // Columns that a packed panel has: [depth][width], zeros behind the last one, `panel() * depth` floats apart.
  int64_t width(int64_t panel) const;
  int64_t matrix_numbers() const { return panels_ * most_ * stride_; }
  int64_t worker_bytes() const;

  // Panel `p` of a matrix, or of one that lies there as [columns][depth]; `packed` is the whole one's memory.
  void pack(const T* matrix, bool turned, int64_t p, T* packed) const;
  void pack_all(const T* matrix, bool turned, T* packed) const;

  // The columns of panel `p` of at most kMostRows rows that lie side by side, all terms of the matrices apart. False where a
  // result is no finite number.
  bool multiply(const T* rows, int64_t count, const T* packed, int64_t p, const AddendOf<T>& addend, T* out,
                int64_t out_step, uint8_t* scratch) const;
  // All panels of any number of rows.
  bool multiply_all(const T* rows, int64_t count, const T* packed, const AddendOf<T>& addend, T* out, int64_t out_step,
                    uint8_t* scratch) const;

 private:
  const MatmulOf<T>& core_;
  int64_t depth_, stride_, columns_, block_, most_, panels_;  // `stride_` terms lie there
  T alpha_;
};
using FusedProduct = FusedProductOf<float>;

}  // namespace bittrue

// The product of two matrices by the rule binary32_fused_blocks: blocks of fused multiply-adds from 0 on, added up.
#pragma once

#include <cstdint>

#include "core/core_set.h"

namespace bittrue {

// What the sums of rows begin with: number n of row r is from[r * down + n * across].
struct Addend {
  const float* from = nullptr;   // none
  int64_t down = 0, across = 1;  // `across` is 0 or 1
};

// [rows][depth] times [depth][columns]. Matrices on the right are packed in panels of columns first.
class FusedProduct {
 public:
  static constexpr int64_t kRows = 48;       // that are worked on together,
  static constexpr int64_t kMostRows = 192;  // and at most: then large panels are read less often

  // Terms of a block, but for a matrix on the left that lies transposed.
  static int64_t block_of(int64_t depth, int64_t columns, bool packed);
  static constexpr int64_t kTurnedBlock = 128;

  FusedProduct(const RealMatmul& core, int64_t depth, int64_t columns, float alpha, bool packed);
  FusedProduct(const RealMatmul& core, int64_t depth, int64_t columns, float alpha, int64_t block);

  // The product of the first `depth` terms and `columns` columns, a multiple of a panel's or all, of the same matrices.
  FusedProduct within(int64_t depth, int64_t columns) const;

  int64_t panels() const { return panels_; }
  int64_t panel() const { return most_; }  // columns of one, at most
  // Columns that a packed panel has: [depth][width], zeros behind the last one, `panel() * depth` floats apart.
  int64_t width(int64_t panel) const;
  int64_t matrix_floats() const { return panels_ * most_ * stride_; }
  int64_t worker_bytes() const;

  // Panel `p` of a matrix, or of one that lies there as [columns][depth]; `packed` is the whole one's memory.
  void pack(const float* matrix, bool turned, int64_t p, float* packed) const;
  void pack_all(const float* matrix, bool turned, float* packed) const;

  // The columns of panel `p` of at most kMostRows rows that lie side by side, all terms of the matrices apart. False where a
  // result is no finite number.
  bool multiply(const float* rows, int64_t count, const float* packed, int64_t p, const Addend& addend, float* out,
                int64_t out_step, uint8_t* scratch) const;
  // All panels of any number of rows.
  bool multiply_all(const float* rows, int64_t count, const float* packed, const Addend& addend, float* out,
                    int64_t out_step, uint8_t* scratch) const;

 private:
  const RealMatmul& core_;
  int64_t depth_, stride_, columns_, block_, most_, panels_;  // `stride_` terms lie there
  float alpha_;
};

}  // namespace bittrue

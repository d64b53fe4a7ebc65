// What products have in common whose columns come by sixteen.
#pragma once

#include <algorithm>

#include "isa/avx2/requantize.h"
#include "isa/cores.h"

namespace bittrue::BITTRUE_ISA {

// Panels are 16 columns wide; the last one is narrow where it has at most 8.
class PanelMatmul : public Matmul {
 public:
  static constexpr int kColumns = 16;

  static int64_t panels(int64_t columns) { return (columns + kColumns - 1) / kColumns; }
  static int width_of(int64_t columns, int64_t panel) {
    return columns - panel * kColumns <= kColumns / 2 ? kColumns / 2 : kColumns;
  }

  int64_t panels() const final { return panels_; }
  int64_t first_column(int64_t panel) const final { return std::min(panel * kColumns, columns_); }
  bool takes_grids() const override { return false; }

 protected:
  // `byte_columns`: those of the requantizer's bytes, -1 for none. The bias is left to the caller.
  PanelMatmul(const MatmulSpec& spec, const int64_t* byte_columns)
      : columns_(spec.columns),
        panels_(panels(spec.columns)),
        row_terms_(spec.row_terms),
        sums_(spec.sums),
        bias_(panels_ * kColumns),
        requantizer_(portable::requantize_of(spec), byte_columns, panels_, !spec.row_terms && !spec.sums && !spec.pairs,
                     [&] { return ranges_of(spec); }) {}

  explicit PanelMatmul(const MatmulSpec& spec) : PanelMatmul(spec, in_order(spec.columns).data()) {
    for (int64_t slot = 0; slot < panels_ * kColumns; ++slot) {
      const int64_t column = slot / kColumns * kColumns + accumulator_of_byte(static_cast<int>(slot % kColumns));
      if (column >= columns_) continue;
      bias_.data()[slot] = static_cast<int32_t>(static_cast<uint32_t>(spec.bias[column]) + requantizer_.offset());
    }
  }

  int width_of(int64_t panel) const { return width_of(columns_, panel); }

  int64_t columns_, panels_;
  bool row_terms_, sums_;
  AlignedArray<int32_t> bias_;  // [panel][accumulator], moved by the requantizer's offset
  Requantizer requantizer_;

 private:
  // For inputs of any bytes.
  static AlignedArray<Range> ranges_of(const MatmulSpec& spec) {
    AlignedArray<Range> result(spec.columns);
    const int64_t depth = spec.segments * spec.depth;
    for (int64_t column = 0; column < spec.columns; ++column) {
      int64_t least = spec.bias[column], greatest = least;
      for (int64_t d = 0; d < depth; ++d) {
        const int64_t term = int64_t{255} * spec.weights[spec.by_rows ? d * spec.columns + column : column * depth + d];
        (term < 0 ? least : greatest) += term;
      }
      result.data()[column] = {static_cast<double>(least), static_cast<double>(greatest)};
    }
    return result;
  }

  static AlignedArray<int64_t> in_order(int64_t columns) {
    AlignedArray<int64_t> result(panels(columns) * kColumns);
    for (int64_t i = 0; i < panels(columns) * kColumns; ++i) result.data()[i] = i < columns ? i : -1;
    return result;
  }
};

}  // namespace bittrue::BITTRUE_ISA

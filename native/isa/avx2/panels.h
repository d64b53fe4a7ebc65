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
  static bool narrow(int64_t columns) { return columns - (panels(columns) - 1) * kColumns <= kColumns / 2; }

  int64_t panels() const final { return panels_; }
  int64_t first_column(int64_t panel) const final { return std::min(panel * kColumns, columns_); }
  bool takes_grids() const override { return false; }

 protected:
  // `byte_columns`: those of the requantizer's bytes.
  PanelMatmul(const MatmulSpec& spec, const int64_t* byte_columns)
      : columns_(spec.columns),
        panels_(panels(spec.columns)),
        narrow_(narrow(spec.columns)),
        row_terms_(spec.row_terms),
        sums_(spec.sums),
        bias_(panels_ * kColumns),
        requantizer_(portable::requantize_of(spec), Choice(portable::requantize_of(spec)), byte_columns, panels_) {}

  int width_of(int64_t panel) const { return narrow_ && panel == panels_ - 1 ? kColumns / 2 : kColumns; }

  int64_t columns_, panels_;
  bool narrow_, row_terms_, sums_;
  AlignedArray<int32_t> bias_;  // [panel][accumulator], moved by the requantizer's offset
  Requantizer requantizer_;
};

}  // namespace bittrue::BITTRUE_ISA

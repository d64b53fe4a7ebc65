// One spatial axis of a window over a channels-first picture, as steps describe it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/step.h"

namespace bittrue {

struct SpatialAxis {
  int64_t extent = 1, out = 1, taps = 1, stride = 1, dilation = 1, before = 0;

  // Outputs [low, high) whose tap `tap` lies inside of the picture.
  int64_t low(int64_t tap) const {
    const int64_t shift = tap * dilation - before;
    return std::min(out, shift >= 0 ? 0 : (-shift + stride - 1) / stride);
  }
  int64_t high(int64_t tap) const {
    const int64_t shift = tap * dilation - before;
    return std::max(low(tap), std::min(out, shift >= extent ? 0 : (extent - 1 - shift) / stride + 1));
  }
};

// Height (`axis` 0) or width (1) of a step over pictures [N, C, H, W] or [N, C, W]. NoKernel for other ranks.
inline SpatialAxis read_spatial_axis(const Step& step, int axis) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const Operand &in = step.input(0), &out = step.output();
  const int rank = in.rank();
  require((rank == 3 || rank == 4) && out.rank() == rank, "one or two spatial axes are needed");
  const bool flat = axis == 0 && rank == 3, high = axis == 0;
  SpatialAxis result;
  result.extent = flat ? 1 : in.shape[rank - 2 + axis];
  const int64_t positions = flat ? 1 : out.shape[rank - 2 + axis];
  result.out = step.integer(high ? "out_h" : "out_w", positions, positions);
  result.taps = step.integer(high ? "filter_h" : "filter_w", 1, kMost);
  result.stride = step.integer(high ? "stride_h" : "stride_w", 1, kMost);
  result.dilation = step.integer(high ? "dilation_h" : "dilation_w", 1, kMost);
  result.before = step.integer(high ? "pad_top" : "pad_left", -kMost, kMost);
  return result;
}

}  // namespace bittrue

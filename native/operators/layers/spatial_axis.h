// One spatial axis of a window over a channels-first image, as steps describe it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/step.h"

namespace bittrue {

struct SpatialAxis {
  int64_t dimension = 1, out = 1, taps = 1, stride = 1, dilation = 1, before = 0;
  // Outputs [first[t], last[t]) are those whose tap t lies inside of the image.
  std::vector<int64_t> first, last;
};

// Height (`axis` 0) or width (1) of a step over images [N, C, H, W] or [N, C, W]. NoKernel for other ranks.
inline SpatialAxis read_spatial_axis(const Step& step, int axis) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const Operand &in = step.input(0), &out = step.output();
  const int rank = in.rank();
  require((rank == 3 || rank == 4) && out.rank() == rank, "one or two spatial axes are needed");
  const bool flat = axis == 0 && rank == 3, high = axis == 0;
  SpatialAxis result;
  result.dimension = flat ? 1 : in.shape[rank - 2 + axis];
  const int64_t positions = flat ? 1 : out.shape[rank - 2 + axis];
  result.out = step.integer(high ? "out_h" : "out_w", positions, positions);
  result.taps = step.integer(high ? "filter_h" : "filter_w", 1, kMost);
  result.stride = step.integer(high ? "stride_h" : "stride_w", 1, kMost);
  result.dilation = step.integer(high ? "dilation_h" : "dilation_w", 1, kMost);
  result.before = step.integer(high ? "pad_top" : "pad_left", -kMost, kMost);
  require(result.taps <= int64_t{1} << 16, "a window is too large");
  for (int64_t tap = 0; tap < result.taps; ++tap) {
    const int64_t shift = tap * result.dilation - result.before, stride = result.stride;
    const int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    const int64_t last = shift >= result.dimension ? 0 : (result.dimension - 1 - shift) / stride + 1;
    result.first.push_back(std::min(result.out, first));
    result.last.push_back(std::max(result.first.back(), std::min(result.out, last)));
  }
  return result;
}

}  // namespace bittrue

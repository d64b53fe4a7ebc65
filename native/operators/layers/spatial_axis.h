// One spatial axis of a window over a channels-first image, as steps describe it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/step.h"

namespace bittrue {

struct SpatialAxis {
  int64_t dimension = 1, out = 1, taps = 1, stride = 1, dilation = 1, before = 0;
  // Outputs [first[t], last[t]) are those whose tap t lies inside of the image.
  std::vector<int64_t> first, last;

  struct Taps {
    int64_t low, high;
  };
  // From the first to behind the last one that lies inside of the image for an output.
  Taps taps_inside(int64_t output) const {
    const auto meets = [&](int64_t tap) { return first[tap] <= output && output < last[tap]; };
    Taps found{0, taps};
    while (found.low < found.high && !meets(found.low)) ++found.low;
    while (found.low < found.high && !meets(found.high - 1)) --found.high;
    return found;
  }
};

// Depth ('d'), height ('h') or width ('w') of a step over images [N, C, W], [N, C, H, W] or [N, C, D, H, W], or with their
// channels last; one of size 1 where images have no such axis. NoKernel for other ranks.
inline SpatialAxis read_spatial_axis(const Step& step, char letter) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const Operand &in = step.input(0), &out = step.output();
  const int behind = step.integers.count("channels_last") != 0 && step.integer("channels_last", 0, 1) != 0 ? 1 : 0;
  const int rank = in.rank(), axis = rank - behind - (letter == 'w' ? 1 : letter == 'h' ? 2 : 3);
  require(rank >= 3 && rank <= 5 && out.rank() == rank, "one to three spatial axes are needed");
  SpatialAxis result;
  if (axis >= 2 - behind) {
    const auto number = [&](const char* what, int64_t low, int64_t high) {
      return step.integer((std::string(what) + letter).c_str(), low, high);
    };
    result.dimension = in.shape[axis];
    result.out = number("out_", out.shape[axis], out.shape[axis]);
    result.taps = number("filter_", 1, kMost);
    result.stride = number("stride_", 1, kMost);
    result.dilation = number("dilation_", 1, kMost);
    result.before = step.integer(letter == 'w' ? "pad_left" : letter == 'h' ? "pad_top" : "pad_front", -kMost, kMost);
  }
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

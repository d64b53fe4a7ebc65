// A change of scale, shared by quantize and the activations that are one with a clamp.
#pragma once

#include "operators/core/map.h"

namespace bittrue {

// store(rescale(wrap32(q - input zero point))); null for types without a native form.
std::unique_ptr<Kernel> make_rescaled(const Step& step, const CoreSet& cores);

// One scale and zero point for all elements, or one per position of one axis.
struct AxisParameters {
  int64_t outer = 1, extent = 1, inner = 1;
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
};

// The arrays `scales` and `zero_points`, which must broadcast over `operand`.
AxisParameters axis_parameters(const Step& step, const Operand& operand);

}  // namespace bittrue

// Kernels of quantize and dequantize, each in the file of its arithmetic; quantize.cc and dequantize.cc choose.
#pragma once

#include "operators/core/map.h"

namespace bittrue {

// A change of scale, shared with the activations that are one with a clamp:
// store(rescale(wrap32(q - input zero point))); null for types without a native form.
std::unique_ptr<Kernel> make_rescaled(const Step& step, const CoreSet& cores);

// Scales and zero points are operands.
std::unique_ptr<Kernel> make_quantize_by_operands(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_dequantize_by_operands(const Step& step);
// The same for all types and rules.
std::unique_ptr<Kernel> make_any_quantize(const Step& step);
std::unique_ptr<Kernel> make_any_dequantize(const Step& step);

// Quantized values are real numbers, with parameters in turn along an axis.
std::unique_ptr<Kernel> make_quantize_in_reals(const Step& step);
std::unique_ptr<Kernel> make_dequantize_in_reals(const Step& step);

// Ends of ranges are operands.
std::unique_ptr<Kernel> make_quantize_by_ranges(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_dequantize_by_ranges(const Step& step);

// One scale and zero point for all elements, or one per position of one axis.
struct AxisParameters {
  int64_t outer = 1, dimension = 1, inner = 1;
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
};

// The arrays `scales` and `zero_points`, which must broadcast over `operand`.
AxisParameters axis_parameters(const Step& step, const Operand& operand);

}  // namespace bittrue

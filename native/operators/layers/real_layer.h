// Convolutions and fully-connected layers on binary32 numbers, and hybrid ones whose weights are integers.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

// Whether a step's rules ask for one of these kernels.
bool is_real_layer(const Step& step);

std::unique_ptr<Kernel> make_real_conv2d(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_real_depthwise_conv2d(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_real_fully_connected(const Step& step, const CoreSet& cores);
// Images with channels first, by the rule binary32_fused_blocks.
std::unique_ptr<Kernel> make_real_convolution(const Step& step, const CoreSet& cores);

}  // namespace bittrue

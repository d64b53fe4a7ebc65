// Convolutions and fully-connected layers of any integer types: what the 8-bit matrix product does not do. Activations
// and weights become 16-bit numbers without zero points; every sum is exact in 64 bits before the register's width is
// applied, and scalar twins of the rules rescale and store it.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

// Groups, dilation, 8- and 16-bit activations, weights and biases of any integer type, computed ones included.
std::unique_ptr<Kernel> make_general_conv2d(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_general_depthwise_conv2d(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_general_fully_connected(const Step& step, const CoreSet& cores);

}  // namespace bittrue

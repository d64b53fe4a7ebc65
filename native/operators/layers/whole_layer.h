// Layers on integers in binary32, with scales and zero points of their own: sums that are exact in any order.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

// conv, conv_transpose and fully_connected of the arithmetic `whole`.
std::unique_ptr<Kernel> make_whole_layer(const Step& step, const CoreSet& cores);

}  // namespace bittrue

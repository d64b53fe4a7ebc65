// Convolutions over three spatial axes, and transposed ones over two or three, whose binary32 sums have an order.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

std::unique_ptr<Kernel> make_ordered_convolution(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_ordered_transposed(const Step& step, const CoreSet& cores);

}  // namespace bittrue

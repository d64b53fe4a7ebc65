// Convolutions over three spatial axes whose binary32 sums have the order of memory.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

std::unique_ptr<Kernel> make_ordered_convolution(const Step& step);
std::unique_ptr<Kernel> make_ordered_transposed(const Step& step);

}  // namespace bittrue

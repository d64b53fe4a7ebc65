// Convolutions of integers that give their sums: conv with channels last, and nothing to store.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

std::unique_ptr<Kernel> make_integer_convolution(const Step& step, const CoreSet& cores);

}  // namespace bittrue

// matmul of integers of 32 and 64 bits, whose products and sums wrap.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

std::unique_ptr<Kernel> make_wrapping_products(const Step& step);

}  // namespace bittrue

// matmul with constant weights of 2, 4 or 8 bits in blocks, each with a scale and a zero point.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

std::unique_ptr<Kernel> make_block_product(const Step& step, const CoreSet& cores);

}  // namespace bittrue

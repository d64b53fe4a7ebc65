// Products of matrices of real numbers.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

// A step of matmul by the rules binary32_fused_blocks, binary32_fused_blocks_alike and binary64_fused_blocks.
std::unique_ptr<Kernel> make_real_product(const Step& step, const CoreSet& cores);

}  // namespace bittrue

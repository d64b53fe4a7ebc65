// Products of matrices of real numbers.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

// A step of matmul by the rule binary32_fused_blocks.
std::unique_ptr<Kernel> make_real_product(const Step& step, const CoreSet& cores);

}  // namespace bittrue

// Transposed convolutions of real numbers by the rule binary32_fused_blocks.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

std::unique_ptr<Kernel> make_real_transposed(const Step& step, const CoreSet& cores);

}  // namespace bittrue

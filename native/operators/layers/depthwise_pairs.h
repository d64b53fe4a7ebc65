// conv with filters of one channel whose products of u8 and s8 codes are added in pairs of 16 bits first.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

std::unique_ptr<Kernel> make_depthwise_pairs(const Step& step, const CoreSet& cores);

}  // namespace bittrue

// conv with filters of one channel, whose images have their channels last.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

std::unique_ptr<Kernel> make_depthwise_convolution(const Step& step, const CoreSet& cores);

}  // namespace bittrue

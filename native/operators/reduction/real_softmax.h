// softmax and log_softmax of real numbers.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

std::unique_ptr<Kernel> make_real_softmax(const Step& step, const CoreSet& cores, bool logarithm);

}  // namespace bittrue

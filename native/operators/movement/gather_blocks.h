// Rows of numbers of 2, 4 or 8 bits, picked by position, which become real numbers by the scales of their blocks.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

std::unique_ptr<Kernel> make_gather_blocks(const Step& step);

}  // namespace bittrue

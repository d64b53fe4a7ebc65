// What kernels share whose operands hold the ends of ranges: binary32 numbers that may change from run to run.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

// NoKernel unless the operand is one binary32 number.
void require_end(const Operand& operand);

// max(|low|, |high|) of the range that the inputs at `position` and behind it hold.
float reach(const Run& run, int position);

}  // namespace bittrue

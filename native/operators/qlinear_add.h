// What the core of a sum of two quantized operands needs.
#pragma once

#include "core/step.h"
#include "isa/cores.h"

namespace bittrue {

// NoKernel when the step is none of 8-bit operands with known scales.
FusedSumSpec fused_sum_spec(const Step& step);

}  // namespace bittrue

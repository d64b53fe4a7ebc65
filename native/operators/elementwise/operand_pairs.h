// What the core of a sum of two quantized operands needs.
#pragma once

#include <memory>

#include "core/kernel.h"
#include "isa/cores.h"

namespace bittrue {

// NoKernel when the step is none of 8-bit operands with known scales.
FusedSumSpec fused_sum_spec(const Step& step);

std::unique_ptr<Kernel> make_operand_add(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_operand_mul(const Step& step, const CoreSet& cores);

// The same where ranges are operands.
std::unique_ptr<Kernel> make_ranged_add(const Step& step);
std::unique_ptr<Kernel> make_ranged_mul(const Step& step);
std::unique_ptr<Kernel> make_ranged_normalization(const Step& step, const CoreSet& cores);
// By a factor and an addend per channel of bytes.
std::unique_ptr<Kernel> make_affine_normalization(const Step& step);

}  // namespace bittrue

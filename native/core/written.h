// Proof that every step of a program reads what was written for it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/program.h"

namespace bittrue {

// std::invalid_argument when a step, or whoever wants the results, reads a byte of the arena that neither an input nor an
// earlier step has written, or when a step writes over a byte of a tensor that is still in use.
void check_written(const std::vector<TensorSpec>& tensors, const std::vector<ProgramStep>& steps, int64_t arena);

}  // namespace bittrue

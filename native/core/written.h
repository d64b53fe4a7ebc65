// Proof that a program reads no memory of its arena that nobody wrote.
#pragma once

#include <cstdint>
#include <vector>

#include "core/program.h"

namespace bittrue {

// std::invalid_argument when a step, or whoever wants the results, reads a byte of the arena that neither an input nor an
// earlier step covers.
void check_written(const std::vector<TensorSpec>& tensors, const std::vector<ProgramStep>& steps, int64_t arena);

}  // namespace bittrue

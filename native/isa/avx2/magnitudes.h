// Products of bytes whose weights are magnitudes and signs.
#pragma once

#include <memory>

#include "isa/cores.h"

namespace bittrue::BITTRUE_ISA {

// Null where pairs are to saturate, and where this is no faster.
std::unique_ptr<Matmul> make_magnitudes(const MatmulSpec& spec);

}  // namespace bittrue::BITTRUE_ISA

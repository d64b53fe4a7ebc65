// What the files of this folder offer to its table. BITTRUE_ISA is the namespace: the folder is built as `avx2` and,
// where a core profits from the dot-product instruction, once more as `avxvnni`.
//
// Nothing here calls inline functions of other folders that compute something: compiled with this folder's flags they
// could replace the portable copy at link time.
#pragma once

#include <memory>

#include "isa/cores.h"

namespace bittrue::BITTRUE_ISA {
#include "isa/core_declarations.inc"
}  // namespace bittrue::BITTRUE_ISA

// What the files of this folder offer to its table. What is missing here is taken from the portable set.
//
// Nothing here calls inline functions of other folders that compute something: compiled with this folder's flags they
// could replace the portable copy at link time.
#pragma once

#include <memory>

#include "isa/cores.h"

namespace bittrue::neon_dotprod {
#include "isa/core_declarations.inc"
}  // namespace bittrue::neon_dotprod

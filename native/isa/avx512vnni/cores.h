// What the files of this folder offer to its table.
#pragma once

#include <memory>

#include "isa/cores.h"

namespace bittrue::avx512vnni {
#include "isa/core_declarations.inc"
}  // namespace bittrue::avx512vnni

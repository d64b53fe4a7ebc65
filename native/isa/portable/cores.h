// What the files of this folder offer to its table, and to other sets that leave a rare case to it.
#pragma once

#include <memory>

#include "isa/cores.h"

namespace bittrue::portable {
#include "isa/core_declarations.inc"
}  // namespace bittrue::portable

// Functions of real numbers, every operation rounded.
#include "arithmetic/rational.h"
#include "isa/portable/cores.h"

namespace bittrue::portable {
#include "isa/real_loops.inc"
}  // namespace bittrue::portable

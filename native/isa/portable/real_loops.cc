// Functions of real numbers, and of two numbers, every operation rounded.
#include "arithmetic/rational.h"
#include "isa/portable/cores.h"

namespace bittrue::portable {
#include "isa/pair_loops.inc"
#include "isa/real_loops.inc"
}  // namespace bittrue::portable

// Functions of real numbers, and of two numbers, every operation rounded.
#include "arithmetic/rational.h"
#include "isa/avx2/cores.h"

namespace bittrue::avx2 {
#include "isa/pair_loops.inc"
#include "isa/real_loops.inc"
}  // namespace bittrue::avx2

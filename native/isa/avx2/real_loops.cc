// Functions of real numbers, every operation rounded.
#include "arithmetic/rational.h"
#include "isa/avx2/cores.h"

namespace bittrue::avx2 {
#include "isa/real_loops.inc"
}  // namespace bittrue::avx2

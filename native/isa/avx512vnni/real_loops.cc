// Functions of real numbers, and of two numbers, every operation rounded.
#include "arithmetic/rational.h"
#include "isa/avx512vnni/cores.h"

namespace bittrue::avx512vnni {
#include "isa/pair_loops.inc"
#include "isa/real_loops.inc"
}  // namespace bittrue::avx512vnni

// Elementary functions by polynomials.
#if !defined(__AVXVNNI__)
#include "arithmetic/narrow_float.h"
#include "isa/avx2/cores.h"

namespace bittrue::BITTRUE_ISA {
#include "isa/real_functions.inc"
}  // namespace bittrue::BITTRUE_ISA

#endif

// Elementary functions by polynomials.
#include "arithmetic/narrow_float.h"
#include "isa/portable/cores.h"

namespace bittrue::portable {
#include "isa/real_functions.inc"
}  // namespace bittrue::portable

// Elementary functions by polynomials.
#include "arithmetic/narrow_float.h"
#include "isa/avx512vnni/cores.h"

namespace bittrue::avx512vnni {
#include "isa/real_functions.inc"
}  // namespace bittrue::avx512vnni

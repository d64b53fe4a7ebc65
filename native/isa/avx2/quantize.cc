#if !defined(__AVXVNNI__)

#include "isa/avx2/cores.h"
#include "isa/avx2/vectors.h"
#include "isa/quantize_reals.h"

namespace bittrue::BITTRUE_ISA {

void quantize_reals(const QuantizeSpec& spec, const float* in, uint8_t* out, int64_t count) {
  quantize_wide<Wide>(spec, in, out, count);
}

}  // namespace bittrue::BITTRUE_ISA

#endif

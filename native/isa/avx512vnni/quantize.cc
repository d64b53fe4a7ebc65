#include "isa/avx512vnni/cores.h"
#include "isa/avx512vnni/vectors.h"
#include "isa/quantize_reals.h"

namespace bittrue::avx512vnni {

void quantize_reals(const QuantizeSpec& spec, const float* in, uint8_t* out, int64_t count) {
  quantize_wide<Wide>(spec, in, out, count);
}

}  // namespace bittrue::avx512vnni

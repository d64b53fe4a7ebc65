#include "isa/pairs_of_bytes.h"

#include "isa/neon_dotprod/cores.h"
#include "isa/neon_dotprod/vectors.h"
#include "isa/quantize_reals.h"

namespace bittrue::neon_dotprod {

std::unique_ptr<Elementwise> make_fused_sum(const FusedSumSpec& spec) { return make_fused_sum_of<Wide>(spec); }

std::unique_ptr<Elementwise> make_scaled_product(const ScaledProductSpec& spec) {
  return make_pairs_of_bytes<Wide>(spec);
}

void quantize_reals(const QuantizeSpec& spec, const float* in, uint8_t* out, int64_t count) {
  quantize_wide<Wide>(spec, in, out, count);
}

}  // namespace bittrue::neon_dotprod

#include "isa/pairs_of_bytes.h"

#include "isa/neon_dotprod/cores.h"
#include "isa/neon_dotprod/vectors.h"

namespace bittrue::neon_dotprod {

std::unique_ptr<Elementwise> make_fused_sum(const FusedSumSpec& spec) { return make_fused_sum_of<Wide>(spec); }

std::unique_ptr<Elementwise> make_scaled_product(const ScaledProductSpec& spec) {
  return make_pairs_of_bytes<Wide>(spec);
}

}  // namespace bittrue::neon_dotprod

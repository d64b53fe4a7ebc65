#include "isa/pairs_of_bytes.h"

#include "isa/avx512vnni/cores.h"
#include "isa/avx512vnni/vectors.h"

namespace bittrue::avx512vnni {

std::unique_ptr<Elementwise> make_fused_sum(const FusedSumSpec& spec) { return make_fused_sum_of<Wide>(spec); }

std::unique_ptr<Elementwise> make_scaled_product(const ScaledProductSpec& spec) {
  return make_pairs_of_bytes<Wide>(spec);
}

}  // namespace bittrue::avx512vnni

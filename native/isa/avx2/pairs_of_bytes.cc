#if !defined(__AVXVNNI__)

#include "isa/pairs_of_bytes.h"

#include "isa/avx2/cores.h"
#include "isa/avx2/vectors.h"

namespace bittrue::BITTRUE_ISA {

std::unique_ptr<Elementwise> make_fused_sum(const FusedSumSpec& spec) { return make_fused_sum_of<Wide>(spec); }

std::unique_ptr<Elementwise> make_scaled_product(const ScaledProductSpec& spec) {
  return make_pairs_of_bytes<Wide>(spec);
}

}  // namespace bittrue::BITTRUE_ISA

#endif

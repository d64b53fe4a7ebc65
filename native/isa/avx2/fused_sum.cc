#if !defined(__AVXVNNI__)

#include "isa/fused_sum.h"

#include "isa/avx2/cores.h"
#include "isa/avx2/vectors.h"

namespace bittrue::BITTRUE_ISA {

std::unique_ptr<Elementwise> make_fused_sum(const FusedSumSpec& spec) { return make_wide_fused_sum<Wide>(spec); }

}  // namespace bittrue::BITTRUE_ISA

#endif

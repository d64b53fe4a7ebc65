#include "isa/fused_sum.h"

#include "isa/avx512vnni/cores.h"
#include "isa/avx512vnni/vectors.h"

namespace bittrue::avx512vnni {

std::unique_ptr<Elementwise> make_fused_sum(const FusedSumSpec& spec) { return make_wide_fused_sum<Wide>(spec); }

}  // namespace bittrue::avx512vnni

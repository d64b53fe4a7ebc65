#include "isa/portable/aligned_values.h"

#include "isa/cores.h"

namespace bittrue::portable {

void aligned_values(const AddSpec& spec, int64_t* first, int64_t* second) {
  const int64_t scale = int64_t{1} << spec.left;
  for (int64_t q = 0; q < 256; ++q) {
    // As in the rule, the moved value wraps to 32 bits.
    const int64_t one = arithmetic::wrap_s32((q - spec.first_zero_point) * scale);
    const int64_t two = arithmetic::wrap_s32((q - spec.second_zero_point) * scale);
    first[q] = rules::apply(spec.align, one, spec.first);
    const int64_t value = rules::apply(spec.align, two, spec.second);
    second[q] = spec.subtract ? -value : value;
  }
}

}  // namespace bittrue::portable

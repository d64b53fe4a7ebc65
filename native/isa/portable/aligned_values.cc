#include "isa/portable/aligned_values.h"

#include "isa/cores.h"

namespace bittrue::portable {

void aligned_values(const AddSpec& spec, int64_t* first, int64_t* second) {
  const int64_t scale = int64_t{1} << spec.left;
  for (int64_t q = 0; q < 256; ++q) {
    first[q] = rules::apply(spec.align, (q - spec.first_zero_point) * scale, spec.first);
    const int64_t value = rules::apply(spec.align, (q - spec.second_zero_point) * scale, spec.second);
    second[q] = spec.subtract ? -value : value;
  }
}

void add_table(const AddSpec& spec, uint8_t* table) {
  int64_t first[256], second[256];
  aligned_values(spec, first, second);
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const int64_t sum = arithmetic::wrap_s32(first[a] + second[b]);
      table[256 * a + b] = static_cast<uint8_t>(rules::requantize(spec.requantize, sum, 0));
    }
  }
}

}  // namespace bittrue::portable

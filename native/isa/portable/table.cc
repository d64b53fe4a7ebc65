// The portable cores: plain C++, right on every processor; the yardstick of the others.
#include "isa/portable/cores.h"
#include "isa/tables.h"

namespace bittrue::portable {

extern const Cores kCores;
const Cores kCores = {"portable",     make_matmul,   make_depthwise, make_add,        make_mul,
                      max_rows,       sum_rows,      lookup,         requantize_row,  peak_multiply_adds,
                      row_terms,      &kRealMatmul,  real_taps,      real_taps_fused, make_fused_sum,
                      quantize_reals, real_function, softmax_row,    normalize_row,   &kByteProduct};

}  // namespace bittrue::portable

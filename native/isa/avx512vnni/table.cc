// The AVX-512 VNNI cores.
#include "isa/avx512vnni/cores.h"
#include "isa/tables.h"

namespace bittrue::avx512vnni {

extern const Cores kCores;
const Cores kCores = {"avx512vnni",   make_matmul,   make_depthwise, make_add,        make_mul,
                      max_rows,       sum_rows,      lookup,         requantize_row,  peak_multiply_adds,
                      row_terms,      &kRealMatmul,  real_taps,      real_taps_fused, make_fused_sum,
                      quantize_reals, real_function, softmax_row,    normalize_row,   &kByteProduct};

}  // namespace bittrue::avx512vnni

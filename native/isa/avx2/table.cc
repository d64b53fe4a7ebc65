// The AVX2 cores. Built twice: as "avx2", and as "avxvnni" with the dot-product instruction, which serves the matrix
// product alone; the rest of that set comes from "avx2".
#include "isa/avx2/cores.h"
#include "isa/tables.h"

namespace bittrue::BITTRUE_ISA {

extern const Cores kCores;
#if defined(__AVXVNNI__)
const Cores kCores = {
    "avxvnni", make_matmul, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, peak_multiply_adds,
    nullptr,   nullptr,     nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &kByteProduct};
#else
const Cores kCores = {"avx2",         make_matmul,   make_depthwise, make_add,        nullptr,
                      max_rows,       sum_rows,      lookup,         requantize_row,  peak_multiply_adds,
                      nullptr,        &kRealMatmul,  real_taps,      real_taps_fused, make_fused_sum,
                      quantize_reals, real_function, softmax_row,    normalize_row,   &kByteProduct};
#endif

}  // namespace bittrue::BITTRUE_ISA

// The AVX-512 VNNI cores.
#include "isa/avx512vnni/cores.h"
#include "isa/tables.h"

namespace bittrue::avx512vnni {

extern const Cores kCores;
const Cores kCores = {"avx512vnni", make_matmul, make_depthwise, nullptr, nullptr, nullptr, nullptr, requantize_row,
                      peak_multiply_adds};

}  // namespace bittrue::avx512vnni

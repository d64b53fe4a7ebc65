// The AVX-512 VNNI cores.
#include "isa/tables.h"

namespace bittrue::avx512vnni {

int64_t peak_multiply_adds(int64_t rounds);

extern const Cores kCores;
const Cores kCores = {"avx512vnni", nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, peak_multiply_adds};

}  // namespace bittrue::avx512vnni

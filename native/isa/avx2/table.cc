// The AVX2 cores. Built twice: as "avx2", and as "avxvnni" with the dot-product instruction.
#include "isa/tables.h"

namespace bittrue::BITTRUE_ISA {

#define BITTRUE_TEXT_OF(name) #name
#define BITTRUE_TEXT(name) BITTRUE_TEXT_OF(name)

int64_t peak_multiply_adds(int64_t rounds);

extern const Cores kCores;
const Cores kCores = {BITTRUE_TEXT(BITTRUE_ISA), nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, peak_multiply_adds};

}  // namespace bittrue::BITTRUE_ISA

// The AVX-512 VNNI cores.
#include "isa/tables.h"

namespace bittrue::avx512vnni {

extern const Cores kCores;
const Cores kCores = {"avx512vnni"};

}  // namespace bittrue::avx512vnni

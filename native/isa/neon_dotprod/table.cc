// The Arm cores with the dot-product instructions.
#include "isa/neon_dotprod/cores.h"
#include "isa/tables.h"

namespace bittrue::neon_dotprod {

extern const Cores kCores;
const Cores kCores = {"neon-dotprod", make_matmul,    make_depthwise, nullptr, nullptr, max_rows,     sum_rows,
                      lookup,         requantize_row, nullptr,        nullptr, nullptr, nullptr,      nullptr,
                      nullptr,        nullptr,        nullptr,        nullptr, nullptr, &kByteProduct};

}  // namespace bittrue::neon_dotprod

// The Arm cores with the dot-product instructions.
#include "isa/neon_dotprod/cores.h"
#include "isa/tables.h"

namespace bittrue::neon_dotprod {
namespace {

constexpr Cores own_cores() {
  Cores cores;
  cores.isa = "neon-dotprod";
  cores.matmul = make_matmul;
  cores.depthwise = make_depthwise;
  cores.max_rows = max_rows;
  cores.sum_rows = sum_rows;
  cores.lookup = lookup;
  cores.requantize_row = requantize_row;
  cores.byte_product = &kByteProduct;
  return cores;
}

}  // namespace

constexpr Cores kCores = own_cores();

}  // namespace bittrue::neon_dotprod

// The Arm cores with the dot-product instructions.
#include "isa/neon_dotprod/cores.h"
#include "isa/tables.h"

namespace bittrue::neon_dotprod {
namespace {

constexpr Cores own_cores() {
  Cores cores;
  cores.isa = "neon-dotprod";
  cores.byte_times = 4;
  cores.matmul = make_matmul;
  cores.depthwise = make_depthwise;
  cores.add = make_add;
  cores.mul = make_mul;
  cores.fused_sum = make_fused_sum;
  cores.scaled_product = make_scaled_product;
  cores.max_rows = max_rows;
  cores.sum_rows = sum_rows;
  cores.row_terms = row_terms;
  cores.lookup = lookup;
  cores.requantize_rows = requantize_rows;
  cores.quantize_reals = quantize_reals;
  cores.peak_multiply_adds = peak_multiply_adds;
  cores.byte_product = &kByteProduct;
  cores.pair_product = &kPairProduct;
  cores.block_product = &kBlockProduct;
  return cores;
}

}  // namespace

constexpr Cores kCores = own_cores();

}  // namespace bittrue::neon_dotprod

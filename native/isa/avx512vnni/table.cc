// The AVX-512 VNNI cores.
#include "isa/avx512vnni/cores.h"
#include "isa/tables.h"

namespace bittrue::avx512vnni {
namespace {

constexpr Cores own_cores() {
  Cores cores;
  cores.isa = "avx512vnni";
  cores.matmul = make_matmul;
  cores.depthwise = make_depthwise;
  cores.add = make_add;
  cores.mul = make_mul;
  cores.fused_sum = make_fused_sum;
  cores.scaled_product = make_scaled_product;
  cores.max_rows = max_rows;
  cores.sum_rows = sum_rows;
  cores.average_rows = average_rows;
  cores.average_line = average_line;
  cores.row_terms = row_terms;
  cores.lookup = lookup;
  cores.requantize_rows = requantize_rows;
  cores.quantize_reals = quantize_reals;
  cores.real_function = real_function;
  cores.real_loop = real_loop;
  cores.pair_loop = pair_loop;
  cores.softmax_rows = &kSoftmaxRows;
  cores.widen_halves = widen_halves;
  cores.narrow_to_halves = narrow_to_halves;
  cores.normalize_rows = normalize_rows;
  cores.real_taps = real_taps;
  cores.real_taps_fused = real_taps_fused;
  cores.real_plane = real_plane;
  cores.real_lanes = real_lanes;
  cores.peak_multiply_adds = peak_multiply_adds;
  cores.real_matmul = &kRealMatmul;
  cores.wide_matmul = &kWideMatmul;
  cores.window_product = &kWindowProduct;
  cores.add_outer = add_outer;
  cores.byte_product = &kByteProduct;
  cores.block_product = &kBlockProduct;
  return cores;
}

}  // namespace

constexpr Cores kCores = own_cores();

}  // namespace bittrue::avx512vnni

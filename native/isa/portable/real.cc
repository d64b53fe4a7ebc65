// Sums of binary32 products in order, in vectors of four.
#include "isa/real_tiles.h"

#include "isa/portable/cores.h"

namespace bittrue::BITTRUE_ISA {
namespace {

typedef float Vector __attribute__((vector_size(16)));

Vector multiply_add(Vector a, Vector b, Vector c) {
  for (int i = 0; i < 4; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
}
constexpr int kTileRows[] = {8, 6, 4, 3};

#include "isa/real_cores.inc"

}  // namespace
}  // namespace bittrue::BITTRUE_ISA

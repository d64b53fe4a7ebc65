// Sums of binary32 products in order, in vectors of sixteen.
#include <immintrin.h>

#include "isa/real_tiles.h"

#include "isa/avx512vnni/cores.h"

namespace bittrue::BITTRUE_ISA {
namespace {

typedef float Vector __attribute__((vector_size(64)));

Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
constexpr int kTileRows[] = {8, 8, 8, 6};

#include "isa/real_cores.inc"

}  // namespace
}  // namespace bittrue::BITTRUE_ISA

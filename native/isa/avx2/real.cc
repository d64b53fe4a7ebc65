// Sums of binary32 products in order, in vectors of eight.
#include <immintrin.h>

#include "isa/real_tiles.h"
#include "isa/real_windows.h"

#include "isa/avx2/cores.h"

namespace bittrue::BITTRUE_ISA {
namespace {

typedef float Vector __attribute__((vector_size(32)));

Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
typedef double WideVector __attribute__((vector_size(32)));

WideVector multiply_add(WideVector a, WideVector b, WideVector c) { return _mm256_fmadd_pd(a, b, c); }
constexpr int kTileRows[] = {8, 6, 4, 3};
using PlaneVector = Vector;
constexpr int kPlaneVectors = 4;
constexpr int kWindowVectors = 2;

#include "isa/real_cores.inc"

}  // namespace
}  // namespace bittrue::BITTRUE_ISA

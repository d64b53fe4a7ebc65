// Sums of binary32 products in order, in vectors of sixteen.
#include <immintrin.h>

#include "isa/real_tiles.h"
#include "isa/real_windows.h"

#include "isa/avx512vnni/cores.h"

namespace bittrue::BITTRUE_ISA {
namespace {

typedef float Vector __attribute__((vector_size(64)));

Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
typedef double WideVector __attribute__((vector_size(64)));

WideVector multiply_add(WideVector a, WideVector b, WideVector c) { return _mm512_fmadd_pd(a, b, c); }
constexpr int kTileRows[] = {8, 8, 8, 6};

// Lines of planes begin anywhere: vectors of half the width lie across two cache lines half as often.
typedef float PlaneVector __attribute__((vector_size(32)));

PlaneVector multiply_add(PlaneVector a, PlaneVector b, PlaneVector c) { return _mm256_fmadd_ps(a, b, c); }
constexpr int kPlaneVectors = 8;
constexpr int kWindowVectors = 4;

#include "isa/real_cores.inc"

}  // namespace
}  // namespace bittrue::BITTRUE_ISA

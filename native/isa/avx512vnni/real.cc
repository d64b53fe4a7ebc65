// Sums of binary32 products in order, in vectors of sixteen.
#define BITTRUE_ISA avx512vnni
#include <immintrin.h>

#include "isa/real_tiles.h"

#include "isa/avx512vnni/cores.h"

namespace bittrue::BITTRUE_ISA {
namespace {

typedef float Vector __attribute__((vector_size(64)));

struct OneRounding {
  static constexpr bool kFromSums = true;
  static Vector add(Vector sum, Vector x, Vector w) { return _mm512_fmadd_ps(x, w, sum); }
  static float add(float sum, float x, float w) {
    return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(x), _mm_set_ss(w), _mm_set_ss(sum)));
  }
};
constexpr int kTileRows[] = {8, 8, 8, 6};

#include "isa/real_cores.inc"

}  // namespace
}  // namespace bittrue::BITTRUE_ISA

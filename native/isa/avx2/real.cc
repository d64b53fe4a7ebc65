// Sums of binary32 products in order, in vectors of eight.
#include <immintrin.h>

#include "isa/real_tiles.h"

#include "isa/avx2/cores.h"

namespace bittrue::BITTRUE_ISA {
namespace {

typedef float Vector __attribute__((vector_size(32)));
using Tiles = RealTiles<Vector>;

struct OneRounding {
  static constexpr bool kFromSums = true;
  static Vector add(Vector sum, Vector x, Vector w) { return _mm256_fmadd_ps(x, w, sum); }
  static float add(float sum, float x, float w) {
    return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(x), _mm_set_ss(w), _mm_set_ss(sum)));
  }
};
using Fused = RealTiles<Vector, OneRounding>;

template <class Tiles>
void run(const RealRows& rows, const float* panel, int64_t width) {
  switch (width / Tiles::kLanes) {
    case 1: return Tiles::template tiles<8, 1>(rows, 0, panel);
    case 2: return Tiles::template tiles<6, 2>(rows, 0, panel);
    case 3: return Tiles::template tiles<4, 3>(rows, 0, panel);
    default: return Tiles::template tiles<3, 4>(rows, 0, panel);
  }
}

}  // namespace

const RealMatmul kRealMatmul = {Tiles::kLanes, 4, run<Tiles>, run<Fused>};

void real_taps(const float* const* inputs, const float* const* weights, int64_t count, int64_t channels, float* out) {
  Tiles::all_taps(inputs, weights, count, channels, out);
}

void real_taps_fused(const float* const* inputs, const float* const* weights, int64_t count, int64_t channels,
                     float* out) {
  Fused::all_taps(inputs, weights, count, channels, out);
}

}  // namespace bittrue::BITTRUE_ISA

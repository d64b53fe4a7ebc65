// Sums of binary32 products in order, in vectors of sixteen.
#define BITTRUE_ISA avx512vnni
#include "isa/real_tiles.h"

#include "isa/avx512vnni/cores.h"

namespace bittrue::BITTRUE_ISA {
namespace {

typedef float Vector __attribute__((vector_size(64)));
using Tiles = RealTiles<Vector>;

void run(const RealRows& rows, const float* panel, int64_t width) {
  switch (width / Tiles::kLanes) {
    case 1: return Tiles::tiles<8, 1>(rows, 0, panel);
    case 2: return Tiles::tiles<8, 2>(rows, 0, panel);
    case 3: return Tiles::tiles<8, 3>(rows, 0, panel);
    default: return Tiles::tiles<6, 4>(rows, 0, panel);
  }
}

}  // namespace

const RealMatmul kRealMatmul = {Tiles::kLanes, 4, run};

void real_taps(const float* const* inputs, const float* const* weights, int64_t count, int64_t channels, float* out) {
  Tiles::all_taps(inputs, weights, count, channels, out);
}

}  // namespace bittrue::BITTRUE_ISA

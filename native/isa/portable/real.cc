// Sums of binary32 products in order, in vectors of four.
#define BITTRUE_ISA portable
#include <cmath>

#include "isa/real_tiles.h"

#include "isa/portable/cores.h"

namespace bittrue::BITTRUE_ISA {
namespace {

typedef float Vector __attribute__((vector_size(16)));

struct OneRounding {
  static constexpr bool kFromSums = true;
  static float add(float sum, float x, float w) { return std::fma(x, w, sum); }
  static Vector add(Vector sum, Vector x, Vector w) {
    for (int i = 0; i < 4; ++i) sum[i] = add(sum[i], x[i], w[i]);
    return sum;
  }
};
constexpr int kTileRows[] = {8, 6, 4, 3};

#include "isa/real_cores.inc"

}  // namespace
}  // namespace bittrue::BITTRUE_ISA

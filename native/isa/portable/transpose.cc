// Transposition of binary32 numbers by squares of four.
#include "isa/transpose.h"

#include <cstring>

#include "isa/tools.h"

#include "isa/portable/cores.h"
#include "isa/portable/vectors.h"

namespace bittrue::BITTRUE_ISA {

void transpose_reals(const float* source, int64_t source_step, float* target, int64_t target_step, int64_t across,
                     int64_t along) {
  const auto square = [=](const float* from, float* to) __attribute__((always_inline)) {
    Vector x[4];
    unroll<4>([&](int j)
                  __attribute__((always_inline)) { std::memcpy(&x[j], from + j * source_step, sizeof(Vector)); });
    unroll<4>([&](int i) __attribute__((always_inline)) {
      const Vector column = {x[0][i], x[1][i], x[2][i], x[3][i]};
      std::memcpy(to + i * target_step, &column, sizeof(Vector));
    });
  };
  transpose_by_squares<4>(source, source_step, target, target_step, across, along, square);
}

}  // namespace bittrue::BITTRUE_ISA

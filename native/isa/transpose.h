// Transposition of binary32 numbers by squares, for files of an instruction set. BITTRUE_ISA is their namespace.
#pragma once

#include <algorithm>
#include <cstdint>

namespace bittrue::BITTRUE_ISA {

// square(source, target) does `kSide` rows of as many numbers; the last squares reach back over others.
template <int64_t kSide, class Square>
void transpose_by_squares(const float* source, int64_t source_step, float* target, int64_t target_step, int64_t across,
                          int64_t along, const Square& square) {
  constexpr int64_t kLine = 16;  // of the source, all of which is read while it is near
  if (std::min(across, along) < kSide) {
    for (int64_t i = 0; i < across; ++i) {
      for (int64_t j = 0; j < along; ++j) target[i * target_step + j] = source[j * source_step + i];
    }
    return;
  }
  for (int64_t line = 0; line < across; line += kLine) {
    for (int64_t begin = 0; begin < along; begin += kSide) {
      const int64_t j = std::min(begin, along - kSide);
      for (int64_t place = line; place < std::min(line + kLine, across); place += kSide) {
        const int64_t i = std::min(place, across - kSide);
        square(source + j * source_step + i, target + i * target_step + j);
      }
    }
  }
}

}  // namespace bittrue::BITTRUE_ISA

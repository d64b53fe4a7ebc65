// Transposition of binary32 numbers by squares of eight, and of four where there are fewer.
#include "isa/transpose.h"

#include <immintrin.h>

#include "isa/tools.h"

#include "isa/avx2/cores.h"

namespace bittrue::BITTRUE_ISA {

void transpose_reals(const float* source, int64_t source_step, float* target, int64_t target_step, int64_t across,
                     int64_t along) {
  const auto small = [=](const float* from, float* to) __attribute__((always_inline)) {
    __m128 x[4];
    unroll<4>([&](int j) __attribute__((always_inline)) { x[j] = _mm_loadu_ps(from + j * source_step); });
    _MM_TRANSPOSE4_PS(x[0], x[1], x[2], x[3]);
    unroll<4>([&](int i) __attribute__((always_inline)) { _mm_storeu_ps(to + i * target_step, x[i]); });
  };
  if (std::min(across, along) < 8) {
    return transpose_by_squares<4>(source, source_step, target, target_step, across, along, small);
  }
  const auto square = [=](const float* from, float* to) __attribute__((always_inline)) {
    unroll<2>([&](int half) __attribute__((always_inline)) {
      __m256 x[4], y[4];
      unroll<4>([&](int j) __attribute__((always_inline)) {
        const float* row = from + j * source_step + 4 * half;
        x[j] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row)), _mm_loadu_ps(row + 4 * source_step), 1);
      });
      y[0] = _mm256_unpacklo_ps(x[0], x[1]), y[1] = _mm256_unpackhi_ps(x[0], x[1]);
      y[2] = _mm256_unpacklo_ps(x[2], x[3]), y[3] = _mm256_unpackhi_ps(x[2], x[3]);
      float* column = to + 4 * half * target_step;
      unroll<2>([&](int i) __attribute__((always_inline)) {
        _mm256_storeu_ps(column + 2 * i * target_step, _mm256_shuffle_ps(y[i], y[i + 2], 0x44));
        _mm256_storeu_ps(column + (2 * i + 1) * target_step, _mm256_shuffle_ps(y[i], y[i + 2], 0xEE));
      });
    });
  };
  transpose_by_squares<8>(source, source_step, target, target_step, across, along, square);
}

}  // namespace bittrue::BITTRUE_ISA

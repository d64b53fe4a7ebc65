// Products with weights of 4 or 8 bits in blocks, for files of an instruction set. BITTRUE_ISA is their namespace: each
// set must have its own copy, as each is compiled with other flags.
#pragma once

#include <algorithm>
#include <cstring>

#include "isa/cores.h"
#include "isa/tools.h"

namespace bittrue::BITTRUE_ISA {

// `Set` has vectors of kLanes binary32 numbers, Reals, and says how eight bytes of a row meet eight numbers of each of
// kLanes columns: `dot(numbers, from)` as Reals, numbers being `numbers_4(low_and_high)` or `numbers_8(first, second)`.
// Its `half_bytes(from, high)` are kLanes numbers of 4 bits as Reals. Tiles have at most kTileRows rows (kTileRowsOfBytes
// with numbers of 8 bits), single rows kHeld vectors of sums.
template <class Set>
struct BlockTiles {
  using Reals = typename Set::Reals;
  static constexpr int64_t kLanes = Set::kLanes, kColumns = 16;

  static Reals load(const float* from) {
    Reals value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  static void store(float* to, Reals value) { std::memcpy(to, &value, sizeof(value)); }

  template <int kRows, bool kBytes>
  __attribute__((noinline)) static void tile(const BlockRows& rows, int64_t first, int64_t column,
                                             const uint8_t* numbers, const float* scales) {
    Reals sums[kRows][4];
    const int8_t* from[kRows];
    const float* row_scales[kRows];
    float* to = rows.sums + first * 4 * kColumns + column;
    unroll<kRows>([&](int r) __attribute__((always_inline)) {
      from[r] = rows.rows + (first + r) * rows.row_step;
      row_scales[r] = rows.scales + (first + r) * rows.scale_step;
      unroll<4>([&](int j) __attribute__((always_inline)) { sums[r][j] = load(to + (r * 4 + j) * kColumns); });
    });
    const uint8_t* at = numbers + 4 * column;
    for (int64_t t = 0; t < rows.steps; ++t, at += kBytes ? 512 : 256) {
      unroll<2>([&](int side) __attribute__((always_inline)) {
        const int64_t block = rows.blocks[2 * t + side];
        const Reals column_scales = load(scales + block * kColumns + column);
        Reals scale[kRows];
        unroll<kRows>([&](int r) __attribute__((always_inline)) {
          scale[r] = Set::broadcast(row_scales[r][block]) * column_scales;
        });
        unroll<2>([&](int i) __attribute__((always_inline)) {
          const int j = 2 * side + i;
          typename Set::Numbers four;
          if constexpr (kBytes) {
            four = Set::numbers_8(at + 128 * j, at + 128 * j + 64);
          } else {
            four = Set::numbers_4(at + 64 * j);
          }
          unroll<kRows>([&](int r) __attribute__((always_inline)) {
            const Reals dot = Set::template dot<kBytes>(four, from[r] + 32 * t + 8 * j);
            sums[r][j] = Set::multiply_add(dot, scale[r], sums[r][j]);
          });
        });
      });
    }
    unroll<kRows>([&](int r) __attribute__((always_inline)) {
      unroll<4>([&](int j) __attribute__((always_inline)) { store(to + (r * 4 + j) * kColumns, sums[r][j]); });
    });
  }

  // All rows, in tiles of `kRows`; the last ones by smaller tiles.
  template <int kRows, bool kBytes>
  static void tiles(const BlockRows& rows, int64_t first, int64_t column, const uint8_t* numbers, const float* scales) {
    for (; first + kRows <= rows.count; first += kRows) tile<kRows, kBytes>(rows, first, column, numbers, scales);
    if constexpr (kRows > 1) tiles<kRows / 2, kBytes>(rows, first, column, numbers, scales);
  }

  template <bool kBytes>
  static void run(const BlockRows& rows, const uint8_t* numbers, const float* scales) {
    for (int64_t column = 0; column < kColumns; column += kLanes) {
      tiles<kBytes ? Set::kTileRowsOfBytes : Set::kTileRows, kBytes>(rows, 0, column, numbers, scales);
    }
  }

  static Reals number(const uint8_t* from, bool high, Reals scale, Reals point) {
    return (Set::half_bytes(from, high) - point) * scale;
  }

  // kHeld of the 16 sums of each column, beginning with `first`.
  static void row_part(const float* row, int64_t terms, int64_t length, int64_t column, int64_t first,
                       const uint8_t* numbers, const float* scales, const float* points, float* sums) {
    Reals held[Set::kHeld];
    unroll<Set::kHeld>([&](int i)
                           __attribute__((always_inline)) { held[i] = load(sums + (first + i) * kColumns + column); });
    for (int64_t k = 0; k < terms; k += length, scales += kColumns, points += kColumns) {
      const Reals scale = load(scales + column), point = load(points + column);
      const int64_t end = std::min(k + length, terms);
      int64_t at = k + first;
      for (; at + Set::kHeld <= end; at += 16) {
        const uint8_t* from = numbers + at / 2 * kColumns + column;
        unroll<Set::kHeld>([&](int i) __attribute__((always_inline)) {
          const Reals w = number(from + i / 2 * kColumns, i % 2 != 0, scale, point);
          held[i] = Set::multiply_add(Set::broadcast(row[at + i]), w, held[i]);
        });
      }
      if (at < end) {
        unroll<Set::kHeld>([&](int i) __attribute__((always_inline)) {
          if (at + i < end) {
            const Reals w = number(numbers + (at + i) / 2 * kColumns + column, i % 2 != 0, scale, point);
            held[i] = Set::multiply_add(Set::broadcast(row[at + i]), w, held[i]);
          }
        });
      }
    }
    unroll<Set::kHeld>([&](int i)
                           __attribute__((always_inline)) { store(sums + (first + i) * kColumns + column, held[i]); });
  }

  static void run_row(const float* row, int64_t terms, int64_t length, const uint8_t* numbers, const float* scales,
                      const float* points, float* sums) {
    for (int64_t column = 0; column < kColumns; column += kLanes) {
      for (int64_t first = 0; first < 16; first += Set::kHeld) {
        row_part(row, terms, length, column, first, numbers, scales, points, sums);
      }
    }
  }

  static void unpack(int64_t terms, const uint8_t* numbers, const float* scales, const float* points, float* out) {
    for (int64_t column = 0; column < kColumns; column += kLanes) {
      const Reals scale = load(scales + column), point = load(points + column);
      for (int64_t k = 0; k < terms; ++k) {
        store(out + k * kColumns + column, number(numbers + k / 2 * kColumns + column, k % 2 != 0, scale, point));
      }
    }
  }

  template <int kCount>
  static Reals sum_of_halves(const Reals* lanes) {
    Reals sums[kCount];
    unroll<kCount>([&](int i) __attribute__((always_inline)) { sums[i] = lanes[i]; });
    for (int left = kCount / 2; left > 0; left /= 2) {
      for (int i = 0; i < left; ++i) sums[i] = sums[i] + sums[i + left];
    }
    return sums[0];
  }

  template <bool kFours, int kCount>
  static void fold_lanes(const float* const* lanes, float* out) {
    for (int64_t column = 0; column < kColumns; column += kLanes) {
      Reals sums[kCount];
      unroll<kCount>([&](int i) __attribute__((always_inline)) { sums[i] = load(lanes[i] + column); });
      if constexpr (kFours) {
        unroll<kCount / 4>([&](int i) __attribute__((always_inline)) {
          sums[i] = ((sums[4 * i] + sums[4 * i + 1]) + sums[4 * i + 2]) + sums[4 * i + 3];
        });
      }
      store(out + column, sum_of_halves<kFours ? kCount / 4 : kCount>(sums));
    }
  }

  template <bool kFours>
  static void fold(const float* const* lanes, int count, float* out) {
    count == 8 ? fold_lanes<kFours, 8>(lanes, out) : fold_lanes<kFours, 16>(lanes, out);
  }

  static constexpr BlockProduct product() { return {fold<true>, fold<false>, run<false>, run<true>, run_row, unpack}; }
};

}  // namespace bittrue::BITTRUE_ISA

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

  // One number of four to sixteen lanes, `slot_step` from one slot to the next.
  static Reals fold(const Reals* lanes, int64_t slot_step, int count, bool crossed, bool by_fours) {
    const int second = crossed ? 2 : 1, third = crossed ? 1 : 2;
    const Reals *a = lanes, *b = a + slot_step, *c = b + slot_step, *d = c + slot_step;
    if (by_fours) {
      const auto four = [&](const Reals* from) { return ((from[0] + from[second]) + from[third]) + from[3]; };
      return count == 8 ? four(a) + four(b) : (four(a) + four(c)) + (four(b) + four(d));
    }
    const auto both = [&](int i) { return count == 8 ? a[i] + b[i] : (a[i] + c[i]) + (b[i] + d[i]); };
    return (both(0) + both(third)) + (both(second) + both(3));
  }

  // Of columns `column` and on, the first `by_fours` of all 16 by fours, the others by halves.
  static Reals fold_columns(const Reals* lanes, int64_t slot_step, int count, bool crossed, int64_t by_fours,
                            int64_t column) {
    if (by_fours <= column) return fold(lanes, slot_step, count, crossed, false);
    const Reals fours = fold(lanes, slot_step, count, crossed, true);
    if (by_fours >= column + kLanes) return fours;
    Reals halves = fold(lanes, slot_step, count, crossed, false);
    for (int64_t n = 0; n < by_fours - column; ++n) halves[n] = fours[n];
    return halves;
  }

  // With kPoints `moved` are zero points, which `lane_sums` of the rows multiply.
  template <int kRows, bool kBytes, bool kPoints = false>
  __attribute__((noinline)) static bool tile(const BlockRows& rows, int64_t first, int64_t column,
                                             const uint8_t* numbers, const float* scales, const float* moved) {
    Reals kept[BlockPart::kSlots][kRows][4], last[kRows];
    const int8_t* from[kRows];
    const float *row_scales[kRows], *row_sums[kRows];
    unroll<kRows>([&](int r) __attribute__((always_inline)) {
      from[r] = rows.rows + (first + r) * rows.row_step;
      row_scales[r] = rows.scales + (first + r) * rows.blocks;
      row_sums[r] = rows.row_sums + (first + r) * rows.blocks;
      last[r] = Reals{};
    });
    const uint8_t* at = numbers + 4 * column;
    int64_t t = 0;
    for (const BlockPart* part = rows.parts; part != rows.parts + rows.part_count; ++part) {
      Reals sums[kRows][4];
      const int begin = std::max(0, part->from);
      unroll<kRows>([&](int r) __attribute__((always_inline)) {
        unroll<4>([&](int j)
                      __attribute__((always_inline)) { sums[r][j] = part->from < 0 ? Reals{} : kept[begin][r][j]; });
      });
      for (const int64_t end = t + part->steps; t < end; ++t, at += kBytes ? 512 : 256) {
        unroll<2>([&](int side) __attribute__((always_inline)) {
          const int64_t block = rows.step_blocks[2 * t + side];
          const Reals column_scales = load(scales + block * kColumns + column);
          Reals points = {};
          if constexpr (kPoints) points = load(moved + block * kColumns + column);
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
              Reals dot = Set::template dot<kBytes>(four, from[r] + 32 * t + 8 * j);
              if constexpr (kPoints) dot = dot - Set::broadcast(rows.lane_sums[4 * t + j]) * points;
              sums[r][j] = Set::multiply_add(dot, scale[r], sums[r][j]);
            });
          });
        });
      }
      const bool add = part->then != BlockPart::Then::keep, spare = part->then == BlockPart::Then::add_with_spare;
      unroll<kRows>([&](int r) __attribute__((always_inline)) {
        unroll<4>([&](int j) __attribute__((always_inline)) {
          Reals value = sums[r][j];
          if (spare) value = kept[BlockPart::kSpare][r][j] + value;
          kept[part->to][r][j] = add ? kept[part->to][r][j] + value : value;
        });
      });
    }
    for (int64_t b = 0; b < rows.blocks && !kPoints; ++b) {
      const Reals weights = load(moved + b * kColumns + column);
      unroll<kRows>([&](int r) __attribute__((always_inline)) {
        last[r] = Set::multiply_add(Set::broadcast(row_sums[r][b]), weights, last[r]);
      });
    }
    Reals odd = {};
    for (int64_t r = 0; r < kRows; ++r) {
      const int64_t by_fours = first + r < rows.by_halves ? 0 : rows.by_fours;
      Reals value = fold_columns(kept[0][r], kRows * 4, rows.lanes, rows.crossed, by_fours, column);
      if (rows.bias != nullptr) value = value + load(rows.bias + column);
      if constexpr (!kPoints) value = value + last[r];
      odd = odd + (value - value);  // 0, or NaN for ever
      float* out = rows.out + (first + r) * rows.out_step + column;
      if (column + kLanes <= rows.used) {
        store(out, value);
      } else {
        std::memcpy(out, &value, static_cast<size_t>(rows.used - column) * sizeof(float));
      }
    }
    bool finite = true;
    for (int64_t n = 0; n < kLanes; ++n) finite &= odd[n] == 0.0f;
    return finite;
  }

  // All rows, in tiles of `kRows`; the last ones by smaller tiles.
  template <int kRows, bool kBytes>
  static bool tiles(const BlockRows& rows, int64_t first, int64_t column, const uint8_t* numbers, const float* scales,
                    const float* moved) {
    bool finite = true;
    for (; first + kRows <= rows.count; first += kRows) {
      finite &= tile<kRows, kBytes>(rows, first, column, numbers, scales, moved);
    }
    if constexpr (kRows > 1) finite &= tiles<kRows / 2, kBytes>(rows, first, column, numbers, scales, moved);
    return finite;
  }

  template <bool kBytes>
  static bool run(const BlockRows& rows, const uint8_t* numbers, const float* scales, const float* moved) {
    bool finite = true;
    for (int64_t column = 0; column < rows.used; column += kLanes) {
      if constexpr (!kBytes) {
        if (rows.lane_sums != nullptr) {
          finite &= tile<1, false, true>(rows, 0, column, numbers, scales, moved);
          continue;
        }
      }
      finite &= tiles<kBytes ? Set::kTileRowsOfBytes : Set::kTileRows, kBytes>(rows, 0, column, numbers, scales, moved);
    }
    return finite;
  }

  static Reals number(const uint8_t* from, bool high, Reals scale, Reals point) {
    return (Set::half_bytes(from, high) - point) * scale;
  }

  // kHeld of the kSums sums of each column, beginning with `first`.
  template <int kSums, int kHeld>
  static void row_part(const float* row, int64_t terms, int64_t length, int64_t column, int64_t first,
                       const uint8_t* numbers, const float* scales, const float* points, float* sums) {
    Reals held[kHeld];
    unroll<kHeld>([&](int i)
                      __attribute__((always_inline)) { held[i] = load(sums + (first + i) * kColumns + column); });
    for (int64_t k = 0; k < terms; k += length, scales += kColumns, points += kColumns) {
      const Reals scale = load(scales + column), point = load(points + column);
      const int64_t end = std::min(k + length, terms);
      int64_t at = k + first;
      for (; at + kHeld <= end; at += kSums) {
        const uint8_t* from = numbers + at / 2 * kColumns + column;
        unroll<kHeld>([&](int i) __attribute__((always_inline)) {
          const Reals w = number(from + i / 2 * kColumns, i % 2 != 0, scale, point);
          held[i] = Set::multiply_add(Set::broadcast(row[at + i]), w, held[i]);
        });
      }
      if (at < end) {
        unroll<kHeld>([&](int i) __attribute__((always_inline)) {
          if (at + i < end) {
            const Reals w = number(numbers + (at + i) / 2 * kColumns + column, i % 2 != 0, scale, point);
            held[i] = Set::multiply_add(Set::broadcast(row[at + i]), w, held[i]);
          }
        });
      }
    }
    unroll<kHeld>([&](int i)
                      __attribute__((always_inline)) { store(sums + (first + i) * kColumns + column, held[i]); });
  }

  template <int kSums>
  static void row_parts(const float* row, int64_t terms, int64_t length, const uint8_t* numbers, const float* scales,
                        const float* points, float* sums) {
    constexpr int kHeld = std::min(kSums, Set::kHeld);
    for (int64_t column = 0; column < kColumns; column += kLanes) {
      for (int64_t first = 0; first < kSums; first += kHeld) {
        row_part<kSums, kHeld>(row, terms, length, column, first, numbers, scales, points, sums);
      }
    }
  }

  static void run_row(const float* row, int64_t terms, int64_t length, int lanes, const uint8_t* numbers,
                      const float* scales, const float* points, float* sums) {
    (lanes == 16 ? row_parts<16> : row_parts<8>)(row, terms, length, numbers, scales, points, sums);
  }

  static void unpack(int64_t terms, const uint8_t* numbers, const float* scales, const float* points, float* out) {
    for (int64_t column = 0; column < kColumns; column += kLanes) {
      const Reals scale = load(scales + column), point = load(points + column);
      for (int64_t k = 0; k < terms; ++k) {
        store(out + k * kColumns + column, number(numbers + k / 2 * kColumns + column, k % 2 != 0, scale, point));
      }
    }
  }

  static void fold_all(const float* lanes, int count, int64_t by_fours, float* out) {
    for (int64_t column = 0; column < kColumns; column += kLanes) {
      Reals own[16] = {};
      for (int64_t i = 0; i < count; ++i) own[i] = load(lanes + i * kColumns + column);
      Reals value = fold_columns(own, 4, count, false, by_fours, column);
      if (count == 8 && by_fours < column + kLanes) {
        const Reals halves = fold(own, 4, count, true, false);
        for (int64_t n = std::max<int64_t>(0, by_fours - column); n < kLanes; ++n) value[n] = halves[n];
      }
      store(out + column, value);
    }
  }

  static constexpr BlockProduct product() { return {run<false>, run<true>, fold_all, run_row, unpack}; }
};

}  // namespace bittrue::BITTRUE_ISA

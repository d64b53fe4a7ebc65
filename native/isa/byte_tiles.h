// Sums of products of unsigned and signed bytes, for files of an instruction set. BITTRUE_ISA is their namespace: each set
// must have its own copy, as each is compiled with other flags.
#pragma once

#include <cstring>

#include "isa/cores.h"
#include "isa/tools.h"

namespace bittrue::BITTRUE_ISA {

// `Bytes` has a Vector of 32-bit sums, kLanes of them, and says how four bytes of a row, `row(from)`, and four bytes of
// each of kLanes columns, `columns(from)`, are multiplied: `add(sum, row, columns)`.
template <class Bytes>
struct ByteTiles {
  using Vector = typename Bytes::Vector;

  template <int kRows, int kVectors>
  static void tile(const ByteRows& rows, int64_t first, const int8_t* panel) {
    Vector sums[kRows][kVectors];
    unroll<kRows>([&](int r) __attribute__((always_inline)) {
      unroll<kVectors>([&](int v) __attribute__((always_inline)) { sums[r][v] = Vector{}; });
    });
    const uint8_t* from[kRows];
    unroll<kRows>([&](int r) __attribute__((always_inline)) { from[r] = rows.rows + (first + r) * rows.row_step; });
    for (int64_t k = 0; k < rows.depth; k += 4, panel += 4 * Bytes::kLanes * kVectors) {
      typename Bytes::Columns columns[kVectors];
      unroll<kVectors>(
          [&](int v) __attribute__((always_inline)) { columns[v] = Bytes::columns(panel + 4 * Bytes::kLanes * v); });
      unroll<kRows>([&](int r) __attribute__((always_inline)) {
        const typename Bytes::Row row = Bytes::row(from[r] + k);
        unroll<kVectors>([&](int v)
                             __attribute__((always_inline)) { sums[r][v] = Bytes::add(sums[r][v], row, columns[v]); });
      });
    }
    unroll<kRows>([&](int r) __attribute__((always_inline)) {
      unroll<kVectors>([&](int v) __attribute__((always_inline)) {
        std::memcpy(rows.sums + (first + r) * rows.stride + Bytes::kLanes * v, &sums[r][v], sizeof(Vector));
      });
    });
  }

  // All rows, in tiles of `kRows`; the last ones by smaller tiles.
  template <int kRows, int kVectors>
  static void tiles(const ByteRows& rows, int64_t first, const int8_t* panel) {
    for (; first + kRows <= rows.count; first += kRows) tile<kRows, kVectors>(rows, first, panel);
    if constexpr (kRows > 1) tiles<kRows / 2, kVectors>(rows, first, panel);
  }

  static void run(const ByteRows& rows, const int8_t* panel, int64_t width) {
    switch (width / Bytes::kLanes) {
      case 1: return tiles<Bytes::kTileRows[0], 1>(rows, 0, panel);
      case 2: return tiles<Bytes::kTileRows[1], 2>(rows, 0, panel);
      case 3: return tiles<Bytes::kTileRows[2], 3>(rows, 0, panel);
      default: return tiles<Bytes::kTileRows[3], 4>(rows, 0, panel);
    }
  }

  // `vectors`: of a panel, at most 4.
  static constexpr ByteProduct product(int64_t vectors = 4) { return {Bytes::kLanes, vectors, run, nullptr}; }
  static constexpr PairProduct pair_product() { return {{Bytes::kLanes, 4, run, nullptr}}; }
};

}  // namespace bittrue::BITTRUE_ISA

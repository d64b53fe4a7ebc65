// Matrix product: tiles of 6 rows (5 for pairs) by 16 columns with the sums in registers, requantized while they are in the cache.
//
// AVX2 has no exact 8-bit product (vpmaddubsw saturates: 2 * 255 * 127 > 32767), so both factors are widened to 16 bits
// and vpmaddwd adds pairs: |2 * 255 * 128| < 2^31, and vpaddd adds modulo 2^32 as the contract says. Weights are widened
// as they are loaded; rows are widened once for all panels into a buffer on the stack. With AVX-VNNI, vpdpbusd adds four
// 8-bit products at once and rows are read where they are; so they are for pairs that are to saturate, or that cannot.
#include <algorithm>
#include <cstring>

#include "isa/avx2/cores.h"
#include "isa/avx2/requantize.h"
#include "isa/avx2/vectors.h"
#include "isa/portable/turned_weights.h"

namespace bittrue::BITTRUE_ISA {
namespace {

constexpr int kMostRows = 6, kColumns = 16;
constexpr int64_t kWidened = 2048;  // bytes of depth that are widened, and summed, at once
constexpr int64_t kTogether = 32;   // panels whose sums wait for the next stretch of a deeper product

// The sums of one tile on their way from the multiply-adds to the requantization.
struct alignas(32) Tile {
  int32_t sums[kMostRows][kColumns];
};

// Rows widened to 16 bits.
template <bool in_place>
struct alignas(32) WideRows {
  // Rows begin in different sets of the first cache.
  static constexpr int64_t kStride = kWidened + 352;
  int16_t values[kMostRows][kStride];
};
template <>
struct WideRows<true> {};

// Four products of every sum, as this set has them without widening.
inline __m256i add_four(__m256i sum, __m256i x, __m256i w) {
#if defined(__AVXVNNI__)
  return _mm256_dpbusd_avx_epi32(sum, x, w);
#else
  return add_pairs(sum, x, w);
#endif
}

// `in_place`: rows are read where they are, and add_four adds their products.
template <bool in_place>
class VectorMatmul final : public Matmul {
#if defined(__AVXVNNI__)
  static constexpr int kRows = kMostRows, kLanedSums = 8;
#else
  // Pairs need one register for ones, and one for what is between both multiplications.
  static constexpr int kRows = in_place ? 5 : kMostRows, kLanedSums = in_place ? 6 : 8;
#endif
  static constexpr int kBytesOfDepth = in_place ? 4 : 2;  // bytes of depth that one multiply-add takes
  static constexpr int64_t kDepthStretch = in_place ? INT64_MAX : kWidened;

 public:
  VectorMatmul(const MatmulSpec& spec, const int64_t* byte_columns)
      : columns_(spec.columns),
        segments_(spec.segments),
        depth_(spec.depth),
        panels_((spec.columns + kColumns - 1) / kColumns),
        row_terms_(spec.row_terms),
        sums_(spec.sums),
        narrow_(spec.columns - (panels_ - 1) * kColumns <= 8),
        weights_(panels_ * kColumns * spec.segments * spec.depth),
        bias_(panels_ * kColumns),
        requantizer_(requantize_of(spec), Choice(requantize_of(spec)), byte_columns, panels_) {
    const int64_t total = segments_ * depth_;
    for (int64_t panel = 0; panel < panels_; ++panel) {
      int8_t* packed = weights_.data() + panel * kColumns * total;
      const int width = width_of(panel);
      for (int i = 0; i < width; ++i) {
        // A narrow panel has one vector, whose halves take the places of the lower halves of both.
        const int accumulator = width == kColumns ? i : (i & 3) | ((i & 4) << 1);
        const int64_t column = panel * kColumns + accumulator_of_byte(accumulator);
        if (column >= columns_) continue;
        bias_.data()[panel * kColumns + accumulator] =
            static_cast<int32_t>(static_cast<uint32_t>(spec.bias[column]) + requantizer_.offset());
        const int8_t* weights = spec.weights + column * total;
        for (int64_t k = 0; k < total; k += kBytesOfDepth) {
          std::memcpy(packed + k * width + i * kBytesOfDepth, weights + k, kBytesOfDepth);
        }
      }
    }
  }

  int64_t panels() const override { return panels_; }
  int64_t first_column(int64_t panel) const override { return panel < panels_ ? panel * kColumns : columns_; }
  int64_t tile_rows() const override { return kRows; }
  bool takes_grids() const override { return false; }

  void run(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const override {
    const RoundingMode mode(requantizer_.form());
    with_form(requantizer_.form(), [&](auto form) { run_tiles<form.value>(rows, first_panel, last_panel); });
  }

 private:
  static const rules::Requantize& requantize_of(const MatmulSpec& spec) {
    return spec.sums ? portable::unused_requantize() : spec.requantize;
  }

  // Columns 4 to 7 of a tile lie behind columns 8 to 11, see accumulator_of_byte.
  static void store_sums(const Tile& tile, int count, uint8_t* out, int64_t out_stride, int64_t columns) {
    for (int r = 0; r < count; ++r, out += out_stride) {
      alignas(32) int32_t row[kColumns];
      for (int i = 0; i < kColumns; i += 4) store16(row + i, load16(tile.sums[r] + accumulator_of_byte(i)));
      if (columns >= kColumns) {
        std::memcpy(out, row, sizeof row);
      } else {
        std::memcpy(out, row, static_cast<size_t>(columns) * 4);
      }
    }
  }

  int width_of(int64_t panel) const { return narrow_ && panel == panels_ - 1 ? kColumns / 2 : kColumns; }

  template <Form form>
  __attribute__((noinline)) void run_tiles(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const {
    const Store store = requantizer_.store();
    Tile tiles[kTogether];
    WideRows<in_place> wide;
    const int64_t total = segments_ * depth_, stretch = std::min(total, kDepthStretch);
    const bool whole = stretch == total;
    const int64_t together = whole ? 1 : kTogether;
    for (int64_t first = 0; first < rows.count; first += kRows) {
      const int count = static_cast<int>(std::min<int64_t>(kRows, rows.count - first));
      if (whole) widen_rows(rows, first, count, 0, total, wide);
      for (int64_t panel = first_panel; panel < last_panel; panel += together) {
        const int64_t panels = std::min(together, last_panel - panel);
        // Once even where nothing is summed but the bias.
        int64_t begin = 0, end = 0;
        do {
          begin = end;
          end = std::min(total, begin + stretch);
          if (!whole) widen_rows(rows, first, count, begin, end, wide);
          for (int64_t i = 0; i < panels; ++i) {
            multiply_any(rows, first, count, wide, panel + i, begin, end, tiles[i]);
          }
        } while (end < total);
        for (int64_t i = 0; i < panels; ++i) finish<form>(rows, first, count, panel + i, store, tiles[i]);
      }
    }
  }

  template <Form form>
  __attribute__((always_inline)) inline void finish(const MatmulRows& rows, int64_t first, int count, int64_t panel,
                                                    const Store& store, const Tile& tile) const {
    const int64_t columns = columns_ - panel * kColumns;
    uint8_t* out = rows.out + first * rows.out_stride + panel * kColumns * (sums_ ? 4 : 1);
    if (sums_) {
      store_sums(tile, count, out, rows.out_stride, columns);
    } else {
      requantize_rows<form>(requantizer_, requantizer_.group(panel), store, tile.sums[0], count, out, rows.out_stride,
                            columns);
    }
  }

  static void widen(const uint8_t* from, int64_t count, int16_t* to) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) store32(to + i, _mm256_cvtepu8_epi16(load16(from + i)));
    for (; i + 4 <= count; i += 4) {
      int32_t four;
      std::memcpy(&four, from + i, sizeof four);
      store8(to + i, _mm_cvtepu8_epi16(_mm_cvtsi32_si128(four)));
    }
  }

  // Bytes [begin, end) of `count` rows, their segments one after the other.
  void widen_rows(const MatmulRows& rows, int64_t first, int count, int64_t begin, int64_t end,
                  WideRows<in_place>& wide) const {
    if constexpr (!in_place) {
      for (int64_t at = begin; at < end;) {
        const int64_t segment = at / depth_, inside = at % depth_;
        const int64_t size = std::min(depth_ - inside, end - at);
        for (int r = 0; r < count; ++r) {
          widen(rows.rows[segment * rows.capacity + first + r] + inside, size, wide.values[r] + (at - begin));
        }
        at += size;
      }
    }
  }

  void multiply_any(const MatmulRows& rows, int64_t first, int count, const WideRows<in_place>& wide, int64_t panel,
                    int64_t begin, int64_t end, Tile& tile) const {
    const auto with = [&](auto vectors) {
      switch (count) {
        case 1: multiply<1, vectors.value>(rows, first, wide, panel, begin, end, tile); break;
        case 2: multiply<2, vectors.value>(rows, first, wide, panel, begin, end, tile); break;
        case 3: multiply<3, vectors.value>(rows, first, wide, panel, begin, end, tile); break;
        case 4: multiply<4, vectors.value>(rows, first, wide, panel, begin, end, tile); break;
        case 5: multiply<5, vectors.value>(rows, first, wide, panel, begin, end, tile); break;
        default: multiply<kRows, vectors.value>(rows, first, wide, panel, begin, end, tile); break;
      }
    };
    if (width_of(panel) == kColumns) {
      with(std::integral_constant<int, 2>{});
    } else {
      with(std::integral_constant<int, 1>{});
    }
  }

  // Adds the products of depth [begin, end) to the tile, or to the bias when begin is 0.
  template <int count, int vectors>
  __attribute__((noinline)) void multiply(const MatmulRows& rows, int64_t first, const WideRows<in_place>& wide,
                                          int64_t panel, int64_t begin, int64_t end, Tile& tile) const {
    constexpr int width = 8 * vectors;
    // Few sums would wait for one another: several depths are then summed side by side.
    constexpr int lanes = count * vectors >= kLanedSums ? 1 : count * vectors >= 4 ? 2 : 4;
    __m256i sums[lanes][count][vectors];
    unroll<count>([&](int r) __attribute__((always_inline)) {
      const __m256i term =
          row_terms_ && begin == 0 ? _mm256_set1_epi32(rows.row_terms[first + r]) : _mm256_setzero_si256();
      const int32_t* start = begin == 0 ? bias_.data() + panel * kColumns : tile.sums[r];
      unroll<vectors>([&](int v) __attribute__((always_inline)) {
        const __m256i value = vectors == 2 ? load32(start + 8 * v) : _mm256_set_m128i(load16(start + 8), load16(start));
        sums[0][r][v] = _mm256_add_epi32(value, term);
        unroll<lanes - 1>([&](int lane)
                              __attribute__((always_inline)) { sums[lane + 1][r][v] = _mm256_setzero_si256(); });
      });
    });

    const int8_t* weights = weights_.data() + panel * kColumns * segments_ * depth_ + begin * width;
    if constexpr (in_place) {
      (void)wide;
      (void)end;
      for (int64_t segment = 0; segment < segments_; ++segment) {
        const uint8_t* row[count];
        unroll<count>([&](int r)
                          __attribute__((always_inline)) { row[r] = rows.rows[segment * rows.capacity + first + r]; });
        const auto step = [&](int64_t k, int lane) __attribute__((always_inline)) {
          __m256i w[vectors];
          unroll<vectors>([&](int v) __attribute__((always_inline)) { w[v] = load32(weights + 32 * v); });
          weights += 32 * vectors;
          unroll<count>([&](int r) __attribute__((always_inline)) {
            const __m256i x = broadcast4(row[r] + k);
            unroll<vectors>(
                [&](int v) __attribute__((always_inline)) { sums[lane][r][v] = add_four(sums[lane][r][v], x, w[v]); });
          });
        };
        int64_t k = 0;
        for (; k + kBytesOfDepth * lanes <= depth_; k += kBytesOfDepth * lanes) {
          unroll<lanes>([&](int lane) __attribute__((always_inline)) { step(k + kBytesOfDepth * lane, lane); });
        }
        if constexpr (lanes > 1) {
          for (; k < depth_; k += kBytesOfDepth) step(k, 0);
        }
      }
    } else {
      const int16_t* row = wide.values[0];
      const auto step = [&](int lane) __attribute__((always_inline)) {
        __m256i w[vectors];
        unroll<vectors>([&](int v)
                            __attribute__((always_inline)) { w[v] = _mm256_cvtepi8_epi16(load16(weights + 16 * v)); });
        weights += 16 * vectors;
        unroll<count>([&](int r) __attribute__((always_inline)) {
          const __m256i x = broadcast4(row + r * WideRows<in_place>::kStride);
          unroll<vectors>([&](int v) __attribute__((always_inline)) {
            sums[lane][r][v] = _mm256_add_epi32(sums[lane][r][v], _mm256_madd_epi16(x, w[v]));
          });
        });
        row += kBytesOfDepth;
      };
      int64_t k = begin;
      for (; k + kBytesOfDepth * lanes <= end; k += kBytesOfDepth * lanes) unroll<lanes>(step);
      if constexpr (lanes > 2) {
        for (; k < end; k += kBytesOfDepth) step(0);
      }
    }
    unroll<count>([&](int r) __attribute__((always_inline)) {
      unroll<vectors>([&](int v) __attribute__((always_inline)) {
        __m256i sum = sums[0][r][v];
        unroll<lanes - 1>([&](int lane)
                              __attribute__((always_inline)) { sum = _mm256_add_epi32(sum, sums[lane + 1][r][v]); });
        if constexpr (vectors == 2) {
          store32(tile.sums[r] + 8 * v, sum);
        } else {
          store16(tile.sums[r], _mm256_castsi256_si128(sum));
          store16(tile.sums[r] + 8, _mm256_extracti128_si256(sum, 1));
          store16(tile.sums[r] + 4, _mm_setzero_si128());
          store16(tile.sums[r] + 12, _mm_setzero_si128());
        }
      });
    });
  }

  int64_t columns_, segments_, depth_, panels_;
  bool row_terms_;
  bool sums_;
  bool narrow_;                   // the last panel has at most 8 columns and is kept 8 wide
  AlignedArray<int8_t> weights_;  // [panel][group of depth][accumulator][byte of the group]
  AlignedArray<int32_t> bias_;    // [panel][accumulator], moved by the requantizer's offset
  Requantizer requantizer_;
};

#if !defined(__AVXVNNI__)
// Whether no sum of two neighbouring products leaves 16 bits: then pairs are exact, and sooner done than widened bytes.
bool pairs_fit(const MatmulSpec& spec) {
  constexpr int kMost = 32767 / 255;
  const int64_t count = spec.columns * spec.segments * spec.depth;
  int most = 0;
  for (int64_t i = 0; i < count; i += 2) {
    const int first{spec.weights[i]}, second{spec.weights[i + 1]};
    most = std::max({most, std::max(first, 0) + std::max(second, 0), std::max(-first, 0) + std::max(-second, 0)});
  }
  return most <= kMost;
}
#endif

}  // namespace

std::unique_ptr<Matmul> make_matmul(const MatmulSpec& spec) {
  if (spec.by_rows) return make_matmul(portable::ByColumns(spec).spec());
  const int64_t panels = (spec.columns + kColumns - 1) / kColumns;
  AlignedArray<int64_t> columns(panels * kColumns);
  for (int64_t i = 0; i < panels * kColumns; ++i) columns.data()[i] = i < spec.columns ? i : -1;
#if defined(__AVXVNNI__)
  return std::unique_ptr<Matmul>(spec.pairs ? nullptr : new VectorMatmul<true>(spec, columns.data()));
#else
  if (spec.pairs || pairs_fit(spec)) return std::unique_ptr<Matmul>(new VectorMatmul<true>(spec, columns.data()));
  return std::unique_ptr<Matmul>(new VectorMatmul<false>(spec, columns.data()));
#endif
}

}  // namespace bittrue::BITTRUE_ISA

// Matrix product: tiles of 6 rows (5 for pairs) by 16 columns with the sums in registers, requantized while they are in the cache.
//
// AVX2 has no exact 8-bit product: vpmaddubsw saturates where two products leave 16 bits. So each panel's weights are put
// into an order in which neighbours fit (paired_weights.h), and rows are copied in this order into a buffer on the
// stack. Of two steps of four bytes whose sums of pairs fit 16 bits even together, these are added up before vpmaddwd widens
// them. Where that takes too many slots, both factors are widened to 16 bits and vpmaddwd adds pairs: |2 * 255 * 128| <
// 2^31, and vpaddd adds modulo 2^32 as the contract says; weights are widened as they are loaded, rows once for all panels.
// With AVX-VNNI, vpdpbusd adds four 8-bit products at once and rows are read where they are; so they are for pairs that are
// to saturate, or that fit as they are. Without it, shallow products have a form of their own (magnitudes.h).
#include <algorithm>
#include <cstring>

#include "isa/avx2/cores.h"
#include "isa/avx2/paired_weights.h"
#include "isa/avx2/panels.h"
#include "isa/avx2/requantize.h"
#include "isa/avx2/vectors.h"
#include "isa/avx2/weight_blocks.h"
#if !defined(__AVXVNNI__)
#include "isa/avx2/magnitudes.h"
#include "isa/avx2/winograd.h"
#endif

namespace bittrue::BITTRUE_ISA {
namespace {

constexpr int kMostRows = 6, kColumns = PanelMatmul::kColumns;
constexpr int64_t kWidened = 2048;  // bytes of depth that are widened, and summed, at once
constexpr int64_t kTogether = 32;   // panels whose sums wait for the next stretch of a deeper product

// The sums of one tile on their way from the multiply-adds to the requantization.
struct alignas(32) Tile {
  int32_t sums[kMostRows][kColumns];
};

// How rows are read: where they are, or in copies, widened to 16 bits or in the order of a panel's pairs.
enum class Reading { in_place, widened, paired };

template <Reading reading>
struct Copies {};
template <>
struct alignas(32) Copies<Reading::widened> {
  // Rows begin in different sets of the first cache.
  static constexpr int64_t kStride = kWidened + 352;
  int16_t values[kMostRows][kStride];
};
template <>
struct alignas(32) Copies<Reading::paired> {
  static constexpr int64_t kStride = PairedWeights::kMostSlots + 352;
  uint8_t values[kMostRows][kStride];
};

// Four products of every sum, as this set has them without widening.
inline __m256i add_four(__m256i sum, __m256i x, __m256i w) {
#if defined(__AVXVNNI__)
  return _mm256_dpbusd_avx_epi32(sum, x, w);
#else
  return add_pairs(sum, x, w);
#endif
}

template <Reading reading>
class VectorMatmul final : public PanelMatmul {
  static constexpr bool widened = reading == Reading::widened, paired = reading == Reading::paired;
#if defined(__AVXVNNI__)
  static constexpr int kRows = kMostRows, kLanedSums = 8;
#else
  // Pairs need one register for ones, and one for what is between both multiplications.
  static constexpr int kRows = widened ? kMostRows : 5, kLanedSums = widened ? 8 : 6;
#endif
  static constexpr int kBytesOfDepth = widened ? 2 : 4;  // bytes of depth that one multiply-add takes
  static constexpr int64_t kDepthStretch = widened ? kWidened : INT64_MAX;

 public:
  // `pairs`: of Reading::paired.
  explicit VectorMatmul(const MatmulSpec& spec, PairedWeights pairs = {})
      : PanelMatmul(spec),
        segments_(spec.segments),
        depth_(spec.depth),
        weights_(paired ? 0 : kColumns * panels_ * spec.segments * spec.depth),
        pairs_(std::move(pairs)) {
    if constexpr (paired) return;
    for_blocks(spec, [&](int64_t panel, int64_t begin, int count, const WeightBlock& block) {
      const int width = width_of(panel);
      int8_t* to = weights_.data() + panel * kColumns * segments_ * depth_ + begin * width;
      for (int k = 0; k < count; k += kBytesOfDepth) {
        const __m128i* from = block.bytes + k;
        if constexpr (widened) {
          store_twos(from[0], from[1], width, to + k * width);
        } else {
          store_fours(from[0], from[1], from[2], from[3], width, to + k * width);
        }
      }
      return true;
    });
  }

  int64_t tile_rows() const override { return kRows; }

  void run(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const override {
    const RoundingMode mode(requantizer_.form());
    with_form(requantizer_.form(), [&](auto form) { run_tiles<form.value>(rows, first_panel, last_panel); });
  }

 private:
  static constexpr int64_t kWindow = PairedWeights::kWindow;

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

  const int8_t* weights_of(int64_t panel) const {
    return paired ? pairs_.panels[panel].weights.data() : weights_.data() + panel * kColumns * segments_ * depth_;
  }

  template <Form form>
  __attribute__((noinline)) void run_tiles(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const {
    const Store store = requantizer_.store();
    Tile tiles[kTogether];
    Copies<reading> copies;
    const int64_t total = segments_ * depth_, stretch = std::min(total, kDepthStretch);
    const bool whole = stretch == total;
    const int64_t together = whole ? 1 : kTogether;
    for (int64_t first = 0; first < rows.count; first += kRows) {
      const int count = static_cast<int>(std::min<int64_t>(kRows, rows.count - first));
      if (whole) widen_rows(rows, first, count, 0, total, copies);
      for (int64_t panel = first_panel; panel < last_panel; panel += together) {
        if constexpr (is_proven(form)) {
          if (whole && count == kRows && columns_ - panel * kColumns >= kColumns) {
            whole_tile<form>(rows, first, copies, panel, store);
            continue;
          }
        }
        const int64_t panels = std::min(together, last_panel - panel);
        // Once even where nothing is summed but the bias.
        int64_t begin = 0, end = 0;
        do {
          begin = end;
          end = std::min(total, begin + stretch);
          if (!whole) widen_rows(rows, first, count, begin, end, copies);
          for (int64_t i = 0; i < panels; ++i) {
            multiply_any(rows, first, count, copies, panel + i, begin, end, tiles[i]);
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
                  Copies<reading>& copies) const {
    if constexpr (widened) {
      for (int64_t at = begin; at < end;) {
        const int64_t segment = at / depth_, inside = at % depth_;
        const int64_t size = std::min(depth_ - inside, end - at);
        for (int r = 0; r < count; ++r) {
          widen(rows.rows[segment * rows.capacity + first + r] + inside, size, copies.values[r] + (at - begin));
        }
        at += size;
      }
    }
  }

  // Rows in the order of a panel's slots.
  template <int count>
  void order_rows(const MatmulRows& rows, int64_t first, int64_t panel, Copies<reading>& copies) const {
    const PairedPanel& pairs = pairs_.panels[panel];
    const uint8_t* order = pairs.order.data();
    uint8_t* to = copies.values[0];
    for (int64_t segment = 0; segment < segments_; ++segment, order += depth_, to += depth_) {
      const uint8_t* row[count];
      unroll<count>([&](int r)
                        __attribute__((always_inline)) { row[r] = rows.rows[segment * rows.capacity + first + r]; });
      int64_t k = 0;
      for (; k + 2 * kWindow <= depth_; k += 2 * kWindow) {
        const __m256i places = load32(order + k);
        unroll<count>([&](int r) __attribute__((always_inline)) {
          store32(to + r * Copies<reading>::kStride + k, _mm256_shuffle_epi8(load32(row[r] + k), places));
        });
      }
      // What is stored behind a segment is written over.
      for (; k < depth_; k += kWindow) {
        const __m128i places = load16(order + k);
        const int64_t begin = std::min(k, depth_ - kWindow);
        unroll<count>([&](int r) __attribute__((always_inline)) {
          store16(to + r * Copies<reading>::kStride + k, _mm_shuffle_epi8(load16(row[r] + begin), places));
        });
      }
    }
    const int32_t* rests = pairs.rests.data();
    for (int64_t i = 0; i < pairs.rest_count; i += 4, to += 4) {
      unroll<count>([&](int r) __attribute__((always_inline)) {
        const uint8_t* row = copies.values[r];
        uint32_t four = 0;
        for (int64_t j = i + 3; j >= i; --j) four = four << 8 | row[rests[j]];
        std::memcpy(to + r * Copies<reading>::kStride, &four, sizeof four);
      });
    }
  }

  void multiply_any(const MatmulRows& rows, int64_t first, int count, Copies<reading>& copies, int64_t panel,
                    int64_t begin, int64_t end, Tile& tile) const {
    const auto with = [&](auto vectors) {
      switch (count) {
        case 1: multiply<1, vectors.value>(rows, first, copies, panel, begin, end, tile); break;
        case 2: multiply<2, vectors.value>(rows, first, copies, panel, begin, end, tile); break;
        case 3: multiply<3, vectors.value>(rows, first, copies, panel, begin, end, tile); break;
        case 4: multiply<4, vectors.value>(rows, first, copies, panel, begin, end, tile); break;
        case 5: multiply<5, vectors.value>(rows, first, copies, panel, begin, end, tile); break;
        default: multiply<kRows, vectors.value>(rows, first, copies, panel, begin, end, tile); break;
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
  __attribute__((noinline)) void multiply(const MatmulRows& rows, int64_t first, Copies<reading>& copies, int64_t panel,
                                          int64_t begin, int64_t end, Tile& tile) const {
    __m256i sums[count][vectors];
    add_products<count, vectors>(rows, first, copies, panel, begin, end, &tile, sums);
    unroll<count>([&](int r) __attribute__((always_inline)) {
      unroll<vectors>([&](int v) __attribute__((always_inline)) {
        if constexpr (vectors == 2) {
          store32(tile.sums[r] + 8 * v, sums[r][v]);
        } else {
          store16(tile.sums[r], _mm256_castsi256_si128(sums[r][v]));
          store16(tile.sums[r] + 8, _mm256_extracti128_si256(sums[r][v], 1));
          store16(tile.sums[r] + 4, _mm_setzero_si128());
          store16(tile.sums[r] + 12, _mm_setzero_si128());
        }
      });
    });
  }

  // A tile that needs no looking at its edges goes from registers to bytes.
  template <Form form>
  __attribute__((noinline)) void whole_tile(const MatmulRows& rows, int64_t first, Copies<reading>& copies,
                                            int64_t panel, const Store& store) const {
    __m256i sums[kRows][2];
    add_products<kRows, 2>(rows, first, copies, panel, 0, segments_ * depth_, nullptr, sums);
    const Group& group = requantizer_.group(panel);
    uint8_t* out = rows.out + first * rows.out_stride + panel * kColumns;
    unroll<(kRows + 1) / 2>([&](int i) __attribute__((always_inline)) {
      const int other = std::min(2 * i + 1, kRows - 1);
      const __m256i words = requantize16<form>(sums[2 * i][0], sums[2 * i][1], group, store);
      const __m256i others = other == 2 * i ? words : requantize16<form>(sums[other][0], sums[other][1], group, store);
      const __m256i bytes = pack(words, others, store);
      store16(out + 2 * i * rows.out_stride, _mm256_castsi256_si128(bytes));
      if (other != 2 * i) store16(out + other * rows.out_stride, _mm256_extracti128_si256(bytes, 1));
    });
  }

  template <int count, int vectors>
  __attribute__((always_inline)) inline void add_products(const MatmulRows& rows, int64_t first,
                                                          Copies<reading>& copies, int64_t panel, int64_t begin,
                                                          int64_t end, const Tile* tile,
                                                          __m256i (&result)[count][vectors]) const {
    constexpr int width = 8 * vectors;
    // Few sums would wait for one another: several depths are then summed side by side.
    constexpr int lanes = paired || count * vectors >= kLanedSums ? 1 : count * vectors >= 4 ? 2 : 4;
    __m256i sums[lanes][count][vectors];
    unroll<count>([&](int r) __attribute__((always_inline)) {
      const __m256i term =
          row_terms_ && begin == 0 ? _mm256_set1_epi32(rows.row_terms[first + r]) : _mm256_setzero_si256();
      const int32_t* start = begin == 0 ? bias_.data() + panel * kColumns : tile->sums[r];
      unroll<vectors>([&](int v) __attribute__((always_inline)) {
        const __m256i value = vectors == 2 ? load32(start + 8 * v) : _mm256_set_m128i(load16(start + 8), load16(start));
        sums[0][r][v] = _mm256_add_epi32(value, term);
        unroll<lanes - 1>([&](int lane)
                              __attribute__((always_inline)) { sums[lane + 1][r][v] = _mm256_setzero_si256(); });
      });
    });

    const int8_t* weights = weights_of(panel) + begin * width;
    if constexpr (paired) {
      (void)end;
      order_rows<count>(rows, first, panel, copies);
      const PairedPanel& pairs = pairs_.panels[panel];
      const int32_t *step = pairs.steps.data(), *together_end = step + 2 * pairs.step_pairs;
      const int32_t* steps_end = step + pairs.step_count;
      const uint8_t* row = copies.values[0];
      const __m256i ones = _mm256_set1_epi16(1);
      const auto products = [&](int r, int64_t place, __m256i w) __attribute__((always_inline)) {
        return _mm256_maddubs_epi16(broadcast4(row + r * Copies<reading>::kStride + place), w);
      };
      for (; step < together_end; step += 2, weights += 64 * vectors) {
        int64_t one = step[0], other = step[1];
        unroll<vectors>([&](int v) __attribute__((always_inline)) {
          // Bytes are loaded once more for the second vector: kept, they take registers that sums need.
          asm("" : "+r"(one), "+r"(other));
          const __m256i w = load32(weights + 64 * v), others = load32(weights + 64 * v + 32);
          unroll<count>([&](int r) __attribute__((always_inline)) {
            const __m256i words = _mm256_add_epi16(products(r, one, w), products(r, other, others));
            sums[0][r][v] = _mm256_add_epi32(sums[0][r][v], _mm256_madd_epi16(words, ones));
          });
        });
      }
      for (; step < steps_end; ++step, weights += 32 * vectors) {
        const int64_t place = *step;
        __m256i w[vectors];
        unroll<vectors>([&](int v) __attribute__((always_inline)) { w[v] = load32(weights + 32 * v); });
        unroll<count>([&](int r) __attribute__((always_inline)) {
          unroll<vectors>([&](int v) __attribute__((always_inline)) {
            sums[0][r][v] = _mm256_add_epi32(sums[0][r][v], _mm256_madd_epi16(products(r, place, w[v]), ones));
          });
        });
      }
    } else if constexpr (!widened) {
      (void)end;
      (void)copies;
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
      const int16_t* row = copies.values[0];
      const auto step = [&](int lane) __attribute__((always_inline)) {
        __m256i w[vectors];
        unroll<vectors>([&](int v)
                            __attribute__((always_inline)) { w[v] = _mm256_cvtepi8_epi16(load16(weights + 16 * v)); });
        weights += 16 * vectors;
        unroll<count>([&](int r) __attribute__((always_inline)) {
          const __m256i x = broadcast4(row + r * Copies<reading>::kStride);
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
        result[r][v] = sums[0][r][v];
        unroll<lanes - 1>([&](int lane) __attribute__((always_inline)) {
          result[r][v] = _mm256_add_epi32(result[r][v], sums[lane + 1][r][v]);
        });
      });
    });
  }

  int64_t segments_, depth_;
  AlignedArray<int8_t> weights_;  // [panel][group of depth, or of slots][accumulator][byte of the group]
  PairedWeights pairs_;           // which have their own
};

}  // namespace

std::unique_ptr<Matmul> make_matmul(const MatmulSpec& spec) {
#if defined(__AVXVNNI__)
  return std::unique_ptr<Matmul>(spec.pairs ? nullptr : new VectorMatmul<Reading::in_place>(spec));
#else
  if (auto fewer = make_winograd(spec)) return fewer;
  if (auto shallow = make_magnitudes(spec)) return shallow;
  PairedWeights pairs = pair_weights(spec);
  // Widening takes four instructions where pairs take three, or two and a half, and others for what changes places.
  if (pairs.panels) return std::unique_ptr<Matmul>(new VectorMatmul<Reading::paired>(spec, std::move(pairs)));
  if (spec.pairs || pairs_fit(spec)) return std::unique_ptr<Matmul>(new VectorMatmul<Reading::in_place>(spec));
  return std::unique_ptr<Matmul>(new VectorMatmul<Reading::widened>(spec));
#endif
}

}  // namespace bittrue::BITTRUE_ISA

// Shallow matrix products by magnitudes and signs: tiles of 4 rows by 16 columns with the sums in registers. Those of a block
// of rows wait in the first-level cache until all are requantized at once: a tile's own requantization takes as long as its
// products, most of it waiting, and a processor sees little further ahead than one tile.
//
// vpmaddubsw adds two products of unsigned and signed bytes and saturates at 16 bits, which two neighbours may leave. Here the
// unsigned bytes are the magnitudes of the weights, at most 128, and the signed ones those of a row, moved by 128 and turned
// where the weight is negative: x ^ 0x80 is x - 128 and x ^ 0x7f is 127 - x. So every pair fits: it lies within
// 128 * (-128) * 2 and 128 * 127 * 2. What moving and turning add up to is constant, and in the bias:
//   w x = |w| (x - 128) + 128 w   and, of a negative one,   w x = |w| (127 - x) + 127 w.
// Four weights whose magnitudes are 256 in all fit even together: steps of four bytes of depth are paired such that two of them
// are added up as words, before vpmaddwd widens both. Rows are read where they are.
#include "isa/avx2/magnitudes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "isa/avx2/pairing.h"
#include "isa/avx2/panels.h"
#include "isa/avx2/requantize.h"
#include "isa/avx2/vectors.h"
#include "isa/portable/turned_weights.h"

namespace bittrue::BITTRUE_ISA {
namespace {

constexpr int kRows = 4, kColumns = PanelMatmul::kColumns;
constexpr int64_t kBlock = 64;      // rows whose sums wait
constexpr int kStep = 4;            // bytes of depth of every row that a step takes
constexpr int kMostTogether = 255;  // magnitudes that fit a word with any bytes, nearly: 256 do
// Deeper products have fewer instructions where bytes change places (matmul.cc), unless a panel is narrow: there is more around
// its products then, for each row what two rows need here.
constexpr int64_t kDeepest = 96, kDeepestNarrow = 128;

// The sums of a block: of a row, or, 8 columns wide, of two rows each.
struct alignas(64) Sums {
  int32_t values[kBlock * kColumns];
};

// Of every column and half of a step: the magnitudes that share a word.
using Steps = Pairing<2 * kColumns, kMostTogether>;

class Magnitudes final : public PanelMatmul {
 public:
  Magnitudes(const MatmulSpec& spec, const int64_t* byte_columns)
      : PanelMatmul(spec, byte_columns),
        segments_(spec.segments),
        depth_(spec.depth),
        steps_(spec.segments * spec.depth / kStep),
        weights_(panels_ * steps_ * kStep * 2 * kColumns),
        places_(panels_ * steps_),
        pairs_(panels_) {
    Steps pairing(steps_);
    for (int64_t panel = 0; panel < panels_; ++panel) {
      pack(spec, panel, pairing);
      for (int i = 0; i < width_of(panel); ++i) {
        const int64_t column = column_of(panel, i);
        if (column >= columns_) continue;
        const int8_t* weights = spec.weights + column * steps_ * kStep;
        uint32_t bias = static_cast<uint32_t>(spec.bias[column]) + requantizer_.offset();
        for (int64_t k = 0; k < steps_ * kStep; ++k) {
          bias += static_cast<uint32_t>(weights[k] * (weights[k] < 0 ? 127 : 128));
        }
        bias_.data()[panel * kColumns + i] = static_cast<int32_t>(bias);
      }
    }
  }

  // The column behind byte i of 16 that are requantized together. Vectors of a narrow panel hold 8 columns of one row, and
  // are requantized by two: those of two rows lie side by side by fours.
  static int64_t byte_column(int64_t columns, int64_t panel, int i) {
    const bool two_rows = width_of(columns, panel) < kColumns;
    const int64_t column = panel * kColumns + (two_rows ? (i & 3) | (i & 8) >> 1 : i);
    return column < columns ? column : -1;
  }

  int64_t tile_rows() const override { return kRows; }
  bool takes_grids() const override { return true; }

  void run(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const override {
    const RoundingMode mode(requantizer_.form());
    for (int64_t first = 0; first < rows.count; first += kBlock) {
      run_block(rows, first, std::min(kBlock, rows.count - first), first_panel, last_panel);
    }
  }

 private:
  // The column behind accumulator i.
  int64_t column_of(int64_t panel, int i) const {
    return panel * kColumns + (width_of(panel) == kColumns ? accumulator_of_byte(i) : i);
  }

  // Magnitudes and signs of a step, vector by vector: of one, or of two that belong together side by side.
  void pack(const MatmulSpec& spec, int64_t panel, Steps& pairing) {
    const int width = width_of(panel);
    const int8_t* from[kColumns] = {};
    for (int i = 0; i < width; ++i) {
      const int64_t column = column_of(panel, i);
      if (column < columns_) from[i] = spec.weights + column * steps_ * kStep;
    }
    for (int64_t s = 0; s < steps_; ++s) {
      uint8_t* loads = pairing.loads(s);
      std::memset(loads, 0, 2 * kColumns);
      for (int i = 0; i < width; ++i) {
        if (from[i] == nullptr) continue;
        const int8_t* w = from[i] + s * kStep;
        for (int half : {0, 1}) {
          const int load = std::abs(w[2 * half]) + std::abs(w[2 * half + 1]);
          loads[2 * i + half] = static_cast<uint8_t>(std::min(load, kMostTogether));
        }
      }
    }
    int32_t order[kDeepestNarrow / kStep];
    const int64_t pairs = pairing.arrange(steps_, order);
    for (int64_t s = 0; s < steps_; ++s) places_.data()[panel * steps_ + s] = order[s] * kStep;
    pairs_.data()[panel] = static_cast<int32_t>(pairs);
    uint8_t* to = weights_.data() + first_weight(panel);
    for (int64_t s = 0; s < steps_;) {
      const int together = s < 2 * pairs ? 2 : 1;
      for (int v = 0; v < width / 8; ++v) {
        for (int64_t t = s; t < s + together; ++t, to += 64) {
          for (int i = 0; i < 32; ++i) {
            const int8_t* column = from[8 * v + i / kStep];
            const int w = column == nullptr ? 0 : column[order[t] * kStep + i % kStep];
            to[i] = static_cast<uint8_t>(std::abs(w));
            to[32 + i] = w < 0 ? 0x7f : 0x80;
          }
        }
      }
      s += together;
    }
  }

  int64_t first_weight(int64_t panel) const { return panel * steps_ * kStep * 2 * kColumns; }

  // Rows with their segments at equal distances: where they lie so, or in copies.
  __attribute__((noinline)) void run_block(const MatmulRows& rows, int64_t first, int64_t count, int64_t first_panel,
                                           int64_t last_panel) const {
    const uint8_t* found[kBlock];
    uint8_t copies[kBlock * kDeepestNarrow];
    const uint8_t* const* list = found;
    int64_t distance = depth_;
    if (rows.grid != nullptr) {
      if (segments_ > 1) distance = rows.grid->segment_step;
      find_rows(*rows.grid, first, count, found);
    } else if (segments_ == 1) {
      list = rows.rows + first;
    } else {
      for (int64_t r = 0; r < count; ++r) found[r] = copies + r * segments_ * depth_;
      for (int64_t s = 0; s < segments_; ++s) {
        const uint8_t* const* from = rows.rows + s * rows.capacity + first;
        for (int64_t r = 0; r < count; ++r) {
          std::memcpy(copies + (r * segments_ + s) * depth_, from[r], static_cast<size_t>(depth_));
        }
      }
    }
    const int32_t* terms = row_terms_ ? rows.row_terms + first : nullptr;
    for (int64_t panel = first_panel; panel < last_panel; ++panel) {
      const int64_t* places = places_.data() + panel * steps_;
      int64_t apart[kDeepestNarrow / kStep];
      if (distance != depth_) {
        for (int64_t s = 0; s < steps_; ++s) apart[s] = places[s] / depth_ * distance + places[s] % depth_;
        places = apart;
      }
      Sums sums;
      const bool wide = width_of(panel) == kColumns;
      if (wide) {
        multiply<2>(list, terms, count, panel, places, sums);
      } else {
        multiply<1>(list, terms, count, panel, places, sums);
        // What is requantized beside a single last row.
        if (count % 2 != 0) store32(sums.values + 8 * count, _mm256_setzero_si256());
      }
      const int64_t columns = columns_ - panel * kColumns;
      uint8_t* out = rows.out + first * rows.out_stride + panel * kColumns * (sums_ ? 4 : 1);
      if (sums_) {
        store_sums(sums, wide, count, out, rows.out_stride, columns);
      } else {
        with_form(requantizer_.form(), [&](auto form) {
          requantize<form.value>(panel, sums, static_cast<int>(count), out, rows.out_stride, columns);
        });
      }
    }
  }

  static void find_rows(const MatmulGrid& grid, int64_t first, int64_t count, const uint8_t** found) {
    int64_t line = (grid.first + first) / grid.width, x = (grid.first + first) % grid.width;
    for (int64_t done = 0; done < count; x = 0, ++line) {
      const int64_t end = std::min(count, done + grid.width - x);
      const uint8_t* at = grid.base + line * grid.line_step + x * grid.row_step;
      for (; done < end; ++done, at += grid.row_step) found[done] = at;
    }
  }

  template <Form form>
  __attribute__((noinline)) void requantize(int64_t panel, const Sums& sums, int count, uint8_t* out,
                                            int64_t out_stride, int64_t columns) const {
    const Group& group = requantizer_.group(panel);
    const Store store = requantizer_.store();
    if (width_of(panel) == kColumns) {
      requantize_rows<form>(requantizer_, group, store, sums.values, count, out, out_stride, columns);
      return;
    }
    // Vectors of 16 accumulators hold two rows.
    const auto width = static_cast<size_t>(std::min<int64_t>(columns, kColumns / 2));
    const auto store_rows = [&](int first, __m256i bytes) __attribute__((always_inline)) {
      uint8_t* to = out + first * out_stride;
      if (first + 4 <= count && width == 8 && out_stride == 8) return store32(to, bytes);
      alignas(32) uint8_t rows[32];
      store32(rows, bytes);
      for (int r = 0; r < std::min(4, count - first); ++r) std::memcpy(to + r * out_stride, rows + 8 * r, width);
    };
    if constexpr (form == Form::scalar) {
      for (int r = 0; r < count; r += 2) {
        alignas(16) uint8_t bytes[16];
        requantizer_.requantize_scalar(sums.values + 8 * r, group, bytes);
        store_rows(r, _mm256_castsi128_si256(_mm_shuffle_epi32(load16(bytes), 0xd8)));
      }
    } else {
      requantize_fours<form>(
          group, store, sums.values, (count + 1) / 2, [&](int pair, __m256i fours, int) __attribute__((always_inline)) {
            store_rows(2 * pair, _mm256_permutevar8x32_epi32(fours, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
          });
    }
  }

  // Columns 4 to 7 of a wide panel lie behind columns 8 to 11, see accumulator_of_byte.
  static void store_sums(const Sums& sums, bool wide, int64_t count, uint8_t* out, int64_t out_stride,
                         int64_t columns) {
    for (int64_t r = 0; r < count; ++r, out += out_stride) {
      alignas(32) int32_t row[kColumns];
      if (wide) {
        for (int i = 0; i < kColumns; i += 4) {
          store16(row + i, load16(sums.values + r * kColumns + accumulator_of_byte(i)));
        }
      } else {
        store32(row, load32(sums.values + 8 * r));
      }
      std::memcpy(out, row, static_cast<size_t>(std::min<int64_t>(columns, wide ? kColumns : 8)) * 4);
    }
  }

  template <int vectors>
  __attribute__((noinline)) void multiply(const uint8_t* const* rows, const int32_t* terms, int64_t count,
                                          int64_t panel, const int64_t* places, Sums& sums) const {
    int64_t r = 0;
    for (; r + kRows <= count; r += kRows) add_products<kRows, vectors>(rows, terms, r, panel, places, sums);
    for (; r < count; ++r) add_products<1, vectors>(rows, terms, r, panel, places, sums);
  }

  template <int count, int vectors>
  __attribute__((always_inline)) inline void add_products(const uint8_t* const* rows, const int32_t* terms,
                                                          int64_t first, int64_t panel, const int64_t* places,
                                                          Sums& result) const {
    __m256i sums[count][vectors];
    const int32_t* bias = bias_.data() + panel * kColumns;
    unroll<count>([&](int r) __attribute__((always_inline)) {
      unroll<vectors>([&](int v) __attribute__((always_inline)) { sums[r][v] = load32(bias + 8 * v); });
    });
    if (terms != nullptr) {
      unroll<count>([&](int r) __attribute__((always_inline)) {
        const __m256i term = _mm256_set1_epi32(terms[first + r]);
        unroll<vectors>([&](int v) __attribute__((always_inline)) { sums[r][v] = _mm256_add_epi32(sums[r][v], term); });
      });
    }
    const uint8_t* row[count];
    unroll<count>([&](int r) __attribute__((always_inline)) { row[r] = rows[first + r]; });
    const __m256i ones = _mm256_set1_epi16(1);
    const uint8_t* weights = weights_.data() + first_weight(panel);
    const int64_t *place = places, *pairs_end = places + 2 * pairs_.data()[panel], *end = places + steps_;
    const auto products = [](const uint8_t* bytes, __m256i magnitudes, __m256i signs) __attribute__((always_inline)) {
      return _mm256_maddubs_epi16(magnitudes, _mm256_xor_si256(broadcast4(bytes), signs));
    };
    for (; place < pairs_end; place += 2, weights += 128 * vectors) {
      int64_t one = place[0], other = place[1];
      unroll<vectors>([&](int v) __attribute__((always_inline)) {
        // Bytes are loaded once more for the second vector: kept, they take registers that sums need.
        asm("" : "+r"(one), "+r"(other));
        const uint8_t* w = weights + 128 * v;
        const __m256i magnitudes = load32(w), signs = load32(w + 32);
        const __m256i others = load32(w + 64), other_signs = load32(w + 96);
        unroll<count>([&](int r) __attribute__((always_inline)) {
          const __m256i words = _mm256_add_epi16(products(row[r] + one, magnitudes, signs),
                                                 products(row[r] + other, others, other_signs));
          sums[r][v] = _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(words, ones));
        });
      });
    }
    for (; place < end; ++place, weights += 64 * vectors) {
      const int64_t one = *place;
      unroll<vectors>([&](int v) __attribute__((always_inline)) {
        const __m256i magnitudes = load32(weights + 64 * v), signs = load32(weights + 64 * v + 32);
        unroll<count>([&](int r) __attribute__((always_inline)) {
          sums[r][v] = _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(products(row[r] + one, magnitudes, signs), ones));
        });
      });
    }
    int32_t* to = result.values + first * 8 * vectors;
    unroll<count>([&](int r) __attribute__((always_inline)) {
      unroll<vectors>([&](int v) __attribute__((always_inline)) { store32(to + 8 * (vectors * r + v), sums[r][v]); });
    });
  }

  int64_t segments_, depth_, steps_;  // steps of all segments
  AlignedArray<uint8_t> weights_;     // [panel][pair of steps, or step][vector][step][magnitudes, signs]
  AlignedArray<int64_t> places_;      // [panel][step], of its bytes in segments one after the other
  AlignedArray<int32_t> pairs_;       // [panel], of steps
};

}  // namespace

std::unique_ptr<Matmul> make_magnitudes(const MatmulSpec& spec) {
  const int64_t panels = PanelMatmul::panels(spec.columns);
  const bool narrow = panels <= 2 && PanelMatmul::width_of(spec.columns, panels - 1) < kColumns;
  if (spec.pairs || spec.segments * spec.depth > (narrow ? kDeepestNarrow : kDeepest)) return nullptr;
  if (spec.by_rows) return make_magnitudes(portable::ByColumns(spec).spec());
  AlignedArray<int64_t> columns(panels * kColumns);
  for (int64_t i = 0; i < panels * kColumns; ++i) {
    columns.data()[i] = Magnitudes::byte_column(spec.columns, i / kColumns, static_cast<int>(i % kColumns));
  }
  return std::unique_ptr<Matmul>(new Magnitudes(spec, columns.data()));
}

}  // namespace bittrue::BITTRUE_ISA

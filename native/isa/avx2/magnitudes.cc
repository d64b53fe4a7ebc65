// Shallow matrix products by magnitudes and signs: tiles of 4 rows by 16 columns with the sums in registers, requantized there.
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
constexpr int kStep = 4;            // bytes of depth of every row that a step takes
constexpr int kMostTogether = 255;  // magnitudes that fit a word with any bytes, nearly: 256 do
// Deeper products, and others of segments in which bytes can change places, have fewer instructions where they do (matmul.cc);
// narrow panels have more around them, for each row what two rows need here.
constexpr int64_t kDeepest = 128, kLongestSegment = 12, kMostPanels = 2;

// The sums of one tile: of a row, or, 8 columns wide, of two rows each.
struct alignas(32) Tile {
  int32_t sums[kRows][kColumns];
};

// Of every column and half of a step: the magnitudes that share a word.
using Steps = Pairing<2 * kColumns, kMostTogether>;

class Magnitudes final : public PanelMatmul {
 public:
  Magnitudes(const MatmulSpec& spec, const int64_t* byte_columns)
      : PanelMatmul(spec, byte_columns),
        segments_(spec.segments),
        steps_(spec.depth / kStep),
        weights_(panels_ * spec.segments * spec.depth * 2 * kColumns),
        offsets_(panels_ * spec.segments * steps_),
        pairs_(panels_ * spec.segments) {
    Steps pairing(steps_);
    for (int64_t panel = 0; panel < panels_; ++panel) {
      for (int64_t segment = 0; segment < segments_; ++segment) pack(spec, panel, segment, pairing);
      for (int i = 0; i < width_of(panel); ++i) {
        const int64_t column = column_of(panel, i);
        if (column >= columns_) continue;
        const int8_t* weights = spec.weights + column * segments_ * spec.depth;
        uint32_t bias = static_cast<uint32_t>(spec.bias[column]) + requantizer_.offset();
        for (int64_t k = 0; k < segments_ * spec.depth; ++k) {
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

  void run(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const override {
    const RoundingMode mode(requantizer_.form());
    with_form(requantizer_.form(), [&](auto form) { run_tiles<form.value>(rows, first_panel, last_panel); });
  }

 private:
  // The column behind accumulator i.
  int64_t column_of(int64_t panel, int i) const {
    return panel * kColumns + (width_of(panel) == kColumns ? accumulator_of_byte(i) : i);
  }

  // Magnitudes and signs of a step, vector by vector: of one, or of two that belong together side by side.
  void pack(const MatmulSpec& spec, int64_t panel, int64_t segment, Steps& pairing) {
    const int width = width_of(panel);
    const int8_t* from[kColumns] = {};
    for (int i = 0; i < width; ++i) {
      const int64_t column = column_of(panel, i);
      if (column < columns_) from[i] = spec.weights + (column * segments_ + segment) * spec.depth;
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
    const int64_t at = panel * segments_ + segment;
    int32_t* offsets = offsets_.data() + at * steps_;
    const int64_t pairs = pairing.arrange(steps_, offsets);
    pairs_.data()[at] = static_cast<int32_t>(pairs);
    uint8_t* to = weights_.data() + first_weight(panel, segment);
    for (int64_t s = 0; s < steps_;) {
      const int together = s < 2 * pairs ? 2 : 1;
      for (int v = 0; v < width / 8; ++v) {
        for (int64_t t = s; t < s + together; ++t, to += 64) {
          for (int i = 0; i < 32; ++i) {
            const int8_t* column = from[8 * v + i / kStep];
            const int w = column == nullptr ? 0 : column[offsets[t] * kStep + i % kStep];
            to[i] = static_cast<uint8_t>(std::abs(w));
            to[32 + i] = w < 0 ? 0x7f : 0x80;
          }
        }
      }
      s += together;
    }
    for (int64_t s = 0; s < steps_; ++s) offsets[s] *= kStep;
  }

  int64_t first_weight(int64_t panel, int64_t segment) const {
    return (panel * segments_ * 2 * kColumns + segment * 2 * width_of(panel)) * steps_ * kStep;
  }

  template <Form form>
  __attribute__((noinline)) void run_tiles(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const {
    const Store store = requantizer_.store();
    for (int64_t panel = first_panel; panel < last_panel; ++panel) {
      const int64_t columns = columns_ - panel * kColumns;
      const bool wide = width_of(panel) == kColumns, whole = columns >= (wide ? kColumns : kColumns / 2);
      uint8_t* out = rows.out + panel * kColumns * (sums_ ? 4 : 1);
      int64_t first = 0;
      if constexpr (is_proven(form)) {
        for (; whole && first + kRows <= rows.count; first += kRows) {
          if (wide) {
            whole_tile<form, 2>(rows, first, panel, store, out + first * rows.out_stride);
          } else {
            whole_tile<form, 1>(rows, first, panel, store, out + first * rows.out_stride);
          }
        }
      }
      for (; first < rows.count; first += kRows) {
        const int count = static_cast<int>(std::min<int64_t>(kRows, rows.count - first));
        Tile tile;
        multiply_any(rows, first, count, panel, tile);
        uint8_t* to = out + first * rows.out_stride;
        if (sums_) {
          store_sums(tile, wide, count, to, rows.out_stride, columns);
        } else if (wide) {
          requantize_rows<form>(requantizer_, requantizer_.group(panel), store, tile.sums[0], count, to,
                                rows.out_stride, columns);
        } else {
          requantize_two_rows<form>(panel, store, tile, count, to, rows.out_stride, columns);
        }
      }
    }
  }

  // A tile that needs no looking at its edges.
  template <Form form, int vectors>
  __attribute__((always_inline)) inline void whole_tile(const MatmulRows& rows, int64_t first, int64_t panel,
                                                        const Store& store, uint8_t* out) const {
    __m256i sums[kRows][vectors];
    multiply<kRows, vectors>(rows, first, panel, sums);
    const Group& group = requantizer_.group(panel);
    const int64_t stride = rows.out_stride;
    if constexpr (vectors == 2) {
      unroll<2>([&](int i) __attribute__((always_inline)) {
        const __m256i bytes = pack(requantize16<form>(sums[2 * i][0], sums[2 * i][1], group, store),
                                   requantize16<form>(sums[2 * i + 1][0], sums[2 * i + 1][1], group, store), store);
        store16(out + 2 * i * stride, _mm256_castsi256_si128(bytes));
        store16(out + (2 * i + 1) * stride, _mm256_extracti128_si256(bytes, 1));
      });
    } else {
      const __m256i bytes = rows_side_by_side(pack(requantize16<form>(sums[0][0], sums[1][0], group, store),
                                                   requantize16<form>(sums[2][0], sums[3][0], group, store), store));
      const __m128i lower = _mm256_castsi256_si128(bytes), upper = _mm256_extracti128_si256(bytes, 1);
      store8(out, lower);
      store8(out + stride, _mm_unpackhi_epi64(lower, lower));
      store8(out + 2 * stride, upper);
      store8(out + 3 * stride, _mm_unpackhi_epi64(upper, upper));
    }
  }

  // 8 bytes of each row in place of 4 and 4.
  static __m256i rows_side_by_side(__m256i bytes) { return _mm256_shuffle_epi32(bytes, 0xd8); }

  static __m256i pack(__m256i first, __m256i second, const Store& store) {
    return BITTRUE_ISA::pack(first, second, store);
  }

  template <Form form>
  void requantize_two_rows(int64_t panel, const Store& store, const Tile& tile, int count, uint8_t* out,
                           int64_t out_stride, int64_t columns) const {
    alignas(32) uint8_t bytes[kRows * 8];
    requantize_rows<form>(requantizer_, requantizer_.group(panel), store, tile.sums[0], (count + 1) / 2, bytes, 16, 16);
    store32(bytes, rows_side_by_side(load32(bytes)));
    const auto size = static_cast<size_t>(std::min<int64_t>(columns, 8));
    for (int r = 0; r < count; ++r) std::memcpy(out + r * out_stride, bytes + 8 * r, size);
  }

  // Columns 4 to 7 of a wide tile lie behind columns 8 to 11, see accumulator_of_byte.
  static void store_sums(const Tile& tile, bool wide, int count, uint8_t* out, int64_t out_stride, int64_t columns) {
    for (int r = 0; r < count; ++r, out += out_stride) {
      alignas(32) int32_t row[kColumns];
      if (wide) {
        for (int i = 0; i < kColumns; i += 4) store16(row + i, load16(tile.sums[r] + accumulator_of_byte(i)));
      } else {
        store32(row, load32(tile.sums[0] + 8 * r));
      }
      std::memcpy(out, row, static_cast<size_t>(std::min<int64_t>(columns, wide ? kColumns : 8)) * 4);
    }
  }

  void multiply_any(const MatmulRows& rows, int64_t first, int count, int64_t panel, Tile& tile) const {
    const auto with = [&](auto vectors) {
      switch (count) {
        case 1: multiply_some<1, vectors.value>(rows, first, panel, tile); break;
        case 2: multiply_some<2, vectors.value>(rows, first, panel, tile); break;
        case 3: multiply_some<3, vectors.value>(rows, first, panel, tile); break;
        default: multiply_some<kRows, vectors.value>(rows, first, panel, tile); break;
      }
    };
    if (width_of(panel) == kColumns) {
      with(std::integral_constant<int, 2>{});
    } else {
      with(std::integral_constant<int, 1>{});
    }
  }

  template <int count, int vectors>
  __attribute__((noinline)) void multiply_some(const MatmulRows& rows, int64_t first, int64_t panel, Tile& tile) const {
    __m256i sums[count][vectors];
    multiply<count, vectors>(rows, first, panel, sums);
    unroll<count>([&](int r) __attribute__((always_inline)) {
      unroll<vectors>(
          [&](int v) __attribute__((always_inline)) { store32(tile.sums[0] + 8 * (vectors * r + v), sums[r][v]); });
    });
    // What is requantized beside a single last row.
    if constexpr (vectors == 1 && count % 2 != 0) store32(tile.sums[0] + 8 * count, _mm256_setzero_si256());
  }

  template <int count, int vectors>
  __attribute__((always_inline)) inline void multiply(const MatmulRows& rows, int64_t first, int64_t panel,
                                                      __m256i (&sums)[count][vectors]) const {
    const int32_t* bias = bias_.data() + panel * kColumns;
    unroll<count>([&](int r) __attribute__((always_inline)) {
      unroll<vectors>([&](int v) __attribute__((always_inline)) { sums[r][v] = load32(bias + 8 * v); });
    });
    if (row_terms_) {
      unroll<count>([&](int r) __attribute__((always_inline)) {
        const __m256i term = _mm256_set1_epi32(rows.row_terms[first + r]);
        unroll<vectors>([&](int v) __attribute__((always_inline)) { sums[r][v] = _mm256_add_epi32(sums[r][v], term); });
      });
    }
    const __m256i ones = _mm256_set1_epi16(1);
    const uint8_t* weights = weights_.data() + first_weight(panel, 0);
    const int32_t* offset = offsets_.data() + panel * segments_ * steps_;
    const auto products = [](const uint8_t* row, __m256i magnitudes, __m256i signs) __attribute__((always_inline)) {
      return _mm256_maddubs_epi16(magnitudes, _mm256_xor_si256(broadcast4(row), signs));
    };
    for (int64_t segment = 0; segment < segments_; ++segment) {
      const uint8_t* row[count];
      unroll<count>([&](int r)
                        __attribute__((always_inline)) { row[r] = rows.rows[segment * rows.capacity + first + r]; });
      const int32_t* pairs_end = offset + 2 * pairs_.data()[panel * segments_ + segment];
      const int32_t* end = offset + steps_;
      for (; offset < pairs_end; offset += 2, weights += 128 * vectors) {
        int64_t one = offset[0], other = offset[1];
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
      for (; offset < end; ++offset, weights += 64 * vectors) {
        const int64_t one = offset[0];
        unroll<vectors>([&](int v) __attribute__((always_inline)) {
          const __m256i magnitudes = load32(weights + 64 * v), signs = load32(weights + 64 * v + 32);
          unroll<count>([&](int r) __attribute__((always_inline)) {
            sums[r][v] =
                _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(products(row[r] + one, magnitudes, signs), ones));
          });
        });
      }
    }
  }

  int64_t segments_, steps_;
  AlignedArray<uint8_t> weights_;  // [panel][segment][pair of steps, or step][vector][step][magnitudes, signs]
  AlignedArray<int32_t> offsets_;  // [panel][segment][step], of its bytes in the segment
  AlignedArray<int32_t> pairs_;    // [panel][segment], of steps
};

}  // namespace

std::unique_ptr<Matmul> make_magnitudes(const MatmulSpec& spec) {
  const int64_t panels = PanelMatmul::panels(spec.columns);
  const bool narrow = panels <= kMostPanels && PanelMatmul::width_of(spec.columns, panels - 1) < kColumns;
  if (spec.pairs || spec.segments * spec.depth > kDeepest || !(narrow || spec.depth <= kLongestSegment)) return nullptr;
  if (spec.by_rows) return make_magnitudes(portable::ByColumns(spec).spec());
  AlignedArray<int64_t> columns(panels * kColumns);
  for (int64_t i = 0; i < panels * kColumns; ++i) {
    columns.data()[i] = Magnitudes::byte_column(spec.columns, i / kColumns, static_cast<int>(i % kColumns));
  }
  return std::unique_ptr<Matmul>(new Magnitudes(spec, columns.data()));
}

}  // namespace bittrue::BITTRUE_ISA

// Winograd's F(2 x 2, 3 x 3) in integers: 16 products for four outputs, in place of 36. Along one axis, of four inputs d and
// three weights g, 2 y0 = m0 + m1 + m2 and 2 y1 = m1 - m2 - m3, where
//   m0 = (d0 - d2) 2 g0, m1 = (d1 + d2) (g0 + g1 + g2), m2 = (d2 - d1) (g0 - g1 + g2), m3 = (d1 - d3) 2 g2;
// along both, four times the sums. 16 bits hold such factors of bytes (|d| <= 4 * 255, |g| <= 9 * 128), vpmaddwd adds two
// products exactly, and all else is modulo 2^32: the division by 4 is exact while sums lie within 2^29, before any bias. They
// are the sums of plain products then. y0 needs no d3: windows beyond the last ones read something that is there.
#include "isa/avx2/winograd.h"

#include <algorithm>

#include "isa/avx2/panels.h"
#include "isa/avx2/requantize.h"
#include "isa/avx2/vectors.h"

namespace bittrue::BITTRUE_ISA {
namespace {

constexpr int kTiles = 6, kWide = PanelMatmul::kColumns;  // tiles and columns whose sums stay in registers
constexpr int kPlaces = 16;                               // products of a tile
constexpr int64_t kTransformed = 256 << 10;               // bytes of inputs that stay in the second-level cache
constexpr int64_t kFewestTiles = 12, kMostTiles = 24;
constexpr int64_t kFewestChannels = 16, kMostChannels = ((int64_t{1} << 29) - 1) / (9 * 255 * 128);

class Winograd final : public PanelMatmul {
 public:
  explicit Winograd(const MatmulSpec& spec)
      : PanelMatmul(spec),
        channels_(spec.segments * spec.depth / 9),
        width_(spec.window_line),
        tiles_(std::clamp(kTransformed / (2 * kPlaces * channels_) / kTiles * kTiles, kFewestTiles, kMostTiles)),
        weights_(panels_ * kPlaces * channels_ * kWide) {
    for (int64_t slot = 0; slot < panels_ * kWide; ++slot) {
      const int64_t panel = slot / kWide, i = slot % kWide;
      const int64_t column = panel * kWide + accumulator_of_byte(static_cast<int>(i));
      if (column >= columns_) continue;
      int16_t* packed = weights_.data() + panel * kPlaces * channels_ * kWide;
      for (int64_t c = 0; c < channels_; ++c) {
        const int8_t* taps = spec.weights + column * 9 * channels_ + c;
        int lines[4][3], places[4];
        for (int64_t j = 0; j < 3; ++j) {
          transform(taps[j * channels_], taps[(3 + j) * channels_], taps[(6 + j) * channels_], places);
          for (int k = 0; k < 4; ++k) lines[k][j] = places[k];
        }
        for (int k = 0; k < kPlaces; ++k) {
          if (k % 4 == 0) transform(lines[k / 4][0], lines[k / 4][1], lines[k / 4][2], places);
          packed[(k * channels_ + c / 2 * 2) * kWide + i * 2 + c % 2] = static_cast<int16_t>(places[k % 4]);
        }
      }
    }
  }

  int64_t tile_rows() const override { return 2 * width_; }
  bool takes_grids() const override { return true; }
  int64_t scratch() const override { return tiles_ * (2 * kPlaces * channels_ + 4 * (kPlaces + 4) * kWide); }

  void run(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const override {
    const RoundingMode mode(requantizer_.form());
    with_form(requantizer_.form(), [&](auto form) { run_tiles<form.value>(rows, first_panel, last_panel); });
  }

 private:
  static void transform(int first, int second, int third, int* to) {
    to[0] = 2 * first, to[1] = first + second + third, to[2] = first - second + third, to[3] = 2 * third;
  }

  template <Form form>
  __attribute__((noinline)) void run_tiles(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const {
    const Store store = requantizer_.store();
    const int64_t lines = rows.count / width_, across = (width_ + 1) / 2, total = (lines + 1) / 2 * across;
    const int64_t parts = (total + tiles_ - 1) / tiles_;
    const int64_t most = ((total + parts - 1) / parts + kTiles - 1) / kTiles * kTiles;
    auto* inputs = reinterpret_cast<int16_t*>(rows.scratch);                             // [place][tile][channel]
    auto* products = reinterpret_cast<int32_t*>(inputs + kPlaces * tiles_ * channels_);  // [place][tile][column]
    int32_t* sums = products + kPlaces * tiles_ * kWide;  // [line][twice the tiles][column]
    for (int64_t first = 0; first < total; first += most) {
      const int64_t count = std::min(most, total - first);
      for (int64_t t = 0; t < count; ++t) {
        transform_inputs(*rows.grid, lines, (first + t) / across * 2, (first + t) % across * 2, inputs + t * channels_);
      }
      for (int64_t panel = first_panel; panel < last_panel; ++panel) {
        const int16_t* weights = weights_.data() + panel * kPlaces * channels_ * kWide;
        for (int64_t k = 0; k < kPlaces; ++k, weights += channels_ * kWide) {
          for (int64_t t = 0; t < count; t += kTiles) {
            multiply_any(count - t, inputs + (k * tiles_ + t) * channels_, weights,
                         products + (k * tiles_ + t) * kWide);
          }
        }
        for (int64_t t = 0; t < count; ++t) transform_products(products + t * kWide, panel, sums + 2 * t * kWide);
        for (int64_t t = 0; t < count;) {
          const int64_t y = (first + t) / across * 2, x = (first + t) % across;
          const int64_t stretch = std::min(across - x, count - t);
          for (int64_t l = 0; l < std::min<int64_t>(2, lines - y); ++l) {
            requantize_rows<form>(requantizer_, requantizer_.group(panel), store, sums + (l * tiles_ + t) * 2 * kWide,
                                  static_cast<int>(std::min(2 * stretch, width_ - 2 * x)),
                                  rows.out + ((y + l) * width_ + 2 * x) * rows.out_stride + panel * kWide,
                                  rows.out_stride, columns_ - panel * kWide);
          }
          t += stretch;
        }
      }
    }
  }

  // The tile whose first output is at line y and column x of the rows.
  void transform_inputs(const MatmulGrid& grid, int64_t lines, int64_t y, int64_t x, int16_t* to) const {
    const uint8_t* from = grid.base + (grid.first / width_ + y) * grid.line_step + x * grid.row_step;
    const int64_t last_line = y + 1 < lines ? 3 : 2, last_column = x + 1 < width_ ? 3 : 2;
    const int64_t apart = tiles_ * channels_;
    for (int64_t c = 0; c < channels_; c += 16) {
      __m256i d[4][4];
      unroll<4>([&](int j) __attribute__((always_inline)) {
        __m256i column[4];
        unroll<4>([&](int i) __attribute__((always_inline)) {
          const uint8_t* pixel =
              from + (i < 3 ? i : last_line) * grid.line_step + (j < 3 ? j : last_column) * grid.row_step + c;
          column[i] = _mm256_cvtepu8_epi16(load16(pixel));
        });
        d[0][j] = _mm256_sub_epi16(column[0], column[2]);
        d[1][j] = _mm256_add_epi16(column[1], column[2]);
        d[2][j] = _mm256_sub_epi16(column[2], column[1]);
        d[3][j] = _mm256_sub_epi16(column[1], column[3]);
      });
      unroll<4>([&](int i) __attribute__((always_inline)) {
        int16_t* place = to + 4 * i * apart + c;
        store32(place, _mm256_sub_epi16(d[i][0], d[i][2]));
        store32(place + apart, _mm256_add_epi16(d[i][1], d[i][2]));
        store32(place + 2 * apart, _mm256_sub_epi16(d[i][2], d[i][1]));
        store32(place + 3 * apart, _mm256_sub_epi16(d[i][1], d[i][3]));
      });
    }
  }

  void multiply_any(int64_t count, const int16_t* inputs, const int16_t* weights, int32_t* products) const {
    switch (count) {
      case 1: return multiply<1>(inputs, weights, products);
      case 2: return multiply<2>(inputs, weights, products);
      case 3: return multiply<3>(inputs, weights, products);
      case 4: return multiply<4>(inputs, weights, products);
      case 5: return multiply<5>(inputs, weights, products);
      default: return multiply<kTiles>(inputs, weights, products);
    }
  }

  template <int count>
  __attribute__((noinline)) void multiply(const int16_t* inputs, const int16_t* weights, int32_t* products) const {
    __m256i sums[count][2];
    unroll<count>([&](int t) __attribute__((always_inline)) { sums[t][0] = sums[t][1] = _mm256_setzero_si256(); });
    for (int64_t c = 0; c < channels_; c += 2, weights += 2 * kWide) {
      const __m256i first = load32(weights), second = load32(weights + kWide);
      unroll<count>([&](int t) __attribute__((always_inline)) {
        const __m256i x = broadcast4(inputs + t * channels_ + c);
        sums[t][0] = _mm256_add_epi32(sums[t][0], _mm256_madd_epi16(x, first));
        sums[t][1] = _mm256_add_epi32(sums[t][1], _mm256_madd_epi16(x, second));
      });
    }
    unroll<count>([&](int t) __attribute__((always_inline)) {
      store32(products + t * kWide, sums[t][0]);
      store32(products + t * kWide + 8, sums[t][1]);
    });
  }

  // Two neighbouring sums, and below them two others.
  void transform_products(const int32_t* products, int64_t panel, int32_t* to) const {
    unroll<2>([&](int v) __attribute__((always_inline)) {
      __m256i m[2][4];
      unroll<4>([&](int j) __attribute__((always_inline)) {
        __m256i place[4];
        unroll<4>([&](int i) __attribute__((always_inline)) {
          place[i] = load32(products + (4 * i + j) * tiles_ * kWide + 8 * v);
        });
        m[0][j] = _mm256_add_epi32(_mm256_add_epi32(place[0], place[1]), place[2]);
        m[1][j] = _mm256_sub_epi32(_mm256_sub_epi32(place[1], place[2]), place[3]);
      });
      const __m256i bias = load32(bias_.data() + panel * kWide + 8 * v);
      unroll<2>([&](int l) __attribute__((always_inline)) {
        const __m256i left = _mm256_add_epi32(_mm256_add_epi32(m[l][0], m[l][1]), m[l][2]);
        const __m256i right = _mm256_sub_epi32(_mm256_sub_epi32(m[l][1], m[l][2]), m[l][3]);
        int32_t* line = to + l * 2 * tiles_ * kWide + 8 * v;
        store32(line, _mm256_add_epi32(_mm256_srai_epi32(left, 2), bias));
        store32(line + kWide, _mm256_add_epi32(_mm256_srai_epi32(right, 2), bias));
      });
    });
  }

  int64_t channels_, width_;
  int64_t tiles_;                  // that are worked on together
  AlignedArray<int16_t> weights_;  // [panel][place][pair of channels][accumulator][channel of the pair]
};

}  // namespace

std::unique_ptr<Matmul> make_winograd(const MatmulSpec& spec) {
  const int64_t channels = spec.segments * spec.depth / 9;
  if (spec.window_line == 0 || spec.pairs || spec.sums || spec.row_terms || channels < kFewestChannels ||
      channels > kMostChannels || channels % 16 != 0 || spec.columns < kWide) {
    return nullptr;
  }
  return std::unique_ptr<Matmul>(new Winograd(spec));
}

}  // namespace bittrue::BITTRUE_ISA

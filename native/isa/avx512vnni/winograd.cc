// Windows of 3 x 3 by VPDPWSSD, two products of 16 bits per sum: a quarter of the products at half the rate of bytes.
#include "isa/avx512vnni/winograd.h"

#include "isa/avx512vnni/interleave.h"
#include "isa/avx512vnni/requantize.h"
#include "isa/winograd_tiles.h"

namespace bittrue::avx512vnni {
namespace {

struct WordProducts {
  using Words = uint16_t __attribute__((vector_size(64)));
  using Sums = uint32_t __attribute__((vector_size(64)));
  using Signed = int32_t __attribute__((vector_size(64)));
  using SignedWords = int16_t __attribute__((vector_size(64)));
  static constexpr int kTiles = 12;
  static constexpr int64_t kChunksByPlace = INT64_MAX;
  static constexpr int64_t kTransformed = 512 << 10;  // bytes of inputs that stay in the second-level cache

  static Sums add_products(Sums sum, Sums x, Sums w) {
    return Sums(_mm512_dpwssd_epi32(__m512i(sum), __m512i(x), __m512i(w)));
  }
  static Words widen(const uint8_t* from) {
    return Words(_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
  }
  static int column_of(int slot) { return slot; }
  static int vectors(int64_t columns) { return columns > 16 ? 2 : 1; }
};

using Tiles = WinogradTiles<WordProducts>;

constexpr int64_t kWide = Tiles::kColumns;

class VnniWinograd final : public Matmul {
 public:
  explicit VnniWinograd(const MatmulSpec& spec)
      : columns_(spec.columns), tiles_(spec), bias_(panels() * kWide), requantizers_(new Requantizer*[panels()]) {
    const int64_t depth = spec.segments * spec.depth;
    for (int64_t panel = 0; panel < panels(); ++panel) {
      int64_t columns[kWide], least[kWide], greatest[kWide];
      for (int64_t i = 0; i < kWide; ++i) {
        const int64_t column = panel * kWide + i;
        columns[i] = column < columns_ ? column : -1;
        least[i] = greatest[i] = 0;
        if (column >= columns_) continue;
        least[i] = greatest[i] = bias_.data()[column] = spec.bias[column];
        Tiles::add_extremes(spec.weights + column * depth, depth, &least[i], &greatest[i]);
      }
      const int64_t count = 16 * WordProducts::vectors(columns_ - panel * kWide);
      requantizers_[panel] = spec.sums ? nullptr : new Requantizer(spec.requantize, columns, count, least, greatest);
    }
  }
  VnniWinograd(const VnniWinograd&) = delete;
  VnniWinograd& operator=(const VnniWinograd&) = delete;
  ~VnniWinograd() override {
    for (int64_t panel = 0; panel < panels(); ++panel) delete requantizers_[panel];
    delete[] requantizers_;
  }

  int64_t panels() const override { return tiles_.panels(); }
  int64_t first_column(int64_t panel) const override { return std::min(panel * kWide, columns_); }
  int64_t tile_rows() const override { return tiles_.tile_rows(); }
  bool takes_grids() const override { return true; }
  int64_t scratch() const override { return tiles_.scratch(); }

  void run(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const override {
    tiles_.run(rows, first_panel, last_panel,
               [&](int64_t panel, const WinogradBlock& block) { finish(rows, panel, block); });
  }

 private:
  void finish(const MatmulRows& rows, int64_t panel, const WinogradBlock& block) const {
    const Requantizer* requantizer = requantizers_[panel];
    for (int v = 0; v < WordProducts::vectors(columns_ - panel * kWide); ++v) {
      const int64_t column = panel * kWide + 16 * v;
      if (requantizer == nullptr) {
        store_sums(rows, column, v, block);
        continue;
      }
      switch (requantizer->form()) {
        case Form::short_line: store_bytes<Form::short_line>(rows, column, v, block, *requantizer); break;
        case Form::short_away: store_bytes<Form::short_away>(rows, column, v, block, *requantizer); break;
        case Form::line: store_bytes<Form::line>(rows, column, v, block, *requantizer); break;
        case Form::line_away: store_bytes<Form::line_away>(rows, column, v, block, *requantizer); break;
        case Form::line_by_sign: store_bytes<Form::line_by_sign>(rows, column, v, block, *requantizer); break;
        case Form::product: store_bytes<Form::product>(rows, column, v, block, *requantizer); break;
        case Form::sum_product: store_bytes<Form::sum_product>(rows, column, v, block, *requantizer); break;
        default: store_bytes<Form::scalar>(rows, column, v, block, *requantizer);
      }
    }
  }

  // store(line, out, step) writes a line of four outputs of 16 columns, `step` bytes apart.
  template <int item, class StoreLine>
  __attribute__((always_inline)) void store_tiles(const MatmulRows& rows, int64_t column, int v,
                                                  const WinogradBlock& block, const StoreLine& store) const {
    const __m512i bias = _mm512_load_si512(bias_.data() + column);
    const int64_t columns = std::min<int64_t>(16, columns_ - column), line_step = block.width * rows.out_stride;
    int64_t y = block.line(0), x = block.column(0);
    for (int64_t t = 0; t < block.count; ++t, x += 4) {
      if (x >= block.width) x = 0, y += 4;
      const int64_t down = std::min<int64_t>(4, block.lines - y), along = std::min<int64_t>(4, block.width - x);
      uint8_t* const out = rows.out + y * line_step + x * rows.out_stride + column * item;
      // What is not wanted of a tile must not be written.
      uint8_t whole[16 * 16 * item];
      const bool fits = down == 4 && along == 4 && columns == 16;
      uint8_t* const to = fits ? out : whole;
      const int64_t step = fits ? rows.out_stride : 16 * item, far = fits ? line_step : 64 * item;
      tiles_.outputs(block, t, v, [&](int l, const Tiles::Sums(&line)[4]) __attribute__((always_inline)) {
        __m512i acc[4];
        unroll<4>([&](int p) __attribute__((always_inline)) { acc[p] = _mm512_add_epi32(__m512i(line[p]), bias); });
        store(acc, to + l * far, step);
      });
      if (fits) continue;
      for (int64_t l = 0; l < down; ++l) {
        for (int64_t p = 0; p < along; ++p) {
          std::memcpy(out + l * line_step + p * rows.out_stride, whole + (4 * l + p) * 16 * item,
                      static_cast<size_t>(columns * item));
        }
      }
    }
  }

  __attribute__((noinline)) void store_sums(const MatmulRows& rows, int64_t column, int v,
                                            const WinogradBlock& block) const {
    store_tiles<4>(
        rows, column, v, block, [](const __m512i(&acc)[4], uint8_t* out, int64_t step) __attribute__((always_inline)) {
          unroll<4>([&](int p) __attribute__((always_inline)) { _mm512_storeu_si512(out + p * step, acc[p]); });
        });
  }

  template <Form form>
  __attribute__((noinline)) void store_bytes(const MatmulRows& rows, int64_t column, int v, const WinogradBlock& block,
                                             const Requantizer& requantizer) const {
    const Store store = requantizer.store();
    Line line{};
    if constexpr (is_fast(form)) line = load<form>(requantizer.lines()[v]);
    // pack() leaves 4 bytes of each output in every 16-byte lane.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    store_tiles<1>(
        rows, column, v, block, [&](__m512i(&acc)[4], uint8_t* out, int64_t step) __attribute__((always_inline)) {
          unroll<4>([&](int p) __attribute__((always_inline)) {
            if constexpr (is_fast(form)) {
              acc[p] = rescale<form>(acc[p], line);
            } else {
              acc[p] = requantizer.rescale_any(acc[p], v);
            }
          });
          const __m512i bytes = _mm512_permutexvar_epi32(order, pack(acc[0], acc[1], acc[2], acc[3], store));
          const __m128i lanes[4] = {_mm512_castsi512_si128(bytes), _mm512_extracti32x4_epi32(bytes, 1),
                                    _mm512_extracti32x4_epi32(bytes, 2), _mm512_extracti32x4_epi32(bytes, 3)};
          unroll<4>([&](int p) __attribute__((always_inline)) {
            _mm_storeu_si128(reinterpret_cast<__m128i*>(out + p * step), lanes[p]);
          });
        });
  }

  int64_t columns_;
  Tiles tiles_;
  AlignedArray<int32_t> bias_;
  Requantizer** requantizers_;  // of panels; null where sums are the result
};

// Cycles of Zen 4: those of products, where plain ones take 36 per channel for 16 outputs of 16 columns; of a tile's outputs;
// and of transforming 32 channels of a tile, which all columns share.
bool pays(const MatmulSpec& spec, int64_t channels) {
  constexpr int64_t kProducts = 19, kOutputs = 235, kInputs = 240;
  // Transformed weights are eight times as many bytes. Where they come from memory, so many tiles hide it.
  constexpr int64_t kFewestTiles = 12, kTilesOfMany = 40, kManyBytes = 512 << 10;
  const int64_t tiles = (spec.window_lines + 3) / 4 * ((spec.window_line + 3) / 4);
  const int64_t vectors = (spec.columns + 15) / 16, bytes = 36 * 2 * channels * spec.columns;
  if (tiles < (bytes > kManyBytes ? kTilesOfMany : kFewestTiles)) return false;
  const int64_t plain = spec.window_lines * spec.window_line * vectors * channels * 36 / 16;
  // The last tiles are multiplied by threes.
  const int64_t products = tiles / 12 * 12 + (tiles % 12 + 2) / 3 * 3;
  const int64_t fewer =
      vectors * (products * kProducts * channels + tiles * kOutputs) + tiles * ((channels + 31) / 32) * kInputs;
  return fewer * 11 < plain * 10;
}

}  // namespace

std::unique_ptr<Matmul> make_winograd(const MatmulSpec& spec) {
  const int64_t channels = spec.segments * spec.depth / 9;
  if (spec.window_line == 0 || spec.pairs || spec.row_terms || channels < Tiles::kChannels || !pays(spec, channels) ||
      !Tiles::holds(spec)) {
    return nullptr;
  }
  return std::unique_ptr<Matmul>(new VnniWinograd(spec));
}

}  // namespace bittrue::avx512vnni

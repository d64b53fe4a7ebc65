// Windows of 3 x 3 by VPMADDWD and a quarter of the products: two instructions for 16 of them, where pairs of bytes take three
// for 32.
#include "isa/avx2/winograd.h"

#include "isa/avx2/panels.h"
#include "isa/avx2/requantize.h"
#include "isa/avx2/vectors.h"
#include "isa/winograd_tiles.h"

namespace bittrue::BITTRUE_ISA {
namespace {

struct WordProducts {
  using Words = uint16_t __attribute__((vector_size(32)));
  using Sums = uint32_t __attribute__((vector_size(32)));
  using Signed = int32_t __attribute__((vector_size(32)));
  using SignedWords = int16_t __attribute__((vector_size(32)));
  static constexpr int kTiles = 6;
  static constexpr int64_t kChunksByPlace = 5;
  static constexpr int64_t kTransformed = 256 << 10;  // bytes of inputs that stay in the second-level cache

  static Sums add_products(Sums sum, Sums x, Sums w) { return sum + Sums(_mm256_madd_epi16(__m256i(x), __m256i(w))); }
  static Words widen(const uint8_t* from) { return Words(_mm256_cvtepu8_epi16(load16(from))); }
  static int column_of(int slot) { return accumulator_of_byte(slot); }
  static int vectors(int64_t) { return 2; }
};

using Tiles = WinogradTiles<WordProducts>;

constexpr int64_t kWide = Tiles::kColumns;
static_assert(kWide == PanelMatmul::kColumns);

class Winograd final : public PanelMatmul {
 public:
  explicit Winograd(const MatmulSpec& spec) : PanelMatmul(spec), tiles_(spec) {}

  int64_t tile_rows() const override { return tiles_.tile_rows(); }
  bool takes_grids() const override { return true; }
  int64_t scratch() const override { return tiles_.scratch(); }

  void run(const MatmulRows& rows, int64_t first_panel, int64_t last_panel) const override {
    const RoundingMode mode(requantizer_.form());
    with_form(requantizer_.form(), [&](auto form) {
      tiles_.run(rows, first_panel, last_panel,
                 [&](int64_t panel, const WinogradBlock& block) { finish<form.value>(rows, panel, block); });
    });
  }

 private:
  template <Form form>
  __attribute__((noinline)) void finish(const MatmulRows& rows, int64_t panel, const WinogradBlock& block) const {
    const Store store = requantizer_.store();
    const int64_t columns = std::min<int64_t>(kWide, columns_ - panel * kWide), item = sums_ ? 4 : 1;
    alignas(32) int32_t results[16 * kWide];
    int64_t y = block.line(0), x = block.column(0);
    for (int64_t t = 0; t < block.count; ++t, x += 4) {
      if (x >= block.width) x = 0, y += 4;
      for (int v = 0; v < 2; ++v) {
        const __m256i bias = load32(bias_.data() + panel * kWide + 8 * v);
        tiles_.outputs(block, t, v, [&](int l, const Tiles::Sums(&line)[4]) __attribute__((always_inline)) {
          unroll<4>([&](int p) __attribute__((always_inline)) {
            store32(results + (4 * l + p) * kWide + 8 * v, _mm256_add_epi32(__m256i(line[p]), bias));
          });
        });
      }
      const int64_t down = std::min<int64_t>(4, block.lines - y), along = std::min<int64_t>(4, block.width - x);
      for (int64_t l = 0; l < down; ++l) {
        uint8_t* out = rows.out + ((y + l) * block.width + x) * rows.out_stride + panel * kWide * item;
        const int32_t* line = results + 4 * l * kWide;
        if (sums_) {
          for (int64_t p = 0; p < along; ++p, out += rows.out_stride, line += kWide) {
            for (int64_t c = 0; c < columns; ++c)
              std::memcpy(out + 4 * c, line + accumulator_of_byte(static_cast<int>(c)), 4);
          }
        } else {
          requantize_rows<form>(requantizer_, requantizer_.group(panel), store, line, static_cast<int>(along), out,
                                rows.out_stride, columns);
        }
      }
    }
  }

  Tiles tiles_;
};

}  // namespace

std::unique_ptr<Matmul> make_winograd(const MatmulSpec& spec) {
  // Of a map, tiles are at most twice as much.
  const int64_t tiles = (spec.window_lines + 3) / 4 * ((spec.window_line + 3) / 4);
  if (spec.window_line == 0 || spec.pairs || spec.row_terms || spec.segments * spec.depth / 9 < Tiles::kChannels ||
      spec.columns < kWide || 8 * tiles > spec.window_lines * spec.window_line || !Tiles::holds(spec)) {
    return nullptr;
  }
  return std::unique_ptr<Matmul>(new Winograd(spec));
}

}  // namespace bittrue::BITTRUE_ISA

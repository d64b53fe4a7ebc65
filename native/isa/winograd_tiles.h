// Winograd's F(4 x 4, 3 x 3) in integers: 36 products for 16 outputs, in place of 144. Along one axis, of six inputs d and
// three weights g (points 0, 1, -1, 2, -2 and infinity, factors of the weights' fractions moved to the end),
//   24 y0 = m0 - 4 (m1 + m2) + (m3 + m4), 12 y1 = (m3 - m4) - 2 (m1 - m2),
//   6 y2 = (m3 + m4) - (m1 + m2), 6 y3 = 2 (m3 - m4) - (m1 - m2) + m5,
// where m are products of
//   4 d0 - 5 d2 + d4 and 6 g0, (d4 - 4 d2) +- (d3 - 4 d1) and g0 +- g1 + g2, (d4 - d2) +- 2 (d3 - d1) and g0 +- 2 g1 + 4 g2,
//   4 d1 - 5 d3 + d5 and 6 g2;
// along both, 36 to 576 times the sums. 16 bits hold such factors of bytes: |d| <= 255 (4 * 16 + 4) and |g| <= 49 * 128, so that
// no two products leave 32 bits. All else is modulo 2^32, where 9 has an inverse and an arithmetic shift divides by the rest,
// up to 64: sums within [-2^25, 2^25) are those of plain products, before any bias. An output depends on no input
// beyond its window: what tiles read in place of lines and columns that are not there does not matter.
#pragma once

#include <algorithm>

#include "isa/cores.h"
#include "isa/tools.h"

namespace bittrue::BITTRUE_ISA {

// Tiles whose sums have been added up, in the order of the map's rows, and where they lie.
struct WinogradBlock {
  const int32_t* products;  // [tile][place][column]
  int64_t first, count;     // tiles
  int64_t lines, width;     // of outputs
  int64_t across;           // tiles

  // Of the tile's first output.
  int64_t line(int64_t tile) const { return (first + tile) / across * 4; }
  int64_t column(int64_t tile) const { return (first + tile) % across * 4; }
};

// Of a `Set`: Words and Sums are vectors of 16 and 32 bits without sign, Signed and SignedWords those with one; sums of kTiles
// tiles and two vectors of columns stay in registers; widen reads bytes as words; add_products adds two neighbouring products
// of signed words to every sum; slot i of a panel's sums belongs to its column column_of(i); vectors(n) is how many are
// worked on where n columns are left; from kChunksByPlace vectors of channels on, inputs that two groups of tiles read weights
// for lie place by place, as they are read. Else places lie side by side: a line that is read brings the next place's, and
// storing them takes fewer instructions.
template <class Set>
class WinogradTiles {
 public:
  using Words = typename Set::Words;
  using Sums = typename Set::Sums;
  static constexpr int64_t kLanes = sizeof(Sums) / 4, kColumns = 2 * kLanes;
  static constexpr int64_t kChannels = 2 * kLanes;  // of a vector of words

  // Whether sums of these weights and any bytes are exact.
  static bool holds(const MatmulSpec& spec) {
    const int64_t depth = spec.segments * spec.depth;
    if (depth * 255 * 128 < kMost) return true;
    for (int64_t n = 0; n < spec.columns; ++n) {
      int64_t below = 0, above = 0;
      add_extremes(spec.weights + n * depth, depth, &below, &above);
      if (below < -kMost || above >= kMost) return false;
    }
    return true;
  }

  // What weights can contribute to a sum at the least and at the most.
  static void add_extremes(const int8_t* weights, int64_t depth, int64_t* least, int64_t* greatest) {
    int32_t below = 0, above = 0;
    for (int64_t d = 0; d < depth; ++d) {
      below += std::min<int32_t>(weights[d], 0);
      above += std::max<int32_t>(weights[d], 0);
    }
    *least += 255 * int64_t{below};
    *greatest += 255 * int64_t{above};
  }

  explicit WinogradTiles(const MatmulSpec& spec)
      : columns_(spec.columns),
        channels_(spec.segments * spec.depth / 9),
        width_(spec.window_line),
        chunks_((channels_ + kChannels - 1) / kChannels),
        tiles_(std::clamp<int64_t>(Set::kTransformed / (2 * kPlaces * channels_) / kTiles, 1, 2) * kTiles),
        weights_(AlignedArray<int16_t>::unset(panels() * kPlaces * channels_ * kColumns)) {
    pack(spec);
  }

  int64_t panels() const { return (columns_ + kColumns - 1) / kColumns; }
  int64_t tile_rows() const { return 4 * width_; }
  int64_t scratch() const { return kPlaces * tiles_ * (2 * chunks_ * kChannels + 4 * kColumns); }

  // finish(panel, block) takes the sums of some tiles and the columns of a panel.
  template <class Finish>
  void run(const MatmulRows& rows, int64_t first_panel, int64_t last_panel, const Finish& finish) const {
    if constexpr (Set::kChunksByPlace != INT64_MAX) {
      const int64_t total = (rows.count / width_ + 3) / 4 * ((width_ + 3) / 4);
      if (chunks_ >= Set::kChunksByPlace && std::min(tiles_, total) > kTiles) {
        return run_blocks<true>(rows, first_panel, last_panel, finish);
      }
    }
    run_blocks<false>(rows, first_panel, last_panel, finish);
  }

  // take(l, line) gets the four outputs of every line l of a tile, of vector v of the panel.
  template <class Take>
  __attribute__((always_inline)) void outputs(const WinogradBlock& block, int64_t tile, int v, const Take& take) const {
    const int32_t* from = block.products + tile * kPlaces * kColumns + v * kLanes;
    unroll<2>([&](int pair) __attribute__((always_inline)) {
      Sums lines_of[2][6];
      unroll<6>([&](int j) __attribute__((always_inline)) {
        Sums places[6];
        unroll<6>([&](int i) __attribute__((always_inline)) {
          places[i] = i != 5 * (1 - pair) ? load(from + (6 * i + j) * kColumns) : Sums{};
        });
        transform_sums(pair, places, &lines_of[0][j], &lines_of[1][j]);
      });
      unroll<2>([&](int which) __attribute__((always_inline)) {
        const int l = pair + 2 * which;
        Sums line[4];
        unroll<2>([&](int p)
                      __attribute__((always_inline)) { transform_sums(p, lines_of[which], &line[p], &line[p + 2]); });
        unroll<4>([&](int p) __attribute__((always_inline)) {
          line[p] = Sums(Signed(line[p] * kInverseOfNine) >> (shift(l) + shift(p)));
        });
        take(l, line);
      });
    });
  }

 private:
  static constexpr int kPlaces = 36, kTiles = Set::kTiles;
  static constexpr int64_t kRow = kTiles * kChannels;  // words of a group's tiles side by side
  static constexpr int64_t kMost = int64_t{1} << 25;
  static constexpr uint32_t kInverseOfNine = 0x38e38e39;
  using Signed = typename Set::Signed;
  using SignedWords = typename Set::SignedWords;

  // Words of transformed inputs from one place, and from one chunk, to the next.
  template <bool by_place>
  int64_t place_step() const {
    return by_place ? chunks_ * kRow : kRow;
  }
  template <bool by_place>
  static constexpr int64_t kChunkStep = by_place ? kRow : kPlaces * kRow;

  template <bool by_place, class Finish>
  void run_blocks(const MatmulRows& rows, int64_t first_panel, int64_t last_panel, const Finish& finish) const {
    WinogradBlock block;
    block.lines = rows.count / width_;
    block.width = width_;
    block.across = (width_ + 3) / 4;
    const int64_t total = (block.lines + 3) / 4 * block.across, parts = (total + tiles_ - 1) / tiles_;
    const int64_t most = ((total + parts - 1) / parts + kTiles - 1) / kTiles * kTiles;
    // [group of tiles][chunk][place][tile][channel], or [group of tiles][place][chunk][tile][channel]
    auto* inputs = reinterpret_cast<int16_t*>(rows.scratch);
    auto* products = reinterpret_cast<int32_t*>(inputs + kPlaces * tiles_ * chunks_ * kChannels);
    block.products = products;
    for (block.first = 0; block.first < total; block.first += most) {
      block.count = std::min(most, total - block.first);
      transform_inputs<by_place>(*rows.grid, block, inputs);
      for (int64_t panel = first_panel; panel < last_panel; ++panel) {
        multiply<by_place>(block.count, Set::vectors(columns_ - panel * kColumns), inputs,
                           weights_.data() + panel * kPlaces * channels_ * kColumns, products);
        finish(panel, block);
      }
    }
  }

  static constexpr int shift(int output) { return output == 0 ? 3 : output == 1 ? 2 : 1; }

  static Sums load(const int32_t* from) {
    Sums value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }

  // Places 0 and 5, 1 and 2, or 3 and 4.
  static constexpr int place(int pair, int which) { return pair == 0 ? 5 * which : 2 * pair - 1 + which; }

  __attribute__((always_inline)) static void transform_pair(int pair, const Words (&d)[6], Words* first,
                                                            Words* second) {
    if (pair == 0) {
      *first = ((d[0] - d[2]) << 2) + (d[4] - d[2]);
      *second = (d[5] - d[3]) - ((d[3] - d[1]) << 2);
    } else if (pair == 1) {
      const Words even = d[4] - (d[2] << 2), odd = d[3] - (d[1] << 2);
      *first = even + odd, *second = even - odd;
    } else {
      const Words even = d[4] - d[2], odd = (d[3] - d[1]) << 1;
      *first = even + odd, *second = even - odd;
    }
  }

  static void transform_weights(const Words (&g)[3], Words* to) {
    const Words ends = g[0] + g[2], far = g[0] + (g[2] << 2), twice = g[1] << 1;
    to[0] = g[0] * 6, to[1] = ends + g[1], to[2] = ends - g[1], to[3] = far + twice, to[4] = far - twice,
    to[5] = g[2] * 6;
  }

  // Outputs 0 and 2, or 1 and 3.
  __attribute__((always_inline)) static void transform_sums(int pair, const Sums (&m)[6], Sums* first, Sums* second) {
    if (pair == 0) {
      const Sums near = m[1] + m[2], far = m[3] + m[4];
      *first = m[0] - (near << 2) + far, *second = far - near;
    } else {
      const Sums near = m[1] - m[2], far = m[3] - m[4];
      *first = far - (near + near), *second = (far + far) - near + m[5];
    }
  }

  // The last chunk ends with the channels, and its first ones are those of the chunk before it, without weights.
  int64_t first_channel(int64_t chunk) const { return std::min(chunk * kChannels, channels_ - kChannels); }
  int64_t skipped_pairs(int64_t chunk) const { return (chunk * kChannels - first_channel(chunk)) / 2; }

  // Two neighbouring bytes of every four, as words.
  static Words spread(Sums fours, int pair) {
    const Sums two = fours >> (16 * pair), apart = (two & 0xff) | ((two & 0xff00) << 8);
    return Words(SignedWords(Words(apart) << 8) >> 8);
  }

  [[gnu::hot]] void pack(const MatmulSpec& spec) {
    const int64_t filter = 9 * channels_;
    for (int64_t panel = 0; panel < panels(); ++panel) {
      const int vectors = Set::vectors(columns_ - panel * kColumns);
      for (int v = 0; v < vectors; ++v) {
        int16_t* to = weights_.data() + panel * kPlaces * channels_ * kColumns + v * kChannels;
        const int8_t* filters[kLanes];  // a column that is not there is another one
        for (int i = 0; i < kLanes; ++i) {
          const int64_t column = panel * kColumns + Set::column_of(static_cast<int>(v * kLanes) + i);
          filters[i] = spec.weights + std::min(column, columns_ - 1) * filter;
        }
        for (int64_t c = 0; c < channels_; c += 4) {
          Sums taps[3][3];
          for (int64_t k = 0; k < 9; ++k) {
            uint32_t fours[kLanes];
            for (int i = 0; i < kLanes; ++i) std::memcpy(fours + i, filters[i] + k * channels_ + c, 4);
            std::memcpy(&taps[k % 3][k / 3], fours, sizeof fours);
          }
          for (int pair = 0; pair < 2; ++pair, to += kChannels * vectors) {
            Words lines[3][6], places[6];
            for (int j = 0; j < 3; ++j) {
              const Words column[3] = {spread(taps[j][0], pair), spread(taps[j][1], pair), spread(taps[j][2], pair)};
              transform_weights(column, lines[j]);
            }
            for (int64_t i = 0; i < 6; ++i) {
              const Words line[3] = {lines[0][i], lines[1][i], lines[2][i]};
              transform_weights(line, places);
              for (int64_t j = 0; j < 6; ++j) {
                std::memcpy(to + (6 * i + j) * channels_ * kLanes * vectors, &places[j], sizeof(Words));
              }
            }
          }
        }
      }
    }
  }

  // Neighbouring tiles share two columns, so that columns of some tiles are transformed first.
  template <bool by_place>
  __attribute__((noinline)) void transform_inputs(const MatmulGrid& grid, const WinogradBlock& block,
                                                  int16_t* inputs) const {
    constexpr int64_t kTogether = 4, kMostPixels = 4 * kTogether + 2;
    const int64_t step = place_step<by_place>();
    Words transformed[6][kMostPixels];
    for (int64_t first = 0; first < block.count;) {
      const int64_t y = block.line(first), x = block.column(first);
      const int64_t count = std::min({kTogether, block.count - first, block.across - x / 4});
      const int64_t last_line = std::min<int64_t>(5, block.lines - y + 1), last_pixel = block.width - x + 1;
      const uint8_t* base = grid.base + (grid.first / width_ + y) * grid.line_step + x * grid.row_step;
      for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
        const uint8_t* from = base + first_channel(chunk);
        for (int64_t pixel = 0; pixel < 4 * count + 2; ++pixel) {
          const uint8_t* at = from + std::min(pixel, last_pixel) * grid.row_step;
          Words column[6];
          unroll<6>([&](int i) __attribute__((always_inline)) {
            column[i] = Set::widen(at + (i < last_line ? i : last_line) * grid.line_step);
          });
          unroll<3>([&](int pair) __attribute__((always_inline)) {
            transform_pair(pair, column, &transformed[place(pair, 0)][pixel], &transformed[place(pair, 1)][pixel]);
          });
        }
        for (int64_t tile = first; tile < first + count; ++tile) {
          int16_t* to = inputs + tile / kTiles * kPlaces * chunks_ * kRow + chunk * kChunkStep<by_place> +
                        tile % kTiles * kChannels;
          for (int64_t i = 0; i < 6; ++i, to += 6 * step) {
            Words line[6];
            const Words* pixels = transformed[i] + 4 * (tile - first);
            unroll<6>([&](int j) __attribute__((always_inline)) { line[j] = pixels[j]; });
            unroll<3>([&](int pair) __attribute__((always_inline)) {
              Words ends[2];
              transform_pair(pair, line, &ends[0], &ends[1]);
              std::memcpy(to + place(pair, 0) * step, &ends[0], sizeof(Words));
              std::memcpy(to + place(pair, 1) * step, &ends[1], sizeof(Words));
            });
          }
        }
      }
      first += count;
    }
  }

  template <bool by_place>
  void multiply(int64_t count, int vectors, const int16_t* inputs, const int16_t* weights, int32_t* products) const {
    for (int k = 0; k < kPlaces; ++k, weights += channels_ * kLanes * vectors) {
      for (int64_t t = 0; t < count; t += kTiles) {
        const int16_t* tiles = inputs + t / kTiles * kPlaces * chunks_ * kRow + k * place_step<by_place>();
        int32_t* sums = products + (t * kPlaces + k) * kColumns;
        if (vectors == 2) {
          multiply_any<2, by_place>(count - t, tiles, weights, sums);
        } else {
          multiply_any<1, by_place>(count - t, tiles, weights, sums);
        }
      }
    }
  }

  template <int vectors, bool by_place>
  void multiply_any(int64_t count, const int16_t* inputs, const int16_t* weights, int32_t* products) const {
    if (count > kTiles * 3 / 4) return multiply_tiles<kTiles, vectors, by_place>(inputs, weights, products);
    if (count > kTiles / 2) return multiply_tiles<kTiles * 3 / 4, vectors, by_place>(inputs, weights, products);
    if (count > kTiles / 4) return multiply_tiles<kTiles / 2, vectors, by_place>(inputs, weights, products);
    return multiply_tiles<kTiles / 4, vectors, by_place>(inputs, weights, products);
  }

  template <int count, int vectors, bool by_place>
  __attribute__((noinline)) void multiply_tiles(const int16_t* inputs, const int16_t* weights,
                                                int32_t* products) const {
    Sums sums[count][vectors];
    unroll<count * vectors>([&](int i) __attribute__((always_inline)) { sums[i / vectors][i % vectors] = Sums{}; });
    for (int64_t chunk = 0; chunk < chunks_; ++chunk, inputs += kChunkStep<by_place>) {
      for (int64_t pair = skipped_pairs(chunk); pair < kLanes; ++pair, weights += kChannels * vectors) {
        Sums w[vectors];
        unroll<vectors>(
            [&](int v) __attribute__((always_inline)) { std::memcpy(&w[v], weights + v * kChannels, sizeof(Sums)); });
        unroll<count>([&](int t) __attribute__((always_inline)) {
          uint32_t two;
          std::memcpy(&two, inputs + t * kChannels + 2 * pair, sizeof two);
          const Sums x = two - Sums{};
          unroll<vectors>([&](int v)
                              __attribute__((always_inline)) { sums[t][v] = Set::add_products(sums[t][v], x, w[v]); });
        });
      }
    }
    unroll<count * vectors>([&](int i) __attribute__((always_inline)) {
      std::memcpy(products + i / vectors * kPlaces * kColumns + i % vectors * kLanes, &sums[i / vectors][i % vectors],
                  sizeof(Sums));
    });
  }

  int64_t columns_, channels_, width_, chunks_;
  int64_t tiles_;                  // that are worked on together
  AlignedArray<int16_t> weights_;  // [panel][place][pair of channels][vector][slot][channel of the pair]
};

}  // namespace bittrue::BITTRUE_ISA

// Sums of products of real numbers in order, for files of an instruction set. BITTRUE_ISA is their namespace: each set must
// have its own copy, as each is compiled with other flags. No flag may contract a product and a sum into one operation.
//
// Every lane is one output: its terms are added one after the other, as rules::binary32_in_order says.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "isa/cores.h"
#include "isa/tools.h"

namespace bittrue::BITTRUE_ISA {

// One term of a sum with two roundings.
struct TwoRoundings {
  static constexpr bool kFromSums = false;
  template <class Vector>
  static Vector add(Vector sum, Vector x, Vector w) {
    return sum + x * w;
  }
};

// `Vector` is a vector of binary32 or binary64 numbers as the compiler's extension makes them. `Term` adds a product to a sum; sums begin with
// +0, or with what lies where they go; those of parts begin with +0, and are added to it.
template <class Vector, class Term = TwoRoundings>
struct RealTiles {
  using Real = std::decay_t<decltype(std::declval<Vector>()[0])>;
  using Rows = RowsOf<Real>;
  static constexpr int64_t kLanes = sizeof(Vector) / sizeof(Real);

  static Vector load(const Real* from) {
    Vector value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }

  static Vector begin(const Real* sums) {
    if constexpr (Term::kFromSums) return load(sums);
    return Vector{};
  }

  // sums[r][v] += x[r][k] * weights[v] for one term.
  template <int kRows, int kVectors>
  __attribute__((always_inline)) static void add_term(const Real* const (&x)[kRows], int64_t k, const Real* weights,
                                                      Vector (&sums)[kRows][kVectors]) {
    Vector w[kVectors];
    unroll<kVectors>([&](int v) __attribute__((always_inline)) { w[v] = load(weights + v * kLanes); });
    unroll<kRows>([&](int r) __attribute__((always_inline)) {
      const Vector value = x[r][k] - Vector{};
      unroll<kVectors>([&](int v) __attribute__((always_inline)) { sums[r][v] = Term::add(sums[r][v], value, w[v]); });
    });
  }

  template <int kRows, int kVectors>
  __attribute__((noinline)) static void tile(const Rows& rows, int64_t first, const Real* panel) {
    Real* out = rows.sums + first * rows.stride;
    Vector sums[kRows][kVectors];
    unroll<kRows>([&](int r) __attribute__((always_inline)) {
      unroll<kVectors>([&](int v)
                           __attribute__((always_inline)) { sums[r][v] = begin(out + r * rows.stride + v * kLanes); });
    });
    for (int64_t s = 0; s < rows.segments; ++s, panel += rows.depth * kVectors * kLanes) {
      const Real* const* at = rows.rows + s * rows.capacity + first;
      if (at[0] == nullptr) continue;
      const Real* x[kRows];
      unroll<kRows>([&](int r) __attribute__((always_inline)) { x[r] = at[r]; });
      const Real* weights = panel;
      for (int64_t k = 0; k < rows.depth; ++k, weights += kVectors * kLanes) add_term(x, k, weights, sums);
    }
    store_tile(sums, out, rows.stride);
  }

  template <int kRows, int kVectors>
  __attribute__((always_inline)) static void store_tile(const Vector (&sums)[kRows][kVectors], Real* out,
                                                        int64_t stride) {
    unroll<kRows>([&](int r) __attribute__((always_inline)) {
      unroll<kVectors>([&](int v) __attribute__((always_inline)) {
        std::memcpy(out + r * stride + v * kLanes, &sums[r][v], sizeof(Vector));
      });
    });
  }

  // Terms [begin, end) of some rows at every spot. False where a result is no finite number.
  template <int kRows, int kVectors, bool kPlaced>
  __attribute__((noinline)) static bool part(const Rows& rows, int64_t first, const Real* panel, int64_t begin,
                                             int64_t end) {
    const bool begun = begin > 0 || rows.begins == nullptr;
    // Adding -0 changes nothing.
    const bool bare = !begun && rows.begins == kNothing<Real>.numbers && rows.factor == 1;
    const int64_t stride = begun ? rows.stride : rows.begins_stride;
    const Real* const starts = (begun ? rows.sums : rows.begins) + first * stride;
    Real* const outs = rows.sums + first * rows.stride;
    const Real* x[kRows];
    const int64_t low = kPlaced ? begin + rows.from : begin, high = kPlaced ? std::min(end, begin + rows.to) : end;
    const int64_t skipped = begin / rows.part * rows.gap;
    unroll<kRows>([&](int r) __attribute__((always_inline)) { x[r] = rows.rows[first + r] + skipped; });
    Vector odd = {};
    for (const RealSpot *spot = rows.spots, *last = spot + rows.spot_count; spot != last; ++spot) {
      Vector sums[kRows][kVectors];
      unroll<kRows>([&](int r) __attribute__((always_inline)) {
        unroll<kVectors>([&](int v) __attribute__((always_inline)) { sums[r][v] = Vector{}; });
      });
      const Real* const own = panel + spot->panel;
      const auto at = [&](int64_t k) __attribute__((always_inline)) {
        return kPlaced ? own + rows.places[k] : own + k * (kVectors * kLanes);
      };
      for (int64_t k = low; k < high; ++k) add_term(x, k, at(k), sums);
      const Real* const from = starts + (stride == 0 ? 0 : spot->out);
      const Vector factor = rows.factor - Vector{};
      if (!bare) {
        unroll<kRows>([&](int r) __attribute__((always_inline)) {
          unroll<kVectors>([&](int v) __attribute__((always_inline)) {
            sums[r][v] = Term::add(load(from + r * stride + v * kLanes), sums[r][v], factor);
          });
        });
      }
      if (end == rows.depth) odd += limit(rows, first, sums);
      store_tile(sums, outs + spot->out, rows.stride);
    }
    return is_nought(odd);
  }

  // Adds biases and keeps results within their limits; 0, or NaN where one is no finite number.
  template <int kRows, int kVectors>
  __attribute__((always_inline)) static Vector limit(const Rows& rows, int64_t first, Vector (&sums)[kRows][kVectors]) {
    const Real* biases = rows.biases == nullptr ? kNothing<Real>.numbers : rows.biases + first;
    const Vector low = rows.low - Vector{}, high = rows.high - Vector{};
    Vector odd = {};
    unroll<kRows>([&](int r) __attribute__((always_inline)) {
      const Vector bias = biases[r] - Vector{};
      unroll<kVectors>([&](int v) __attribute__((always_inline)) {
        Vector value = sums[r][v] + bias;
        odd += value - value;
        value = value < low ? low : value;
        sums[r][v] = value > high ? high : value;
      });
    });
    return odd;
  }

  // tile(rows, first): all rows, in tiles of `kRows`; the last ones by smaller tiles, by two of one height rather than a
  // high and a low one.
  template <int kRows, class Tile>
  __attribute__((always_inline)) static void in_tiles(int64_t count, int64_t first, const Tile& tile) {
    constexpr int kNext = kRows > 4 ? 4 : kRows / 2, kTwo = 2 * kNext > kRows ? 2 * kNext : 0;
    for (; first + kRows <= count && count - first != kTwo; first += kRows) {
      tile(std::integral_constant<int, kRows>{}, first);
    }
    if constexpr (kRows > 1) in_tiles<kNext>(count, first, tile);
  }

  template <int kRows, int kVectors>
  static void tiles(const Rows& rows, const Real* panel) {
    in_tiles<kRows>(rows.count, 0, [&](auto height, int64_t first) __attribute__((always_inline)) {
      tile<height.value, kVectors>(rows, first, panel);
    });
  }

  // Part by part, so that the rows' terms and the panel's stay in the first cache.
  template <int kRows, int kVectors, bool kPlaced>
  static bool parts(const Rows& rows, const Real* panel) {
    bool finite = true;
    for (int64_t begin = 0; begin < rows.depth; begin += rows.part) {
      const int64_t end = std::min(begin + rows.part, rows.depth);
      in_tiles<kRows>(rows.count, 0, [&](auto height, int64_t first) __attribute__((always_inline)) {
        finite &= part<height.value, kVectors, kPlaced>(rows, first, panel, begin, end);
      });
    }
    return finite;
  }

  // Sums of `kVectors` vectors of channels over all taps.
  template <int kVectors>
  static void taps(const float* const* inputs, const float* const* weights, int64_t count, int64_t channel,
                   float* out) {
    Vector sums[kVectors];
    unroll<kVectors>([&](int v) __attribute__((always_inline)) { sums[v] = begin(out + channel + v * kLanes); });
    for (int64_t t = 0; t < count; ++t) {
      const float *x = inputs[t] + channel, *w = weights[t] + channel;
      unroll<kVectors>([&](int v) __attribute__((always_inline)) {
        sums[v] = Term::add(sums[v], load(x + v * kLanes), load(w + v * kLanes));
      });
    }
    unroll<kVectors>([&](int v) __attribute__((always_inline)) {
      std::memcpy(out + channel + v * kLanes, &sums[v], sizeof(Vector));
    });
  }

  static void all_taps(const float* const* inputs, const float* const* weights, int64_t count, int64_t channels,
                       float* out) {
    int64_t c = 0;
    for (; c + 4 * kLanes <= channels; c += 4 * kLanes) taps<4>(inputs, weights, count, c, out);
    for (; c + kLanes <= channels; c += kLanes) taps<1>(inputs, weights, count, c, out);
    for (; c < channels; ++c) {
      float sum = Term::kFromSums ? out[c] : 0.0f;
      for (int64_t t = 0; t < count; ++t) sum = Term::add(sum, inputs[t][c], weights[t][c]);
      out[c] = sum;
    }
  }

  // `kVectors` vectors of all rows; how many columns these are.
  template <int kVectors>
  static int64_t add_outer(float* rows, int64_t count, int64_t width, const float* factors, const float* first,
                           const float* second) {
    Vector numbers[kVectors];
    unroll<kVectors>([&](int v) __attribute__((always_inline)) { numbers[v] = load(second + v * kLanes); });
    for (int64_t k = 0; k < count; ++k, rows += width) {
      const Vector by = first[k] - Vector{}, factor = (factors == nullptr ? 0.0f : factors[k]) - Vector{};
      unroll<kVectors>([&](int v) __attribute__((always_inline)) {
        Vector row = load(rows + v * kLanes);
        row = factors == nullptr ? Term::add(row, by, numbers[v]) : Term::add(by * numbers[v], factor, row);
        std::memcpy(rows + v * kLanes, &row, sizeof(Vector));
      });
    }
    return kVectors * kLanes;
  }

  static bool is_nought(const Vector& vector) {
    uint64_t words[sizeof(Vector) / 8], all = 0;
    std::memcpy(words, &vector, sizeof(Vector));
    for (const uint64_t word : words) all |= word;
    return all == 0;
  }

  // `kVectors` vectors of a plane at `place`; what it returns is 0, or NaN where a result is no finite number.
  template <int kVectors>
  static Vector plane_part(const RealPlaneRows& rows, int64_t place, float* out) {
    Vector sums[kVectors] = {}, odd = {};
    for (int64_t t = 0; t < rows.taps; ++t) {
      const float* x = rows.inputs[t] + place;
      const Vector weight = rows.weights[t] - Vector{};
      unroll<kVectors>(
          [&](int v) __attribute__((always_inline)) { sums[v] = Term::add(sums[v], load(x + v * kLanes), weight); });
    }
    const Vector bias = rows.bias - Vector{}, low = rows.low - Vector{}, high = rows.high - Vector{};
    unroll<kVectors>([&](int v) __attribute__((always_inline)) {
      Vector value = sums[v] + bias;
      odd += value - value;
      value = value < low ? low : value;
      value = value > high ? high : value;
      std::memcpy(out + v * kLanes, &value, sizeof(Vector));
    });
    return odd;
  }

  template <int kMost>
  static bool plane(const RealPlaneRows& rows) {
    Vector odd = {};
    for (int64_t y = 0; y < rows.lines; ++y) {
      const int64_t line = y * rows.step;
      float* out = rows.out + y * rows.out_step;
      if (rows.count < kLanes) {
        float few[kLanes];
        odd += plane_part<1>(rows, line, few);
        std::memcpy(out, few, static_cast<size_t>(rows.count) * sizeof(float));
        continue;
      }
      int64_t i = 0;
      for (; i + kMost * kLanes <= rows.count; i += kMost * kLanes) odd += plane_part<kMost>(rows, line + i, out + i);
      // The last numbers once more, with those before them.
      if (i > 0 && i + kLanes < rows.count) {
        i = rows.count - kMost * kLanes;
        odd += plane_part<kMost>(rows, line + i, out + i);
        continue;
      }
      if constexpr (kMost > 4) {
        for (; i + 2 * kLanes <= rows.count; i += 2 * kLanes) odd += plane_part<2>(rows, line + i, out + i);
      }
      for (; i + kLanes <= rows.count; i += kLanes) odd += plane_part<1>(rows, line + i, out + i);
      i = rows.count - kLanes;
      if (rows.count % kLanes != 0) odd += plane_part<1>(rows, line + i, out + i);
    }
    return is_nought(odd);
  }

  // `kOutputs` neighbours of a line; 0, or NaN where a result of products is no finite number.
  template <RealLaneRows::Join kJoin, int kOutputs>
  static Vector lane_part(const RealLaneRows& rows, const float* image, float* out) {
    constexpr int kParts = RealLaneRows::kChannels / kLanes;
    constexpr bool kProducts = kJoin == RealLaneRows::Join::products;
    const Vector start = (kProducts ? 0.0f : rows.start) - Vector{};
    Vector sums[kOutputs][kParts], odd = {};
    unroll<kOutputs>([&](int o) __attribute__((always_inline)) {
      unroll<kParts>([&](int p) __attribute__((always_inline)) { sums[o][p] = start; });
    });
    const float* weights = rows.weights;
    for (int64_t t = 0; t < rows.taps; ++t, weights += kProducts ? RealLaneRows::kChannels : 0) {
      const float* x = image + rows.offsets[t];
      Vector w[kParts];
      unroll<kParts>([&](int p)
                         __attribute__((always_inline)) { w[p] = kProducts ? load(weights + p * kLanes) : start; });
      unroll<kOutputs>([&](int o) __attribute__((always_inline)) {
        unroll<kParts>([&](int p) __attribute__((always_inline)) {
          const Vector value = load(x + o * rows.stride + p * kLanes);
          Vector& sum = sums[o][p];
          if constexpr (kProducts) sum = Term::add(sum, value, w[p]);
          if constexpr (kJoin == RealLaneRows::Join::sums) sum = sum + value;
          if constexpr (kJoin == RealLaneRows::Join::largest) sum = sum < value ? value : sum;
        });
      });
    }
    unroll<kOutputs>([&](int o) __attribute__((always_inline)) {
      unroll<kParts>([&](int p) __attribute__((always_inline)) {
        Vector value = sums[o][p];
        if constexpr (kProducts) {
          const Vector low = rows.low - Vector{}, high = rows.high - Vector{};
          value += load(rows.biases + p * kLanes);
          odd += value - value;
          value = value < low ? low : value;
          value = value > high ? high : value;
        }
        std::memcpy(out + o * RealLaneRows::kChannels + p * kLanes, &value, sizeof(Vector));
      });
    });
    return odd;
  }

  template <RealLaneRows::Join kJoin>
  static bool lanes(const RealLaneRows& rows) {
    constexpr int kMost = std::max<int>(2, kLanes / 2);
    Vector odd = {};
    for (int64_t y = 0; y < rows.lines; ++y) {
      const float* image = rows.image + y * rows.step;
      float* out = rows.out + y * rows.out_step;
      int64_t i = 0;
      const auto take = [&](auto outputs) __attribute__((always_inline)) {
        for (; i + outputs.value <= rows.count; i += outputs.value) {
          odd += lane_part<kJoin, outputs.value>(rows, image + i * rows.stride, out + i * RealLaneRows::kChannels);
        }
      };
      take(std::integral_constant<int, kMost>{});
      if constexpr (kMost > 4) take(std::integral_constant<int, 4>{});
      if constexpr (kMost > 2) take(std::integral_constant<int, 2>{});
      take(std::integral_constant<int, 1>{});
    }
    return is_nought(odd);
  }
};

}  // namespace bittrue::BITTRUE_ISA

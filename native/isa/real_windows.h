// Windows of an image times filters side by side, for files of an instruction set: every lane is a filter. BITTRUE_ISA is
// their namespace, as in isa/real_tiles.h.
#pragma once

#include "isa/cores.h"
#include "isa/tools.h"

namespace bittrue::BITTRUE_ISA {

// `Tiles` are RealTiles with one rounding per term.
template <class Tiles, class Vector>
struct WindowTiles {
  static constexpr int64_t kLanes = Tiles::kLanes;

  // `kRows` windows from number `first` on; 0, or NaN where a result is no finite number.
  template <int kRows, int kVectors>
  __attribute__((noinline)) static Vector tile(const RealWindows& windows, int64_t first, const float* panel) {
    const RealWindows::Place* at = windows.places + first;
    Vector sums[kRows][kVectors] = {};
    for (const RealWindows::Taps *taps = windows.taps, *last = taps + windows.tap_count; taps != last; ++taps) {
      const float* x[kRows];
      unroll<kRows>([&](int r) __attribute__((always_inline)) { x[r] = windows.image + (at[r].image + taps->image); });
      const float* weights = panel + taps->panel * (kVectors * kLanes);
      for (int64_t k = 0; k < taps->terms; ++k, weights += kVectors * kLanes) {
        Tiles::template add_term<kRows, kVectors>(x, k, weights, sums);
      }
    }
    float* out[kRows];
    unroll<kRows>([&](int r) __attribute__((always_inline)) { out[r] = windows.sums + at[r].sums; });
    if (windows.begun) {
      unroll<kRows>([&](int r) __attribute__((always_inline)) {
        unroll<kVectors>(
            [&](int v) __attribute__((always_inline)) { sums[r][v] = Tiles::load(out[r] + v * kLanes) + sums[r][v]; });
      });
    }
    Vector odd = {};
    if (windows.biases != nullptr) {
      const Vector low = windows.low - Vector{}, high = windows.high - Vector{};
      unroll<kVectors>([&](int v) __attribute__((always_inline)) {
        const Vector bias = Tiles::load(windows.biases + v * kLanes);
        unroll<kRows>([&](int r) __attribute__((always_inline)) {
          Vector value = sums[r][v] + bias;
          odd += value - value;
          value = value < low ? low : value;
          sums[r][v] = value > high ? high : value;
        });
      });
    }
    unroll<kRows>([&](int r) __attribute__((always_inline)) {
      unroll<kVectors>(
          [&](int v) __attribute__((always_inline)) { std::memcpy(out[r] + v * kLanes, &sums[r][v], sizeof(Vector)); });
    });
    return odd;
  }

  // All windows, in tiles of nearly the same height.
  template <int kVectors, int... kLess>
  static bool all(const RealWindows& windows, const float* panel, std::integer_sequence<int, kLess...>) {
    using Tile = Vector (*)(const RealWindows&, int64_t, const float*);
    static constexpr Tile kTiles[] = {tile<kLess + 1, kVectors>...};
    constexpr int64_t kMost = sizeof...(kLess);
    Vector odd = {};
    for (int64_t first = 0, tiles = (windows.count + kMost - 1) / kMost; tiles > 0; --tiles) {
      const int64_t height = (windows.count - first + tiles - 1) / tiles;
      odd += kTiles[height - 1](windows, first, panel);
      first += height;
    }
    return Tiles::is_nought(odd);
  }

  template <int kMostVectors, int kMostRows>
  static bool run(const RealWindows& windows, const float* panel, int64_t width) {
    if constexpr (kMostVectors > 1) {
      if (width < kMostVectors * kLanes) return run<kMostVectors / 2, kMostRows>(windows, panel, width);
    }
    return all<kMostVectors>(windows, panel, std::make_integer_sequence<int, kMostRows>{});
  }
};

}  // namespace bittrue::BITTRUE_ISA

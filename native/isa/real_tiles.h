// Sums of binary32 products in order, for files of an instruction set. BITTRUE_ISA is their namespace: each set must
// have its own copy, as each is compiled with other flags. No flag may contract a product and a sum into one operation.
//
// Every lane is one output: its terms are added one after the other, as rules::binary32_in_order says.
#pragma once

#include <algorithm>
#include <cstring>

#include "isa/cores.h"
#include "isa/tools.h"

namespace bittrue::BITTRUE_ISA {

// One term of a sum with two roundings.
struct TwoRoundings {
  static constexpr bool kFromSums = false, kInParts = false;
  template <class Vector>
  static Vector add(Vector sum, Vector x, Vector w) {
    return sum + x * w;
  }
};

// `Vector` is a vector of floats as the compiler's extension makes them. `Term` adds a product to a sum; sums begin with
// +0, or with what lies where they go; those in parts begin with +0 again and again, and each part is added there.
template <class Vector, class Term = TwoRoundings>
struct RealTiles {
  static constexpr int64_t kLanes = sizeof(Vector) / sizeof(float);
  static constexpr float kInfinity = __builtin_inff();

  static Vector load(const float* from) {
    Vector value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }

  static Vector begin(const float* sums) {
    if constexpr (Term::kFromSums) return load(sums);
    return Vector{};
  }

  template <int kRows, int kVectors, bool kPlaced>
  __attribute__((noinline)) static bool tile(const RealRows& rows, int64_t first, const float* panel, float* out) {
    Vector sums[kRows][kVectors], odd[kVectors] = {};
    unroll<kRows>([&](int r) __attribute__((always_inline)) {
      unroll<kVectors>([&](int v)
                           __attribute__((always_inline)) { sums[r][v] = begin(out + r * rows.stride + v * kLanes); });
    });
    for (int64_t s = 0; s < rows.segments; ++s, panel += rows.depth * kVectors * kLanes) {
      const float* const* at = rows.rows + s * rows.capacity + first;
      if (at[0] == nullptr) continue;
      const float* x[kRows];
      unroll<kRows>([&](int r) __attribute__((always_inline)) { x[r] = at[r]; });
      const float* weights = panel;
      for (int64_t k = 0, end = rows.depth; k < rows.depth;) {
        if constexpr (Term::kInParts) end = std::min(k + rows.part, rows.depth);
        for (; k < end; ++k, weights += kVectors * kLanes) {
          if constexpr (kPlaced) weights = panel + rows.places[k];
          Vector w[kVectors];
          unroll<kVectors>([&](int v) __attribute__((always_inline)) { w[v] = load(weights + v * kLanes); });
          unroll<kRows>([&](int r) __attribute__((always_inline)) {
            const Vector value = x[r][k] - Vector{};
            unroll<kVectors>([&](int v)
                                 __attribute__((always_inline)) { sums[r][v] = Term::add(sums[r][v], value, w[v]); });
          });
        }
        if constexpr (Term::kInParts) {
          const bool begun = k > rows.part || rows.begins == nullptr, done = k == rows.depth;
          const int64_t stride = begun ? rows.stride : rows.begins_stride;
          const float* from = begun ? out : rows.begins + first * stride;
          const Vector low = (done ? rows.low : -kInfinity) - Vector{},
                       high = (done ? rows.high : kInfinity) - Vector{};
          // Adding -0 changes nothing.
          const bool bare = from == kNothing.numbers && rows.factor == 1.0f, biased = done && rows.biases != nullptr;
          unroll<kRows>([&](int r) __attribute__((always_inline)) {
            const Vector bias = (biased ? rows.biases[first + r] : -0.0f) - Vector{};
            unroll<kVectors>([&](int v) __attribute__((always_inline)) {
              Vector value = sums[r][v];
              if (!bare) value = Term::add(load(from + r * stride + v * kLanes), value, rows.factor - Vector{});
              value = value + bias;
              odd[v] += value - value;  // 0, or NaN for ever
              value = value < low ? low : value;
              value = value > high ? high : value;
              std::memcpy(out + r * rows.stride + v * kLanes, &value, sizeof(Vector));
              sums[r][v] = Vector{};
            });
          });
        }
      }
    }
    if constexpr (Term::kInParts) {
      for (int v = 1; v < kVectors; ++v) odd[0] += odd[v];
      return is_nought(odd[0]);
    }
    unroll<kRows>([&](int r) __attribute__((always_inline)) {
      unroll<kVectors>([&](int v) __attribute__((always_inline)) {
        std::memcpy(out + r * rows.stride + v * kLanes, &sums[r][v], sizeof(Vector));
      });
    });
    return true;
  }

  // All rows, in tiles of `kRows`; the last ones by smaller tiles, by two of one height rather than a high and a low one.
  template <int kRows, int kVectors, bool kPlaced = false>
  static bool tiles(const RealRows& rows, int64_t first, const float* panel) {
    constexpr int kNext = kRows > 4 ? 4 : kRows / 2, kTwo = 2 * kNext > kRows ? 2 * kNext : 0;
    bool finite = true;
    for (; first + kRows <= rows.count && rows.count - first != kTwo; first += kRows) {
      finite &= tile<kRows, kVectors, kPlaced>(rows, first, panel, rows.sums + first * rows.stride);
    }
    if constexpr (kRows > 1) finite &= tiles<kNext, kVectors, kPlaced>(rows, first, panel);
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
      for (; i + 4 * kLanes <= rows.count; i += 4 * kLanes) odd += plane_part<4>(rows, line + i, out + i);
      // The last numbers once more, with those before them.
      if (i > 0 && i + kLanes < rows.count) {
        i = rows.count - 4 * kLanes;
        odd += plane_part<4>(rows, line + i, out + i);
        continue;
      }
      for (; i + kLanes <= rows.count; i += kLanes) odd += plane_part<1>(rows, line + i, out + i);
      i = rows.count - kLanes;
      if (rows.count % kLanes != 0) odd += plane_part<1>(rows, line + i, out + i);
    }
    return is_nought(odd);
  }
};

}  // namespace bittrue::BITTRUE_ISA

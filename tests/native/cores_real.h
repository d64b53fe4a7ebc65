// The cores of binary32 sums: every sum keeps its order.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cores_report.h"

namespace bittrue::test {

// Numbers whose sums round: many magnitudes, both signs, zeros, numbers below the smallest normal one.
template <class T>
void fill_reals(Random& random, Exact<T>& out) {
  const bool small = random.one_in(5);
  for (int64_t i = 0; i < out.count(); ++i) {
    const double fraction = static_cast<double>(random.between(-(1 << 24), 1 << 24)) / (1 << 24);
    out[i] = random.one_in(12)
                 ? static_cast<T>(random.one_in(2) ? 0.0f : -0.0f)
                 : static_cast<T>(std::ldexp(fraction, static_cast<int>(random.between(-12, 12)) - (small ? 70 : 0)));
  }
}

template <class T>
T limited(T x, T low, T high) {
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

template <class T>
void check_matmul_of(Context& context, const MatmulOf<T>& core) {
  Random& random = context.random;
  const int64_t depths[] = {1, 2, 3, 4, 7, 8, 9, 16, 27, 33, 100};
  for (int64_t i = 0; i < context.rounds(600); ++i) {
    const int64_t width = core.lanes * random.between(1, core.vectors), depth = random.pick(depths);
    const int64_t segments = random.between(1, 6), count = random.between(1, 27),
                  capacity = count + random.between(0, 3);
    std::vector<Exact<T>> memory;
    std::vector<const T*> pointers(segments * capacity, nullptr);
    for (int64_t s = 0; s < segments; ++s) {
      if (random.one_in(6)) continue;  // left out
      for (int64_t r = 0; r < count; ++r) {
        memory.emplace_back(depth);
        fill_reals(random, memory.back());
        pointers[s * capacity + r] = memory.back().data();
      }
    }
    Exact<T> panel(segments * depth * width);
    fill_reals(random, panel);
    const int64_t stride = width + random.between(0, 2);
    Exact<T> sums((count - 1) * stride + width);
    std::vector<T> expected(sums.count(), 0.0f);
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t n = 0; n < width; ++n) {
        T total = 0;
        for (int64_t k = 0; k < segments * depth; ++k) {
          const T* row = pointers[k / depth * capacity + r];
          if (row == nullptr) continue;
          const T product = row[k % depth] * panel[k * width + n];
          total = total + product;
        }
        expected[r * stride + n] = total;
      }
    }
    RowsOf<T> rows;
    rows.rows = pointers.data();
    rows.capacity = capacity;
    rows.count = count;
    rows.segments = segments;
    rows.depth = depth;
    rows.sums = sums.data();
    rows.stride = stride;
    if (core.run != nullptr) core.run(rows, panel.data(), width);
    if (core.run != nullptr)
      context.report.expect_equal(sums.data(), expected.data(), sums.count(),
                                  std::to_string(count) + " rows of " + std::to_string(segments) + " times " +
                                      std::to_string(depth) + " times " + std::to_string(width));
    if (pointers[0] == nullptr) continue;
    // Several panels, whose sums lie side by side.
    const int64_t panels = random.between(1, 3), wide = panels * width + random.between(0, 2);
    Exact<T> several(panels * depth * width), begins((count - 1) * (wide + 1) + panels * width), biases(count);
    Exact<T> made((count - 1) * wide + panels * width);
    for (Exact<T>* numbers : {&several, &begins, &biases, &made}) fill_reals(random, *numbers);
    std::vector<RealSpot> spots;
    for (int64_t p = 0; p < panels; ++p) spots.push_back({p * depth * width, p * width});
    rows.spots = spots.data();
    rows.spot_count = panels;
    rows.sums = made.data();
    rows.stride = wide;
    rows.segments = 1;
    rows.part = random.between(1, depth + 3);
    rows.factor = random.one_in(2) ? T{1} : static_cast<T>(0.3);
    if (random.one_in(2)) rows.begins = begins.data(), rows.begins_stride = wide + 1;
    if (random.one_in(3)) rows.begins = kNothing<T>.numbers, rows.begins_stride = 0;
    if (random.one_in(2)) rows.biases = biases.data();
    if (random.one_in(2)) rows.low = random.one_in(2) ? T{0} : T{-1.5};
    if (random.one_in(2)) rows.high = 6.0f;
    Exact<T> again(made.count());
    std::copy_n(made.data(), made.count(), again.data());
    // Sums of the terms [rows.from, rows.to) of every part; whether all results are finite.
    const auto expect = [&] {
      expected.assign(again.data(), again.data() + again.count());
      bool finite = true;
      for (int64_t r = 0; r < count; ++r) {
        for (int64_t n = 0; n < panels * width; ++n) {
          T& total = expected[r * wide + n];
          if (rows.begins != nullptr) total = rows.begins[r * rows.begins_stride + (rows.begins_stride == 0 ? 0 : n)];
          const T* own = several.data() + n / width * depth * width + n % width;
          for (int64_t k = 0; k < depth; k += rows.part) {
            T part = 0;
            for (int64_t i = k + rows.from; i < std::min({depth, k + rows.part, k + rows.to}); ++i) {
              part = std::fma(pointers[r][i], own[i * width], part);
            }
            total = std::fma(part, rows.factor, total);
          }
          if (rows.biases != nullptr) total = total + biases[r];
          finite &= std::isfinite(total);
          total = limited(total, rows.low, rows.high);
        }
      }
      return finite;
    };
    const bool finite = expect();
    // Parts of rows may lie apart.
    const int64_t row_floats = depth + (depth + rows.part - 1) / rows.part * (rows.gap = random.between(0, 5));
    Exact<T> moved(count * row_floats);
    std::vector<const T*> moved_rows;
    for (int64_t r = 0; r < count; ++r) {
      T* row = moved.data() + r * row_floats;
      for (int64_t k = 0; k < depth; ++k) row[k + k / rows.part * rows.gap] = pointers[r][k];
      moved_rows.push_back(row);
    }
    rows.rows = moved_rows.data();
    const uint8_t right = finite, told = core.run_in_parts(rows, several.data(), width);
    const std::string text = std::to_string(depth) + " terms in parts of " + std::to_string(rows.part) + ", " +
                             std::to_string(panels) + " panels";
    context.report.expect_equal(&told, &right, 1, text + ", finite");
    if (finite) context.report.expect_equal(made.data(), expected.data(), made.count(), text);
    if (core.run_placed == nullptr || width > core.lanes * MatmulOf<T>::kPlacedVectors) continue;
    // The same terms, apart and in another order.
    std::vector<int64_t> places;
    const int64_t apart_floats = (depth - 1) * (width + 3) + width;
    for (int64_t k = 0; k < depth; ++k) places.push_back((depth - 1 - k) * (width + 3));
    Exact<T> apart(panels * apart_floats);
    fill_reals(random, apart);
    for (int64_t p = 0; p < panels; ++p) {
      spots[p].panel = p * apart_floats;
      for (int64_t k = 0; k < depth; ++k) {
        std::copy_n(several.data() + (p * depth + k) * width, width, apart.data() + spots[p].panel + places[k]);
      }
    }
    // Some terms are left out.
    if (random.one_in(2)) rows.from = random.between(0, rows.part), rows.to = random.between(rows.from, rows.part);
    const bool finite_again = expect();
    rows.places = places.data();
    rows.sums = again.data();
    const uint8_t right_again = finite_again, told_again = core.run_placed(rows, apart.data(), width);
    context.report.expect_equal(&told_again, &right_again, 1, text + ", placed, finite");
    if (finite_again) context.report.expect_equal(again.data(), expected.data(), again.count(), text + ", placed");
  }
}

inline void check_real_matmul(Context& context) { check_matmul_of(context, context.cores.real_matmul()); }
inline void check_wide_matmul(Context& context) { check_matmul_of(context, context.cores.wide_matmul()); }

template <class Core, class Add>
void check_taps(Context& context, const Core& core, const Add& add) {
  Random& random = context.random;
  for (int64_t i = 0; i < context.rounds(600); ++i) {
    const int64_t channels = random.one_in(2) ? random.between(1, 40) : random.between(1, 150),
                  taps = random.between(0, 12);
    std::vector<Exact<float>> memory;
    std::vector<const float*> inputs, weights;
    for (int64_t t = 0; t < 2 * taps; ++t) {
      memory.emplace_back(channels);
      fill_reals(random, memory.back());
      (t % 2 == 0 ? inputs : weights).push_back(memory.back().data());
    }
    Exact<float> out(channels);
    fill_reals(random, out);
    std::vector<float> expected(out.data(), out.data() + channels);
    for (int64_t c = 0; c < channels; ++c) {
      expected[c] = add.start(expected[c]);
      for (int64_t t = 0; t < taps; ++t) expected[c] = add(expected[c], inputs[t][c], weights[t][c]);
    }
    core(inputs.data(), weights.data(), taps, channels, out.data());
    context.report.expect_equal(out.data(), expected.data(), channels,
                                std::to_string(taps) + " taps of " + std::to_string(channels));
  }
}

struct TwoRoundings {
  static float start(float) { return 0.0f; }
  float operator()(float sum, float x, float w) const {
    const float product = x * w;
    return sum + product;
  }
};

// Goes on from what is in memory.
struct OneRounding {
  static float start(float sum) { return sum; }
  float operator()(float sum, float x, float w) const { return std::fma(x, w, sum); }
};

inline void check_real_taps(Context& context) { check_taps(context, context.cores.real_taps(), TwoRoundings()); }
inline void check_real_taps_fused(Context& context) {
  check_taps(context, context.cores.real_taps_fused(), OneRounding());
}
inline void check_real_plane(Context& context) {
  Random& random = context.random;
  for (int64_t i = 0; i < context.rounds(300); ++i) {
    const int64_t count = random.one_in(2) ? random.between(1, 20) : random.between(1, 150),
                  lines = random.between(1, 4);
    const int64_t step = count + random.between(0, 3), out_step = count + random.between(0, 2);
    const int64_t taps = random.between(0, 12), read = (lines - 1) * step + std::max<int64_t>(16, count);
    std::vector<Exact<float>> memory;
    std::vector<const float*> inputs;
    for (int64_t t = 0; t < taps; ++t) {
      memory.emplace_back(count < 16 ? read : (lines - 1) * step + count);
      fill_reals(random, memory.back());
      inputs.push_back(memory.back().data());
    }
    Exact<float> out((lines - 1) * out_step + count), weights(taps + 1);
    fill_reals(random, weights);
    fill_reals(random, out);
    RealPlaneRows rows;
    rows.inputs = inputs.data(), rows.weights = weights.data(), rows.taps = taps;
    rows.lines = lines, rows.step = step, rows.count = count, rows.out = out.data(), rows.out_step = out_step;
    if (random.one_in(2)) rows.bias = weights[taps];
    if (random.one_in(2)) rows.low = 0.0f;
    if (random.one_in(2)) rows.high = 6.0f;
    std::vector<float> expected(out.data(), out.data() + out.count());
    bool finite = true;
    for (int64_t n = 0; n < lines * count; ++n) {
      float total = 0;
      for (int64_t t = 0; t < taps; ++t) {
        total = std::fma(inputs[t][n / count * step + n % count], weights[t], total);
      }
      total = total + rows.bias;
      finite &= std::isfinite(total);
      expected[n / count * out_step + n % count] = limited(total, rows.low, rows.high);
    }
    const uint8_t right = finite, told = context.cores.real_plane()(rows);
    const std::string text =
        std::to_string(taps) + " taps of " + std::to_string(lines) + " lines of " + std::to_string(count);
    context.report.expect_equal(&told, &right, 1, text + ", finite");
    if (finite) context.report.expect_equal(out.data(), expected.data(), out.count(), text);
  }
}

inline void check_window_product(Context& context) {
  const WindowProduct& core = context.cores.window_product();
  Random& random = context.random;
  for (int64_t vectors = 1; vectors <= core.vectors; vectors *= 2) {
    for (int64_t i = 0; i < context.rounds(150); ++i) {
      const int64_t width = vectors * core.lanes, count = random.between(0, 20), line = random.between(1, 40);
      std::vector<RealWindows::Taps> taps(static_cast<size_t>(random.between(0, 6)));
      int64_t terms = 0, farthest = 0;
      for (RealWindows::Taps& one : taps) {
        one = {random.between(0, 60), terms, random.between(1, 20)};
        terms += one.terms + random.between(0, 2);
        farthest = std::max(farthest, one.image + one.terms);
      }
      std::vector<RealWindows::Place> places;
      for (int64_t r = 0; r < count; ++r) places.push_back({random.between(0, line), (count - 1 - r) * width});
      Exact<float> image(line + 1 + farthest), panel((terms + 1) * width), sums(count * width), biases(width);
      for (Exact<float>* numbers : {&image, &panel, &sums, &biases}) fill_reals(random, *numbers);
      RealWindows windows;
      windows.image = image.data(), windows.places = places.data(), windows.count = count;
      windows.taps = taps.data(), windows.tap_count = static_cast<int64_t>(taps.size());
      windows.sums = sums.data(), windows.begun = random.one_in(2);
      if (random.one_in(2)) windows.biases = biases.data();
      if (random.one_in(2)) windows.low = 0.0f;
      if (random.one_in(2)) windows.high = 6.0f;
      std::vector<float> expected(sums.data(), sums.data() + sums.count());
      bool finite = true;
      for (int64_t n = 0; n < count * width; ++n) {
        const RealWindows::Place& place = places[n / width];
        float total = 0.0f;
        for (const RealWindows::Taps& one : taps) {
          for (int64_t k = 0; k < one.terms; ++k) {
            total = std::fma(image.data()[place.image + one.image + k],
                             panel.data()[(one.panel + k) * width + n % width], total);
          }
        }
        float& sum = expected[place.sums + n % width];
        if (windows.begun) total = sum + total;
        if (windows.biases != nullptr) {
          total = total + biases.data()[n % width];
          finite &= std::isfinite(total);
          total = limited(total, windows.low, windows.high);
        }
        sum = total;
      }
      const uint8_t right = finite, told = core.run(windows, panel.data(), width);
      const std::string text = std::to_string(count) + " windows of " + std::to_string(terms) + " terms, " +
                               std::to_string(width) + " filters";
      context.report.expect_equal(&told, &right, 1, text + ", finite");
      if (finite) context.report.expect_equal(sums.data(), expected.data(), sums.count(), text);
    }
  }
}

inline void check_transpose_reals(Context& context) {
  Random& random = context.random;
  for (int64_t i = 0; i < context.rounds(300); ++i) {
    const int64_t across = random.between(0, 50), along = random.between(0, 30);
    const int64_t source_step = across + random.between(0, 5), target_step = along + random.between(0, 5);
    Exact<float> source(std::max<int64_t>(0, (along - 1) * source_step + across));
    Exact<float> target(std::max<int64_t>(0, (across - 1) * target_step + along));
    fill_reals(random, source);
    fill_reals(random, target);
    std::vector<float> expected(target.data(), target.data() + target.count());
    for (int64_t n = 0; n < across * along; ++n) {
      expected[n / along * target_step + n % along] = source[n % along * source_step + n / along];
    }
    context.cores.transpose_reals()(source.data(), source_step, target.data(), target_step, across, along);
    context.report.expect_equal(target.data(), expected.data(), target.count(),
                                std::to_string(across) + " x " + std::to_string(along));
  }
}

inline void check_add_outer(Context& context) {
  Random& random = context.random;
  for (int64_t i = 0; i < context.rounds(200); ++i) {
    const int64_t count = random.between(0, 20), width = random.between(1, 9) * 16;
    Exact<float> rows(count * width), factors(count), first(count), second(width);
    for (Exact<float>* numbers : {&rows, &factors, &first, &second}) fill_reals(random, *numbers);
    const bool scaled = random.one_in(2);
    std::vector<float> expected(rows.data(), rows.data() + rows.count());
    for (int64_t n = 0; n < count * width; ++n) {
      const int64_t k = n / width;
      const float by = first[k], number = second[n % width];
      expected[n] = scaled ? std::fma(factors[k], expected[n], by * number) : std::fma(by, number, expected[n]);
    }
    context.cores.add_outer()(rows.data(), count, width, scaled ? factors.data() : nullptr, first.data(),
                              second.data());
    bool finite = true;
    for (const float number : expected) finite &= std::isfinite(number);
    if (finite) {
      context.report.expect_equal(rows.data(), expected.data(), rows.count(),
                                  std::to_string(count) + " rows of " + std::to_string(width));
    }
  }
}

inline void check_real_lanes(Context& context) {
  constexpr int64_t kChannels = RealLaneRows::kChannels;
  using Join = RealLaneRows::Join;
  Random& random = context.random;
  for (int64_t i = 0; i < context.rounds(300); ++i) {
    const int64_t count = random.between(0, 20), lines = random.between(1, 3), taps = random.between(0, 12);
    const int64_t stride = random.between(1, 3), width = count * stride + random.between(0, 4);
    const int64_t out_width = count + random.between(0, 2);
    std::vector<int64_t> offsets;
    int64_t farthest = 0;
    for (int64_t t = 0; t < taps; ++t) {
      offsets.push_back(random.between(0, 30) * kChannels);
      farthest = std::max(farthest, offsets.back());
    }
    Exact<float> image(((lines - 1) * width + std::max<int64_t>(1, (count - 1) * stride + 1)) * kChannels + farthest);
    Exact<float> weights((taps + 1) * kChannels), out(((lines - 1) * out_width + count) * kChannels);
    fill_reals(random, image);
    fill_reals(random, weights);
    fill_reals(random, out);
    RealLaneRows rows;
    rows.join = random.one_in(3) ? Join::sums : random.one_in(2) ? Join::largest : Join::products;
    rows.image = image.data(), rows.offsets = offsets.data(), rows.taps = taps;
    rows.weights = weights.data(), rows.biases = weights.data() + taps * kChannels;
    rows.lines = lines, rows.count = count, rows.step = width * kChannels, rows.stride = stride * kChannels;
    rows.out = out.data(), rows.out_step = out_width * kChannels;
    rows.start = random.one_in(2) ? -0.0f : -2.0f;
    if (random.one_in(2)) rows.low = 0.0f;
    if (random.one_in(2)) rows.high = 6.0f;
    std::vector<float> expected(out.data(), out.data() + out.count());
    bool finite = true;
    for (int64_t n = 0; n < lines * count * kChannels; ++n) {
      const int64_t c = n % kChannels, x = n / kChannels % count, y = n / kChannels / count;
      float total = rows.join == Join::products ? 0.0f : rows.start;
      for (int64_t t = 0; t < taps; ++t) {
        const float value = image.data()[y * rows.step + x * rows.stride + offsets[t] + c];
        if (rows.join == Join::products) total = std::fma(value, weights.data()[t * kChannels + c], total);
        if (rows.join == Join::sums) total = total + value;
        if (rows.join == Join::largest) total = total < value ? value : total;
      }
      if (rows.join == Join::products) {
        total = total + rows.biases[c];
        finite &= std::isfinite(total);
        total = limited(total, rows.low, rows.high);
      }
      expected[(y * out_width + x) * kChannels + c] = total;
    }
    const uint8_t right = finite, told = context.cores.real_lanes()(rows);
    const std::string text =
        std::to_string(taps) + " taps of " + std::to_string(lines) + " lines of " + std::to_string(count);
    context.report.expect_equal(&told, &right, 1, text + ", finite");
    if (finite) context.report.expect_equal(out.data(), expected.data(), out.count(), text);
  }
}

}  // namespace bittrue::test

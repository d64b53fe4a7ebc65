// grid_sample: pixels of images between their places, at two or three coordinates for each result.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/rounding.h"
#include "operators/core/registry.h"
#include "operators/reduction/real_rows.h"

namespace bittrue {
namespace {

class GridSample final : public Kernel {
 public:
  explicit GridSample(const Step& step)
      : mode_(step.text("mode")),
        reflection_(step.text("padding") == "reflection"),
        zeros_(step.text("padding") == "zeros"),
        aligned_(step.integer("align_corners", 0, 1) != 0) {
    require_reals(step);
    const Operand &image = step.input(0), &grid = step.input(1);
    axes_ = image.rank() - 2;
    require((axes_ == 2 || axes_ == 3) && (mode_ == "nearest" || mode_ == "linear" || (mode_ == "cubic" && axes_ == 2)),
            "no native kernel for these axes");
    require(zeros_ || reflection_ || step.text("padding") == "border", "no native padding");
    require(image.elements > 0 && grid.elements > 0 && grid.type == Type::f32 && grid.dense() &&
                grid.rank() == image.rank() && grid.shape.back() == axes_ && grid.shape[0] == image.shape[0],
            "a grid does not fit");
    images_ = image.shape[0], channels_ = image.shape[1];
    for (int i = 0; i < axes_; ++i) {
      sizes_[i] = image.shape[i + 2];
      plane_ *= sizes_[i];
    }
    points_ = grid.elements / axes_ / images_;
    require(step.output().elements == images_ * channels_ * points_, "the shapes do not fit");
  }

  void run(const Run& run) const override {
    // A row is one point of all channels.
    for_rows(run, images_ * points_, 16 * channels_, [&](int64_t row, int worker) {
      run.check(worker);
      const int64_t image = row / points_, point = row % points_;
      const auto* in = reinterpret_cast<const float*>(run.inputs[0]) + image * channels_ * plane_;
      const auto* grid = reinterpret_cast<const float*>(run.inputs[1]) + row * axes_;
      auto* out = reinterpret_cast<float*>(run.outputs[0]) + image * channels_ * points_ + point;
      float places[kAxes];
      for (int i = 0; i < axes_; ++i) places[i] = place(grid[axes_ - 1 - i], sizes_[i]);
      // Which of several NaNs a sum keeps is the reference's matter.
      bool defined = true;
      const auto put = [&](int64_t channel, float value) {
        out[channel * points_] = value;
        defined &= value == value;
      };
      if (mode_ == "nearest") {
        nearest(in, places, put);
      } else if (mode_ == "linear") {
        linear(in, places, put);
      } else {
        cubic(in, places, put);
      }
      return defined;
    });
  }

 private:
  static constexpr int kAxes = 3;

  float place(float coordinate, int64_t size) const {
    const float moved = coordinate + 1.0f;
    const float at =
        aligned_ ? moved / 2.0f * static_cast<float>(size - 1) : (moved * static_cast<float>(size) - 1.0f) / 2.0f;
    // Places beyond it count as the beginning of the image, and so does NaN.
    return std::fabs(at) <= 0x1p62f ? at : aligned_ ? 0.0f : -0.5f;
  }

  int64_t reflected(int64_t at, int64_t size) const {
    const float outside = aligned_ ? 0.0f : 0.5f, low = -outside, high = static_cast<float>(size - 1) + outside;
    if (high == low) return 0;
    const float x = static_cast<float>(at), length = high - low;
    const float beyond = x < low ? low - x : x > high ? x - high : 0.0f;
    const auto times = static_cast<int64_t>(beyond / length);
    const float rest = beyond - static_cast<float>(times) * length;
    const bool from_low = (x < low) == (times % 2 == 0);
    const float found = beyond > 0 ? (from_low ? low + rest : high - rest) : x;
    return std::min(std::max(static_cast<int64_t>(found), int64_t{0}), size - 1);
  }

  // Where the pixel lies in its plane; -1 for the zeros around it.
  int64_t offset(const int64_t* positions) const {
    int64_t at = 0;
    for (int i = 0; i < axes_; ++i) {
      const int64_t position = positions[i];
      if (zeros_ && (position < 0 || position >= sizes_[i])) return -1;
      at = at * sizes_[i] +
           (reflection_ ? reflected(position, sizes_[i]) : std::min(std::max(position, int64_t{0}), sizes_[i] - 1));
    }
    return at;
  }
  static float pixel(const float* plane, int64_t at) { return at < 0 ? 0.0f : plane[at]; }

  template <class Put>
  void nearest(const float* in, const float* places, const Put& put) const {
    int64_t positions[kAxes];
    for (int i = 0; i < axes_; ++i) positions[i] = static_cast<int64_t>(std::nearbyint(places[i]));
    const int64_t at = offset(positions);
    for (int64_t c = 0; c < channels_; ++c) put(c, pixel(in + c * plane_, at));
  }

  // Rows first, then between them; zeros around images of two axes, by edges, have products of weights.
  template <class Put>
  void linear(const float* in, const float* places, const Put& put) const {
    int64_t low[kAxes], offsets[1 << kAxes];
    float near[kAxes], far[kAxes];
    for (int i = 0; i < axes_; ++i) {
      low[i] = static_cast<int64_t>(std::floor(places[i]));
      near[i] = static_cast<float>(low[i] + 1) - places[i];
      far[i] = places[i] - static_cast<float>(low[i]);
    }
    for (int corner = 0; corner < 1 << axes_; ++corner) {
      int64_t positions[kAxes];
      for (int i = 0; i < axes_; ++i) positions[i] = low[i] + (corner >> (axes_ - 1 - i) & 1);
      offsets[corner] = offset(positions);
    }
    const float ny = near[axes_ - 2], nx = near[axes_ - 1], fy = far[axes_ - 2], fx = far[axes_ - 1];
    const bool products = axes_ == 2 && zeros_ && !aligned_;
    if (axes_ == 2 && std::min({offsets[0], offsets[1], offsets[2], offsets[3]}) >= 0) {
      const float a = ny * nx, b = ny * fx, d = fy * nx, e = fy * fx;
      const float *one = in + offsets[0], *two = in + offsets[1], *three = in + offsets[2], *four = in + offsets[3];
      for (int64_t at = 0, c = 0; c < channels_; ++c, at += plane_) {
        put(c, products ? a * one[at] + b * two[at] + d * three[at] + e * four[at]
                        : ny * (nx * one[at] + fx * two[at]) + fy * (nx * three[at] + fx * four[at]));
      }
      return;
    }
    for (int64_t c = 0; c < channels_; ++c) {
      const float* image = in + c * plane_;
      const auto plane = [&](const int64_t* at) {
        const float one = pixel(image, at[0]), two = pixel(image, at[1]), three = pixel(image, at[2]);
        const float four = pixel(image, at[3]);
        if (products) return ny * nx * one + ny * fx * two + fy * nx * three + fy * fx * four;
        return ny * (nx * one + fx * two) + fy * (nx * three + fx * four);
      };
      put(c, axes_ == 2 ? plane(offsets) : near[0] * plane(offsets) + far[0] * plane(offsets + 4));
    }
  }

  // Of the four pixels around a place, the second one of which it lies x behind.
  static void weights(float x, float* found) {
    constexpr float kFactor = -0.75f;
    const auto outer = [](float y) {
      return ((kFactor * y - 5.0f * kFactor) * y + 8.0f * kFactor) * y - 4.0f * kFactor;
    };
    const auto inner = [](float y) { return ((kFactor + 2.0f) * y - (kFactor + 3.0f)) * y * y + 1.0f; };
    found[0] = outer(x + 1.0f), found[1] = inner(x), found[2] = inner(1.0f - x), found[3] = outer(2.0f - x);
  }

  template <class Put>
  void cubic(const float* in, const float* places, const Put& put) const {
    int64_t first[2], offsets[16];
    float by[2][4];
    for (int i = 0; i < 2; ++i) {
      first[i] = static_cast<int64_t>(std::floor(places[i])) - 1;
      weights(std::fabs(places[i] - static_cast<float>(first[i]) - 1.0f), by[i]);
    }
    for (int k = 0; k < 16; ++k) {
      const int64_t positions[] = {first[0] + k / 4, first[1] + k % 4};
      offsets[k] = offset(positions);
    }
    for (int64_t c = 0; c < channels_; ++c) {
      float rows[4];
      for (int y = 0; y < 4; ++y) {
        rows[y] = by[1][0] * pixel(in + c * plane_, offsets[4 * y]);
        for (int x = 1; x < 4; ++x) rows[y] += by[1][x] * pixel(in + c * plane_, offsets[4 * y + x]);
      }
      float total = by[0][0] * rows[0];
      for (int y = 1; y < 4; ++y) total += by[0][y] * rows[y];
      put(c, total);
    }
  }

  std::string mode_;
  bool reflection_, zeros_, aligned_;
  int axes_ = 2;
  int64_t images_ = 0, channels_ = 0, points_ = 0, plane_ = 1, sizes_[kAxes] = {};
};

std::unique_ptr<Kernel> make_grid_sample(const Step& step, const CoreSet&) {
  require_rounded_twice(step);
  return std::make_unique<GridSample>(step);
}

BITTRUE_OPERATOR(grid_sample, make_grid_sample)

}  // namespace
}  // namespace bittrue

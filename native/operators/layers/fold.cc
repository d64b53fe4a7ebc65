// fold: columns [N, C * taps, windows] added up to images [N, C, ...], the taps of every pixel in their order.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "core/kernel.h"
#include "operators/core/finite.h"
#include "operators/core/interleave.h"
#include "operators/core/registry.h"
#include "operators/core/sizes.h"

namespace bittrue {
namespace {

// One axis of the image.
struct FoldAxis {
  int64_t image, window, stride, dilation, before, count;
  // Windows [first, last) whose tap lies inside, and where that of window 0 is.
  int64_t shift(int64_t tap) const { return tap * dilation - before; }
  int64_t first(int64_t tap) const { return std::min(count, shift(tap) >= 0 ? 0 : (stride - 1 - shift(tap)) / stride); }
  int64_t last(int64_t tap) const {
    const int64_t room = image - shift(tap);
    return room <= 0 ? 0 : std::min(count, (room - 1) / stride + 1);
  }
};

class Fold final : public Kernel {
 public:
  explicit Fold(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == Type::f32 && out.type == Type::f32 && in.dense() && out.dense(),
            "no native kernel for these types");
    const std::vector<int64_t>& image = step.list("image");
    const size_t axes = image.size();
    require(axes >= 1 && axes <= kAxes, "no native kernel for so many axes");
    const char* const names[] = {"window", "strides", "dilations", "counts"};
    for (const char* name : names) require(step.list(name).size() == axes, "the geometry has other axes");
    require(step.list("pads").size() == 2 * axes, "the geometry has other axes");
    for (size_t i = 0; i < kAxes; ++i) {
      if (i + axes < kAxes) {
        axes_[i] = {1, 1, 1, 1, 0, 1};
        continue;
      }
      const size_t own = i + axes - kAxes;
      axes_[i] = {image[own],
                  step.list("window")[own],
                  step.list("strides")[own],
                  step.list("dilations")[own],
                  step.list("pads")[own],
                  step.list("counts")[own]};
      constexpr int64_t kMost = int64_t{1} << 31;
      const FoldAxis& a = axes_[i];
      for (const int64_t number : {a.image, a.window, a.stride, a.dilation, a.count}) {
        require(number >= 1 && number <= kMost, "a number of the geometry is out of range");
      }
      require(a.before >= 0 && a.before <= kMost, "a number of the geometry is out of range");
    }
    for (const FoldAxis& axis : axes_) {
      pixels_ = elements_of({pixels_, axis.image});
      taps_ = elements_of({taps_, axis.window});
      windows_ = elements_of({windows_, axis.count});
    }
    require(out.elements % pixels_ == 0, "the shapes do not fit");
    planes_ = out.elements / pixels_;
    require(in.elements / windows_ == elements_of({planes_, taps_}) && in.elements % windows_ == 0,
            "the shapes do not fit");
    const FoldAxis& wide = axes_[2];
    for (int64_t c = 0; c < wide.window; ++c) wide_.push_back({wide.first(c), wide.last(c), wide.shift(c)});
  }
  std::string note() const override { return "taps in order"; }
  bool tells_nan() const override { return true; }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    std::atomic<bool> finite{true};
    run.pool.parallel(planes_, planes_ * taps_ * windows_ < 50000 ? 1 : run.pool.threads(), [&](int64_t plane, int) {
      const FoldAxis &deep = axes_[0], &tall = axes_[1], &wide = axes_[2];
      float* to = out + plane * pixels_;
      std::fill_n(to, pixels_, 0.0f);
      const float* from = in + plane * taps_ * windows_;
      for (int64_t a = 0; a < deep.window; ++a) {
        for (int64_t b = 0; b < tall.window; ++b, from += wide.window * windows_) {
          for (int64_t z = deep.first(a); z < deep.last(a); ++z) {
            for (int64_t y = tall.first(b); y < tall.last(b); ++y) {
              const int64_t line = (z * deep.stride + deep.shift(a)) * tall.image + y * tall.stride + tall.shift(b);
              add(from + (z * tall.count + y) * wide.count, to + line * wide.image);
            }
          }
        }
      }
      if (!all_finite(to, pixels_)) finite.store(false, std::memory_order_relaxed);
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr size_t kAxes = 3;

  // Window i of a tap of the last axis is added to pixel i * stride + shift.
  struct Tap {
    int64_t first, last, shift;
  };

  // A line of windows, of all taps of the last axis; each one's numbers lie `windows_` behind those of the one before.
  void add(const float* x, float* line) const {
    const FoldAxis& wide = axes_[2];
    for (int64_t c = 0, taps = 1; c < wide.window; c += taps, x += taps * windows_) {
      const Tap* tap = wide_.data() + c;
      const int64_t left = wide.window - c;
      taps = 1;
      if (wide.stride == 1 && left >= 3) {
        taps = 3, add_above(x, tap, line);
      } else if (wide.dilation == 1 && wide.stride == 2 && left >= 2) {
        taps = 2, add_beside<2>(x, tap, line);
      } else if (wide.dilation == 1 && wide.stride == 4 && left >= 4) {
        taps = 4, add_beside<4>(x, tap, line);
      } else {
        add_one(x, *tap, tap->first, tap->last, line);
      }
    }
  }

  void add_one(const float* __restrict x, const Tap& tap, int64_t first, int64_t last, float* __restrict line) const {
    if (first >= last) return;
    const int64_t stride = axes_[2].stride;
    line += tap.shift;
    if (stride == 1) {
      for (int64_t i = first; i < last; ++i) line[i] += x[i];
    } else {
      for (int64_t i = first; i < last; ++i) line[i * stride] += x[i];
    }
  }

  // Three taps of windows one pixel apart: most pixels get one of each, in order.
  void add_above(const float* __restrict x, const Tap* taps, float* __restrict line) const {
    const float *a = x - taps[0].shift, *b = x + windows_ - taps[1].shift, *c = x + 2 * windows_ - taps[2].shift;
    int64_t low = 0, high = axes_[2].image;
    for (int k = 0; k < 3; ++k) {
      low = std::max(low, taps[k].first + taps[k].shift), high = std::min(high, taps[k].last + taps[k].shift);
    }
    high = std::max(low, high);
    for (int k = 0; k < 3; ++k) {
      const Tap& tap = taps[k];
      add_one(x + k * windows_, tap, tap.first, std::min(tap.last, low - tap.shift), line);
      add_one(x + k * windows_, tap, std::max(tap.first, high - tap.shift), tap.last, line);
    }
    for (int64_t i = low; i < high; ++i) line[i] = ((line[i] + a[i]) + b[i]) + c[i];
  }

  // As many taps, side by side, as windows are pixels apart: no two of them share a pixel.
  template <int kTaps>
  void add_beside(const float* __restrict x, const Tap* taps, float* __restrict line) const {
    int64_t low = 0, high = axes_[2].count;
    for (int k = 0; k < kTaps; ++k) low = std::max(low, taps[k].first), high = std::min(high, taps[k].last);
    high = std::max(low, high);
    for (int k = 0; k < kTaps; ++k) {
      add_one(x + k * windows_, taps[k], taps[k].first, std::min(taps[k].last, low), line);
      add_one(x + k * windows_, taps[k], std::max(taps[k].first, high), taps[k].last, line);
    }
    line += taps[0].shift;
    int64_t i = low;
    if constexpr (kTaps == 2) {
      for (; i + 4 <= high; i += 4) {
        Vector32 first, second;
        Lanes sums[2];
        std::memcpy(&first, x + i, sizeof first), std::memcpy(&second, x + windows_ + i, sizeof second);
        std::memcpy(sums, line + 2 * i, sizeof sums);
        sums[0] += reinterpret_cast<Lanes>(interleave_low(first, second));
        sums[1] += reinterpret_cast<Lanes>(interleave_high(first, second));
        std::memcpy(line + 2 * i, sums, sizeof sums);
      }
    }
    for (; i < high; ++i) {
      for (int k = 0; k < kTaps; ++k) line[kTaps * i + k] += x[k * windows_ + i];
    }
  }
  using Lanes = float __attribute__((vector_size(16)));

  FoldAxis axes_[kAxes];
  std::vector<Tap> wide_;
  int64_t planes_ = 0, pixels_ = 1, taps_ = 1, windows_ = 1;
};

std::unique_ptr<Kernel> make_fold(const Step& step, const CoreSet&) { return std::make_unique<Fold>(step); }

BITTRUE_OPERATOR(fold, make_fold)

}  // namespace
}  // namespace bittrue

// fold: columns [N, C * taps, windows] added up to images [N, C, ...], the taps of every pixel in their order.
#include <algorithm>
#include <atomic>
#include <vector>

#include "core/kernel.h"
#include "operators/core/finite.h"
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
  }
  std::string note() const override { return "taps in order"; }
  bool tells_nan() const override { return true; }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    std::atomic<bool> finite{true};
    run.pool.parallel(planes_, planes_ * taps_ * windows_ < 50000 ? 1 : run.pool.threads(), [&](int64_t plane, int) {
      float* to = out + plane * pixels_;
      std::fill_n(to, pixels_, 0.0f);
      const float* from = in + plane * taps_ * windows_;
      for (int64_t a = 0; a < axes_[0].window; ++a) {
        for (int64_t b = 0; b < axes_[1].window; ++b) {
          for (int64_t c = 0; c < axes_[2].window; ++c, from += windows_) add(from, a, b, c, to);
        }
      }
      if (!all_finite(to, pixels_)) finite.store(false, std::memory_order_relaxed);
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr size_t kAxes = 3;

  void add(const float* from, int64_t a, int64_t b, int64_t c, float* to) const {
    const FoldAxis &deep = axes_[0], &tall = axes_[1], &wide = axes_[2];
    const int64_t low = wide.first(c), high = wide.last(c), stride = wide.stride;
    for (int64_t z = deep.first(a); z < deep.last(a); ++z) {
      for (int64_t y = tall.first(b); y < tall.last(b); ++y) {
        const int64_t line = (z * deep.stride + deep.shift(a)) * tall.image + y * tall.stride + tall.shift(b);
        const float* x = from + (z * tall.count + y) * wide.count;
        float* sums = to + line * wide.image + wide.shift(c);
        if (stride == 1) {
          for (int64_t i = low; i < high; ++i) sums[i] += x[i];
        } else {
          for (int64_t i = low; i < high; ++i) sums[i * stride] += x[i];
        }
      }
    }
  }

  FoldAxis axes_[kAxes];
  int64_t planes_ = 0, pixels_ = 1, taps_ = 1, windows_ = 1;
};

std::unique_ptr<Kernel> make_fold(const Step& step, const CoreSet&) { return std::make_unique<Fold>(step); }

BITTRUE_OPERATOR(fold, make_fold)

}  // namespace
}  // namespace bittrue

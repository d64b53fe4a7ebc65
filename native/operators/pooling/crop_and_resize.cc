// crop_and_resize: regions of images, resized to one size with aligned corners.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/rounding.h"
#include "core/share.h"
#include "operators/core/registry.h"
#include "operators/reduction/real_rows.h"

namespace bittrue {
namespace {

class CropAndResize final : public Kernel {
 public:
  explicit CropAndResize(const Step& step)
      : nearest_(step.integer("nearest", 0, 1) != 0), outside_(static_cast<float>(step.real("outside"))) {
    require_reals(step);
    const Operand &image = step.input(0), &regions = step.input(1), &which = step.input(2), &out = step.output();
    require(image.rank() == 4 && out.rank() == 4 && image.shape[1] == out.shape[1], "the shapes do not fit");
    require(regions.type == Type::f32 && regions.dense() && regions.elements == 4 * out.shape[0] &&
                which.type == Type::s32 && which.dense() && which.elements == out.shape[0],
            "every region has four numbers and an image");
    images_ = image.shape[0], channels_ = image.shape[1], regions_ = out.shape[0];
    for (int i = 0; i < 2; ++i) {
      sizes_[i] = image.shape[2 + i], counts_[i] = out.shape[2 + i];
      require(sizes_[i] >= 1 && sizes_[i] <= kLargest && counts_[i] >= 1, "a size is out of range");
    }
  }

  void run(const Run& run) const override {
    const auto* which = reinterpret_cast<const int32_t*>(run.inputs[2]);
    for (int64_t r = 0; r < regions_; ++r) {
      // The reference says which image is missing.
      if (which[r] < 0 || which[r] >= images_) throw Undefined();
    }
    for_rows(run, regions_, channels_ * counts_[0] * counts_[1], [&](int64_t r, int worker) {
      const float* region = reinterpret_cast<const float*>(run.inputs[1]) + 4 * r;
      const std::vector<float> rows = places(region[0], region[2], 0), columns = places(region[1], region[3], 1);
      const int64_t area = sizes_[0] * sizes_[1];
      const auto* image = reinterpret_cast<const float*>(run.inputs[0]) + which[r] * channels_ * area;
      auto* out = reinterpret_cast<float*>(run.outputs[0]) + r * channels_ * counts_[0] * counts_[1];
      bool defined = true;
      for (int64_t c = 0; c < channels_; ++c, image += area) {
        run.check(worker);
        for (const float y : rows) {
          for (const float x : columns) {
            *out = inside(y, 0) && inside(x, 1) ? value(image, y, x) : outside_;
            // Which of several NaNs stays is the reference's to tell.
            defined &= *out == *out;
            ++out;
          }
        }
      }
      return defined;
    });
  }

 private:
  static constexpr int64_t kLargest = int64_t{1} << 20;

  // In binary32; the ends are exact, and a single place is the middle, in binary64 first.
  std::vector<float> places(float begin, float end, int axis) const {
    const int64_t count = counts_[axis];
    const auto last = static_cast<float>(sizes_[axis] - 1);
    if (count == 1) return {static_cast<float>(0.5 * static_cast<double>(begin + end) * static_cast<double>(last))};
    const float step = (end - begin) * last / static_cast<float>(count - 1);
    std::vector<float> found(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) found[i] = begin * last + static_cast<float>(i) * step;
    found.front() = begin * last;
    found.back() = end * last;
    return found;
  }
  bool inside(float place, int axis) const { return place >= 0 && place <= static_cast<float>(sizes_[axis] - 1); }

  float value(const float* image, float y, float x) const {
    const int64_t width = sizes_[1];
    if (nearest_) {
      return image[static_cast<int64_t>(std::floor(y + 0.5f)) * width + static_cast<int64_t>(std::floor(x + 0.5f))];
    }
    const auto top = static_cast<int64_t>(std::floor(y)), bottom = static_cast<int64_t>(std::ceil(y));
    const auto left = static_cast<int64_t>(std::floor(x)), right = static_cast<int64_t>(std::ceil(x));
    const float along = x - static_cast<float>(left), down = y - static_cast<float>(top);
    const float *high = image + top * width, *low = image + bottom * width;
    const float upper = high[left] + (high[right] - high[left]) * along;
    const float lower = low[left] + (low[right] - low[left]) * along;
    return upper + (lower - upper) * down;
  }

  bool nearest_;
  float outside_;
  int64_t images_ = 0, channels_ = 0, regions_ = 0, sizes_[2] = {}, counts_[2] = {};
};

std::unique_ptr<Kernel> make_crop_and_resize(const Step& step, const CoreSet&) {
  require_rounded_twice(step);
  return std::make_unique<CropAndResize>(step);
}

BITTRUE_OPERATOR(crop_and_resize, make_crop_and_resize)

}  // namespace
}  // namespace bittrue

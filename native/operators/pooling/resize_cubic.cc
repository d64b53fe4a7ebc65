// resize_cubic: the last two axes at another size, each place from four positions of both axes.
#include <vector>

#include "core/rounding.h"
#include "core/share.h"
#include "operators/core/registry.h"
#include "operators/pooling/outside.h"
#include "operators/reduction/real_rows.h"

namespace bittrue {
namespace {

// Four positions and weights of every place of an axis.
struct CubicSide {
  std::vector<int64_t> positions;  // [4][places]
  std::vector<float> weights;

  CubicSide(const Step& step, const std::string& name, int64_t size, int64_t places) {
    const Array &at = step.array("positions_" + name), &weight = step.array("weights_" + name);
    require(at.count == 4 * places && weight.count == 4 * places, "four positions per place are needed");
    for (int64_t i = 0; i < at.count; ++i) {
      require(at.integer(i) >= 0 && at.integer(i) < size, "a position leaves the image");
      positions.push_back(at.integer(i));
      weights.push_back(static_cast<float>(weight.real(i)));
    }
  }
};

class ResizeCubic final : public Kernel {
 public:
  explicit ResizeCubic(const Step& step)
      : height_(axis(step.input(0), 2)),
        width_(axis(step.input(0), 1)),
        rows_(axis(step.output(), 2)),
        columns_(axis(step.output(), 1)),
        y_(step, "y", height_, rows_),
        x_(step, "x", width_, columns_),
        outside_(step) {
    require_reals(step);
    require(height_ * width_ > 0 && rows_ * columns_ > 0, "there are no pixels");
    images_ = step.input(0).elements / (height_ * width_);
    require(step.output().elements == images_ * rows_ * columns_, "the shapes do not fit");
    const Array& totals = step.array("total_y");
    require(totals.count == rows_, "one divisor per row is needed");
    for (int64_t i = 0; i < rows_; ++i) totals_.push_back(static_cast<float>(totals.real(i)));
  }
  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }

  // Columns first, then rows.
  void run(const Run& run) const override {
    for_rows(run, images_, rows_ * columns_, [&](int64_t image, int worker) {
      const auto* in = reinterpret_cast<const float*>(run.inputs[0]) + image * height_ * width_;
      auto* out = reinterpret_cast<float*>(run.outputs[0]) + image * rows_ * columns_;
      auto* wide = reinterpret_cast<float*>(run.scratch + worker * worker_bytes());
      for (int64_t y = 0; y < height_; ++y) {
        run.check(worker);
        for (int64_t x = 0; x < columns_; ++x) {
          float total = 0.0f;
          for (int64_t k = 0; k < 4; ++k) {
            const int64_t at = k * columns_ + x;
            total += in[y * width_ + x_.positions[at]] * x_.weights[at];
          }
          wide[y * columns_ + x] = total;
        }
      }
      bool defined = true;
      for (int64_t y = 0; y < rows_; ++y) {
        run.check(worker);
        float* row = out + y * columns_;
        for (int64_t x = 0; x < columns_; ++x) row[x] = 0.0f;
        for (int64_t k = 0; k < 4; ++k) {
          const int64_t at = k * rows_ + y;
          const float *from = wide + y_.positions[at] * columns_, weight = y_.weights[at], by = totals_[y];
          for (int64_t x = 0; x < columns_; ++x) row[x] += from[x] * weight / by;
        }
        // Which of several NaNs a sum keeps is the reference's matter.
        for (int64_t x = 0; x < columns_; ++x) defined &= row[x] == row[x];
      }
      return defined;
    });
    outside_.fill(run.outputs[0]);
  }

 private:
  static int64_t axis(const Operand& operand, int from_end) {
    require(operand.rank() >= 2, "an image has two axes");
    return operand.shape[operand.rank() - from_end];
  }
  int64_t worker_bytes() const { return round_up(height_ * columns_ * 4, 64); }

  int64_t height_, width_, rows_, columns_, images_ = 0;
  CubicSide y_, x_;
  std::vector<float> totals_;
  Outside outside_;
};

std::unique_ptr<Kernel> make_resize_cubic(const Step& step, const CoreSet&) {
  require_rounded_twice(step);
  return std::make_unique<ResizeCubic>(step);
}

BITTRUE_OPERATOR(resize_cubic, make_resize_cubic)

}  // namespace
}  // namespace bittrue

// affine_grid: coordinates of pixels, turned and moved by a matrix for every image; every operation is rounded.
#include <algorithm>
#include <vector>

#include "core/kernel.h"
#include "core/rounding.h"
#include "core/share.h"
#include "operators/core/registry.h"
#include "operators/core/sizes.h"

namespace bittrue {
namespace {

template <class T>
class AffineGrid final : public Kernel {
 public:
  explicit AffineGrid(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == kType && out.type == kType && in.dense() && out.dense(), "no native kernel for these types");
    const std::vector<int64_t>& sizes = step.list("sizes");
    rank_ = static_cast<int64_t>(sizes.size());
    require((rank_ == 2 || rank_ == 3) && in.rank() == 3 && in.shape[1] == rank_ && in.shape[2] == rank_ + 1,
            "a matrix per image is needed");
    batch_ = in.shape[0];
    const bool aligned = step.integer("align_corners", 0, 1) != 0;
    // The last axis comes first among coordinates.
    for (int64_t axis = rank_; axis-- > 0;) {
      require(sizes[axis] >= 1 && sizes[axis] <= int64_t{1} << 24, "a size is out of range");
      places_.push_back(places(sizes[axis], aligned));
    }
    int64_t pixels = 1;
    for (const int64_t size : sizes) pixels = elements_of({pixels, size});
    require(out.elements == elements_of({batch_, pixels, rank_}), "the shapes do not fit");
    width_ = static_cast<int64_t>(places_[0].size());
    lines_ = pixels / width_;
  }
  std::string note() const override { return "coordinates line by line"; }

  void run(const Run& run) const override {
    const int threads = run.pool.threads_for(batch_ * lines_ * width_ * rank_);
    run.pool.parallel(batch_ * lines_, threads, [&](int64_t task, int) {
      const int64_t n = task / lines_, line = task % lines_;
      const T* matrix = reinterpret_cast<const T*>(run.inputs[0]) + n * rank_ * (rank_ + 1);
      auto* out = reinterpret_cast<T*>(run.outputs[0]) + task * width_ * rank_;
      const auto height = static_cast<int64_t>(places_[1].size());
      const T y = places_[1][line % height], z = rank_ == 3 ? places_[2][line / height] : T{0};
      for (int64_t row = 0; row < rank_; ++row, matrix += rank_ + 1) {
        const T moved = matrix[rank_], second = matrix[1] * y, third = rank_ == 3 ? matrix[2] * z : T{0};
        if (rank_ == 3 && sizeof(T) == 8) {
          for (int64_t x = 0; x < width_; ++x) {
            out[x * rank_ + row] = ((matrix[0] * places_[0][x] + second) + third) + moved;
          }
          continue;
        }
        // The last two products are added up first.
        const T rest = rank_ == 2 ? second : second + third;
        for (int64_t x = 0; x < width_; ++x) out[x * rank_ + row] = (matrix[0] * places_[0][x] + rest) + moved;
      }
    });
    // Signs and payloads of NaN are the reference's to tell.
    const auto* made = reinterpret_cast<const T*>(run.outputs[0]);
    for (int64_t i = 0; i < batch_ * lines_ * width_ * rank_; ++i) {
      if (made[i] != made[i]) throw Undefined();
    }
  }

 private:
  static constexpr Type kType = sizeof(T) == 4 ? Type::f32 : Type::f64;

  // -1 to 1, the last one by itself; between edges, less half a pixel at both ends.
  static std::vector<T> places(int64_t count, bool aligned) {
    const T step = T{2} / static_cast<T>(std::max<int64_t>(count - 1, 1));
    std::vector<T> found;
    for (int64_t i = 0; i < count; ++i) found.push_back(-T{1} + static_cast<T>(i) * step);
    found.back() = T{1};
    for (T& place : found) {
      if (!aligned) place = place * static_cast<T>(count - 1) / static_cast<T>(count);
    }
    return found;
  }

  int64_t rank_ = 2, batch_ = 0, lines_ = 0, width_ = 0;
  std::vector<std::vector<T>> places_;
};

std::unique_ptr<Kernel> make_affine_grid(const Step& step, const CoreSet&) {
  require_rounded_twice(step);
  if (step.input(0).type == Type::f64) return std::make_unique<AffineGrid<double>>(step);
  return std::make_unique<AffineGrid<float>>(step);
}

BITTRUE_OPERATOR(affine_grid, make_affine_grid)

}  // namespace
}  // namespace bittrue

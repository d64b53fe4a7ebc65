// rfft2d: rows of real matrices, then their columns, two at a time.
#include <algorithm>
#include <atomic>

#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/core/registry.h"
#include "operators/signal/real_signals.h"

namespace bittrue {
namespace {

constexpr int64_t kMostNumbers = int64_t{1} << 26;  // of a matrix

class RealMatrices final : public Kernel {
 public:
  explicit RealMatrices(const Step& step)
      : height_(length(step, "height")),
        width_(length(step, "width")),
        joined_(step.rule("multiply_add") == "rounded_once"),
        along_(width_ / 2, joined_),
        down_(height_, joined_) {
    const Operand &x = step.input(0), &out = step.output();
    require(x.type == Type::f32 && out.type == Type::c64 && x.dense() && out.dense() && x.rank() >= 2,
            "no native kernel for these types");
    given_height_ = x.shape[x.rank() - 2], given_width_ = x.shape[x.rank() - 1];
    for (int i = 0; i + 2 < x.rank(); ++i) matrices_ *= x.shape[i];
    require(height_ * width_ <= kMostNumbers, "the matrices are very large");
    require(joined_ || step.rule("multiply_add") == "rounded_twice", "no native rule for this slot");
    require(out.elements == matrices_ * height_ * (width_ / 2 + 1), "the shapes do not fit");
    together_ =
        std::clamp<int64_t>((kTaskMostBytes / 8) / (height_ * (width_ + 2)), 1, std::max<int64_t>(1, matrices_));
  }
  bool packs(size_t input) const override { return input == 1; }
  int64_t scratch_bytes(int threads) const override {
    return round_up(together_ * height_ * (width_ + 2) * 8, 64) + threads * worker_bytes();
  }
  std::string note() const override { return "rows, then columns"; }

  void run(const Run& run) const override {
    std::atomic<bool> finite{true};
    for (int64_t first = 0; first < matrices_; first += together_) {
      const int64_t count = std::min(together_, matrices_ - first);
      auto* numbers = reinterpret_cast<double*>(run.scratch);
      const int threads = run.pool.threads_for(count * height_ * width_ * 4);
      rows(run, first, count, numbers, threads);
      if (height_ > 1 && width_ > 1) columns(run, count, numbers, threads);
      run.pool.parallel(count, threads, [&](int64_t m, int) {
        double* matrix = numbers + m * height_ * (width_ + 2);
        part(matrix);
        auto* to = reinterpret_cast<float*>(run.outputs[0]) + (first + m) * height_ * 2 * (width_ / 2 + 1);
        const int64_t kept = 2 * (width_ / 2 + 1);
        bool right = true;
        for (int64_t y = 0; y < height_; ++y, to += kept) {
          for (int64_t i = 0; i < kept; ++i) to[i] = static_cast<float>(matrix[y * (width_ + 2) + i]);
          right &= all_finite(to, kept);
        }
        if (!right) finite.store(false, std::memory_order_relaxed);
      });
    }
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static int64_t length(const Step& step, const char* name) {
    const int64_t found = step.integer(name, 1, kMostNumbers);
    require((found & (found - 1)) == 0, "lengths are powers of two");
    return found;
  }

  int64_t worker_bytes() const { return 2 * std::max(width_ / 2 + 1, height_) * int64_t{sizeof(arithmetic::Pairs)}; }
  arithmetic::Pairs* worker(const Run& run, int index) const {
    return reinterpret_cast<arithmetic::Pairs*>(run.scratch + round_up(together_ * height_ * (width_ + 2) * 8, 64) +
                                                index * worker_bytes());
  }

  void rows(const Run& run, int64_t first, int64_t count, double* numbers, int threads) const {
    const int64_t all = count * height_, used = std::min(width_, given_width_);
    const auto* x = reinterpret_cast<const float*>(run.inputs[0]) + first * given_height_ * given_width_;
    // Rows that are not given are zeros.
    const auto given = [&](int64_t row) {
      return row < all && row % height_ < given_height_
                 ? x + (row / height_ * given_height_ + row % height_) * given_width_
                 : nullptr;
    };
    run.pool.parallel((all + 1) / 2, threads, [&](int64_t task, int index) {
      const float* rows[2] = {given(2 * task), given(2 * task + 1)};
      double* to = numbers + 2 * task * (width_ + 2);
      if (width_ == 1) {
        for (int64_t which = 0; which < std::min<int64_t>(2, all - 2 * task); ++which, to += 3) {
          const double value = rows[which] == nullptr || used == 0 ? 0.0 : static_cast<double>(rows[which][0]);
          to[0] = value + 0.0, to[1] = value - 0.0, to[2] = 0.0;
        }
        return;
      }
      arithmetic::Pairs* scratch = worker(run, index);
      const arithmetic::Pairs* found = frequencies_of_two(
          along_, used,
          [&](int which, int64_t i) { return rows[which] == nullptr ? 0.0 : static_cast<double>(rows[which][i]); },
          scratch, scratch + width_ / 2);
      for (int64_t which = 0; which < std::min<int64_t>(2, all - 2 * task); ++which, to += width_ + 2) {
        for (int64_t i = 0; i < width_ / 2; ++i) to[2 * i] = found[i].re[which], to[2 * i + 1] = found[i].im[which];
        to[width_] = to[width_ + 1] = 0.0;
      }
    });
  }

  void columns(const Run& run, int64_t count, double* numbers, int threads) const {
    const int64_t wide = width_ / 2, pairs = (wide + 1) / 2, stride = width_ + 2;
    run.pool.parallel(count * pairs, threads, [&](int64_t task, int index) {
      double* matrix = numbers + task / pairs * height_ * stride + task % pairs * 4;
      const int64_t used = std::min<int64_t>(2, wide - task % pairs * 2);
      arithmetic::Pairs *x = worker(run, index), *found = x + height_;
      for (int64_t y = 0; y < height_; ++y) {
        const double *one = matrix + y * stride, *two = used == 2 ? one + 2 : one;
        x[y] = arithmetic::Pairs{{one[0], two[0]}, {one[1], two[1]}};
      }
      down_.transform(x, found);
      for (int64_t y = 0; y < height_; ++y) {
        for (int64_t which = 0; which < used; ++which) {
          matrix[y * stride + 2 * which] = found[y].re[which];
          matrix[y * stride + 2 * which + 1] = found[y].im[which];
        }
      }
    });
  }

  // The first column holds the frequencies 0 and width / 2 as if they were one complex number; row k and height - k of its
  // transform tell them apart.
  void part(double* a) const {
    const int64_t stride = width_ + 2, half = height_ / 2;
    for (int64_t i = 1; i < half; ++i) {
      double *at = a + i * stride, *back = a + (height_ - i) * stride;
      back[0] = 0.5 * (at[0] - back[0]), at[0] -= back[0];
      back[1] = 0.5 * (at[1] + back[1]), at[1] -= back[1];
    }
    for (int64_t i = half + 1; i < height_; ++i) {
      double *at = a + i * stride, *back = a + (height_ - i) * stride;
      const double real = at[0], imaginary = at[1];
      at[width_] = imaginary, at[width_ + 1] = real;
      back[width_] = imaginary, back[width_ + 1] = -real;
      const double turned = -back[1];
      at[0] = back[0], at[1] = turned;
    }
    const double last = a[1];
    double* middle = a + half * stride;
    a[width_ + 1] = a[1] = 0.0;
    middle[width_] = middle[1];
    middle[width_ + 1] = middle[1] = 0.0;
    a[width_] = last;
    for (int64_t y = 0; y < height_; ++y) {
      for (int64_t i = 1; i < stride; i += 2) a[y * stride + i] = -a[y * stride + i];
    }
  }

  int64_t height_, width_, given_height_ = 0, given_width_ = 0, matrices_ = 1, together_ = 1;
  bool joined_;
  arithmetic::Fourier along_, down_;
};

std::unique_ptr<Kernel> make_rfft2d(const Step& step, const CoreSet&) { return std::make_unique<RealMatrices>(step); }

BITTRUE_OPERATOR(rfft2d, make_rfft2d)

}  // namespace
}  // namespace bittrue

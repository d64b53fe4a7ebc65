// determinant: of square matrices, by elimination with the first largest pivot of every column.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/share.h"
#include "operators/core/registry.h"
#include "operators/reduction/real_rows.h"

namespace bittrue {
namespace {

class Determinant final : public Kernel {
 public:
  explicit Determinant(const Step& step) {
    require_reals(step);
    const Operand& in = step.input(0);
    require(in.rank() >= 2 && in.shape[in.rank() - 1] == in.shape[in.rank() - 2], "matrices must be square");
    size_ = in.shape.back();
    require(size_ > 0 && in.elements == step.output().elements * size_ * size_, "the shapes do not fit");
    matrices_ = step.output().elements;
  }
  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }

  void run(const Run& run) const override {
    for_rows(run, matrices_, size_ * size_ * size_, [&](int64_t matrix, int worker) {
      const auto* in = reinterpret_cast<const float*>(run.inputs[0]) + matrix * size_ * size_;
      auto* m = reinterpret_cast<float*>(run.scratch + worker * worker_bytes());
      std::copy_n(in, size_ * size_, m);
      const float found = eliminated(m, run, worker);
      reinterpret_cast<float*>(run.outputs[0])[matrix] = found;
      // Which pivot is chosen among what is no number is the reference's matter.
      return found == found;
    });
  }

 private:
  float eliminated(float* m, const Run& run, int worker) const {
    float sign = 1.0f;
    for (int64_t k = 0; k < size_; ++k) {
      run.check(worker);
      int64_t pivot = k;
      for (int64_t i = k + 1; i < size_; ++i) {
        if (std::fabs(m[i * size_ + k]) > std::fabs(m[pivot * size_ + k])) pivot = i;
      }
      float* upper = m + k * size_;
      if (pivot != k) {
        sign = -sign;
        std::swap_ranges(upper, upper + size_, m + pivot * size_);
      }
      for (int64_t i = k + 1; i < size_; ++i) {
        float* row = m + i * size_;
        const float factor = upper[k] != 0.0f ? row[k] / upper[k] : row[k];
        for (int64_t j = k + 1; j < size_; ++j) row[j] -= factor * upper[j];
      }
    }
    float product = m[0];
    for (int64_t k = 1; k < size_; ++k) product *= m[k * size_ + k];
    return sign * product;
  }
  int64_t worker_bytes() const { return round_up(size_ * size_ * 4, 64); }

  int64_t size_ = 0, matrices_ = 0;
};

std::unique_ptr<Kernel> make_determinant(const Step& step, const CoreSet&) {
  return std::make_unique<Determinant>(step);
}

BITTRUE_OPERATOR(determinant, make_determinant)

}  // namespace
}  // namespace bittrue

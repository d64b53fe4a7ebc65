// determinant and inverse: of square matrices, by elimination with the first largest pivot of every column.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/rounding.h"
#include "core/share.h"
#include "operators/core/registry.h"
#include "operators/reduction/real_rows.h"

namespace bittrue {
namespace {

// Matrices of one size, one after the other: both triangles and the order of rows of each, in memory of its own.
template <class T>
class Eliminated : public Kernel {
 public:
  explicit Eliminated(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == out.type && in.dense() && out.dense(), "no native kernel for these types");
    require(in.rank() >= 2 && in.shape[in.rank() - 1] == in.shape[in.rank() - 2], "matrices must be square");
    size_ = in.shape.back();
    require(size_ > 0 && in.elements > 0, "there are no matrices");
    matrices_ = in.elements / (size_ * size_);
  }
  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }

  void run(const Run& run) const override {
    for_rows(run, matrices_, size_ * size_ * size_, [&](int64_t matrix, int worker) {
      auto* m = reinterpret_cast<T*>(run.scratch + worker * worker_bytes());
      auto* order = reinterpret_cast<int64_t*>(run.scratch + worker * worker_bytes() + matrix_bytes());
      std::copy_n(reinterpret_cast<const T*>(run.inputs[0]) + matrix * size_ * size_, size_ * size_, m);
      T sign = 1;
      for (int64_t k = 0; k < size_; ++k) order[k] = k;
      for (int64_t k = 0; k < size_; ++k) {
        run.check(worker);
        int64_t pivot = k;
        for (int64_t i = k + 1; i < size_; ++i) {
          if (std::fabs(m[i * size_ + k]) > std::fabs(m[pivot * size_ + k])) pivot = i;
        }
        T* upper = m + k * size_;
        if (pivot != k) {
          sign = -sign;
          std::swap(order[k], order[pivot]);
          std::swap_ranges(upper, upper + size_, m + pivot * size_);
        }
        for (int64_t i = k + 1; i < size_; ++i) {
          T* row = m + i * size_;
          if (upper[k] != 0) row[k] /= upper[k];
          for (int64_t j = k + 1; j < size_; ++j) row[j] -= row[k] * upper[j];
        }
      }
      return finish(m, order, sign, matrix, run, worker);
    });
  }

 protected:
  // The result of a matrix; false where a NaN arose: which pivot is chosen then is the reference's matter.
  virtual bool finish(const T* m, const int64_t* order, T sign, int64_t matrix, const Run& run, int worker) const = 0;

  int64_t size_ = 0, matrices_ = 0;

 private:
  int64_t matrix_bytes() const { return round_up(size_ * size_ * static_cast<int64_t>(sizeof(T)), 64); }
  int64_t worker_bytes() const { return matrix_bytes() + round_up(size_ * 8, 64); }
};

class Determinant final : public Eliminated<float> {
 public:
  explicit Determinant(const Step& step) : Eliminated(step) {
    require(step.output().elements == matrices_, "the shapes do not fit");
  }

 private:
  bool finish(const float* m, const int64_t*, float sign, int64_t matrix, const Run& run, int) const override {
    float product = m[0];
    for (int64_t k = 1; k < size_; ++k) product *= m[k * size_ + k];
    product *= sign;
    reinterpret_cast<float*>(run.outputs[0])[matrix] = product;
    return product == product;
  }
};

template <class T>
class Inverse final : public Eliminated<T> {
  using Eliminated<T>::size_;

 public:
  explicit Inverse(const Step& step) : Eliminated<T>(step) {
    require(step.input(0).elements == step.output().elements, "the shapes do not fit");
  }

 private:
  // Rows of a panel.
  static constexpr int64_t kPanel = 32 / sizeof(T);

  bool finish(const T* m, const int64_t* order, T, int64_t matrix, const Run& run, int worker) const override {
    T* x = reinterpret_cast<T*>(run.outputs[0]) + matrix * size_ * size_;
    for (int64_t i = 0; i < size_; ++i) {
      for (int64_t j = 0; j < size_; ++j) x[i * size_ + j] = order[i] == j ? T{1} : T{0};
    }
    for (int64_t i = 0; i < size_; ++i) {
      run.check(worker);
      const int64_t panel = i / kPanel * kPanel;
      together(m, x, i, 0, panel);
      one_by_one(m, x, i, panel, i);
    }
    bool defined = true;
    for (int64_t i = size_ - 1; i >= 0; --i) {
      run.check(worker);
      const int64_t end = std::min(size_, (i / kPanel + 1) * kPanel);
      together(m, x, i, end, size_);
      one_by_one(m, x, i, i + 1, end);
      const T inverse = T{1} / m[i * size_ + i];
      for (int64_t j = 0; j < size_; ++j) {
        x[i * size_ + j] *= inverse;
        defined &= x[i * size_ + j] == x[i * size_ + j];
      }
    }
    return defined;
  }

  void one_by_one(const T* m, T* x, int64_t i, int64_t begin, int64_t end) const {
    for (int64_t k = begin; k < end; ++k) {
      for (int64_t j = 0; j < size_; ++j) x[i * size_ + j] -= m[i * size_ + k] * x[k * size_ + j];
    }
  }
  void together(const T* m, T* x, int64_t i, int64_t begin, int64_t end) const {
    if (begin >= end) return;
    for (int64_t j = 0; j < size_; ++j) {
      T total = 0;
      for (int64_t k = begin; k < end; ++k) total += m[i * size_ + k] * x[k * size_ + j];
      x[i * size_ + j] -= total;
    }
  }
};

std::unique_ptr<Kernel> make_determinant(const Step& step, const CoreSet&) {
  require_reals(step);
  require_rounded_twice(step);
  return std::make_unique<Determinant>(step);
}

std::unique_ptr<Kernel> make_inverse(const Step& step, const CoreSet&) {
  require_rounded_twice(step);
  if (step.input(0).type == Type::f32) return std::make_unique<Inverse<float>>(step);
  require(step.input(0).type == Type::f64, "no native kernel for these types");
  return std::make_unique<Inverse<double>>(step);
}

BITTRUE_OPERATOR(determinant, make_determinant)
BITTRUE_OPERATOR(inverse, make_inverse)

}  // namespace
}  // namespace bittrue

#include "operators/real_softmax.h"

#include <cmath>
#include <limits>

#include "arithmetic/elementary.h"

namespace bittrue {
namespace {

constexpr int64_t kParallel = 4000;

// Sums run from the first element to the last.
class RealSoftmax final : public Kernel {
 public:
  RealSoftmax(const Step& step, bool logarithm) : logarithm_(logarithm) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == Type::f32 && out.type == Type::f32, "no native kernel for these types");
    require(step.rule("real_softmax") == "binary32_in_order", "no native rule for this slot");
    require(in.rank() >= 1 && in.elements > 0 && in.elements == out.elements && in.dense() && out.dense(),
            "both sides must be dense and equal in shape");
    length_ = in.shape.back();
    rows_ = in.elements / length_;
    if (!logarithm) beta_ = static_cast<float>(step.real("beta"));
  }

  void run(const Run& run) const override {
    const auto task = [&](int64_t row, int) {
      one(reinterpret_cast<const float*>(run.inputs[0]) + row * length_,
          reinterpret_cast<float*>(run.outputs[0]) + row * length_);
    };
    if (rows_ * length_ < kParallel) {
      for (int64_t row = 0; row < rows_; ++row) task(row, 0);
    } else {
      run.pool.parallel(rows_, task);
    }
  }

 private:
  // Of two NaNs the first one stays; compilers are free to exchange the operands of an addition.
  static float plus(float sum, float x) { return std::isnan(sum) ? sum : sum + x; }

  void one(const float* in, float* out) const {
    float largest = std::numeric_limits<float>::lowest();
    for (int64_t i = 0; i < length_; ++i) largest = largest < in[i] ? in[i] : largest;
    float sum = 0.0f;
    if (logarithm_) {
      for (int64_t i = 0; i < length_; ++i) sum = plus(sum, arithmetic::exp(in[i] - largest));
      const float log_sum = arithmetic::log(sum);
      for (int64_t i = 0; i < length_; ++i) out[i] = in[i] - largest - log_sum;
      return;
    }
    for (int64_t i = 0; i < length_; ++i) {
      const float power = arithmetic::exp((in[i] - largest) * beta_);
      out[i] = power;
      sum = plus(sum, power);
    }
    for (int64_t i = 0; i < length_; ++i) out[i] /= sum;
  }

  bool logarithm_;
  float beta_ = 1.0f;
  int64_t rows_ = 0, length_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> make_real_softmax(const Step& step, bool logarithm) {
  return std::make_unique<RealSoftmax>(step, logarithm);
}

}  // namespace bittrue

// local_response_normalization: every channel times a power of the sum of its neighbours' squares.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "operators/core/registry.h"
#include "operators/layers/real_finish.h"

namespace bittrue {
namespace {

class LocalResponseNormalization final : public Kernel {
 public:
  explicit LocalResponseNormalization(const Step& step)
      : bias_(static_cast<float>(step.real("bias"))),
        alpha_(static_cast<float>(step.real("alpha"))),
        beta_(static_cast<float>(step.real("beta"))) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == Type::f32 && out.type == Type::f32 && in.rank() == 4 && in.shape == out.shape && in.dense() &&
                out.dense(),
            "both sides must be real, dense and equal in shape");
    depth_ = in.shape[3];
    rows_ = depth_ > 0 ? in.elements / depth_ : 0;
    radius_ = std::min(depth_, step.integer("radius", -(int64_t{1} << 31), int64_t{1} << 31));
  }

  void run(const Run& run) const override {
    std::atomic<bool> odd{false};
    run.pool.parallel(rows_, [&](int64_t row, int) {
      const auto* x = reinterpret_cast<const float*>(run.inputs[0]) + row * depth_;
      auto* out = reinterpret_cast<float*>(run.outputs[0]) + row * depth_;
      for (int64_t c = 0; c < depth_; ++c) {
        float total = 0;
        const int64_t last = std::min(depth_, c + radius_);
        for (int64_t i = std::max<int64_t>(0, c - radius_); i < last; ++i) {
          const float square = x[i] * x[i];
          total = total + square;
        }
        const double scaled = alpha_ * total;  // exact
        const float result = x[c] * static_cast<float>(std::pow(bias_ + scaled, -beta_));
        // The reference knows the bits of NaN.
        if (result != result) odd = true;
        out[c] = result;
      }
    });
    if (odd) throw Undefined{};
  }

 private:
  double bias_, alpha_, beta_;
  int64_t depth_ = 0, rows_ = 0, radius_ = 0;
};

std::unique_ptr<Kernel> make_local_response_normalization(const Step& step, const CoreSet&) {
  return std::make_unique<LocalResponseNormalization>(step);
}

BITTRUE_OPERATOR(local_response_normalization, make_local_response_normalization)

}  // namespace
}  // namespace bittrue

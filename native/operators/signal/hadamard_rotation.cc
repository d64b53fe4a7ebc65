// hadamard_rotation: chunks of neighbours by the Hadamard matrix, pass by pass; what is behind the chunks stays.
#include <atomic>
#include <cmath>
#include <cstring>

#include "core/kernel.h"
#include "operators/core/finite.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

class HadamardRotation final : public Kernel {
 public:
  HadamardRotation(const Step& step, int64_t elements)
      : elements_(elements), size_(step.integer("size", 1, int64_t{1} << 31)) {
    require((size_ & (size_ - 1)) == 0, "no power of two");
    chunks_ = step.integer("chunks", 0, elements / size_);
    factor_ = 1.0f / std::sqrt(static_cast<float>(size_));
  }

  std::string note() const override { return "pairs, pass by pass"; }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const int64_t rotated = chunks_ * size_;
    std::memcpy(out + rotated, in + rotated, static_cast<size_t>(elements_ - rotated) * 4);
    std::atomic<bool> finite{true};
    run.pool.parallel(chunks_, run.pool.threads_for(rotated), [&](int64_t chunk, int worker) {
      float* own = out + chunk * size_;
      std::memcpy(own, in + chunk * size_, static_cast<size_t>(size_) * 4);
      for (int64_t h = 1; h < size_; h *= 2) {
        run.check(worker);
        for (float* first = own; first < own + size_; first += 2 * h) turn(h, first, first + h);
      }
      for (int64_t i = 0; i < size_; ++i) own[i] *= factor_;
      if (!all_finite(own, size_)) finite = false;
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite) throw Undefined();
  }

 private:
  static void turn(int64_t count, float* first, float* second) {
    for (int64_t i = 0; i < count; ++i) {
      const float a = first[i], b = second[i];
      first[i] = a + b, second[i] = a - b;
    }
  }

  int64_t elements_, size_, chunks_ = 0;
  float factor_ = 1;
};

std::unique_ptr<Kernel> make_hadamard_rotation(const Step& step, const CoreSet&) {
  const Operand &in = step.input(0), &out = step.output();
  require(in.type == Type::f32 && out.type == Type::f32, "both sides must be real");
  require(in.dense() && out.dense() && in.shape == out.shape, "the shapes do not fit");
  return std::make_unique<HadamardRotation>(step, in.elements);
}

BITTRUE_OPERATOR(hadamard_rotation, make_hadamard_rotation)

}  // namespace
}  // namespace bittrue

// reduce_streams and mix_streams: branches of the same features that gates add up or mix, every operation rounded.
#include <algorithm>
#include <atomic>

#include "core/kernel.h"
#include "core/rounding.h"
#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/core/registry.h"
#include "operators/core/sizes.h"

namespace bittrue {
namespace {

class Streams final : public Kernel {
 public:
  Streams(const Step& step, bool mixed)
      : mixed_(mixed),
        rows_(step.integer("rows", 1, kMost)),
        count_(step.integer("count", 1, kMost)),
        size_(step.integer("size", 1, kMost)),
        scale_(static_cast<float>(step.real("scale"))),
        weighted_(mixed && step.has_input(kWeights)) {
    require_rounded_twice(step);
    require_real(step.input(0), {rows_, count_, size_});
    require_real(step.output(), {rows_, mixed_ ? count_ : 1, size_});
    if (mixed_) require_real(step.input(kBlock), {rows_, size_});
    const Operand& gates = step.input(mixed_ ? kGates : 1);
    wide_ = gates.elements != elements_of({rows_, count_});
    require_real(gates, {rows_, count_, wide_ ? size_ : 1});
    if (weighted_) require_real(step.input(kWeights), {rows_, count_, count_});
  }
  std::string note() const override { return "branches in order"; }
  bool tells_nan() const override { return true; }

  void run(const Run& run) const override {
    std::atomic<bool> finite{true};
    const int64_t each = count_ * size_, together = std::max<int64_t>(1, 16384 / each);
    run.pool.parallel((rows_ + together - 1) / together, [&](int64_t task, int) {
      for (int64_t row = task * together; row < std::min(rows_, (task + 1) * together); ++row) {
        float* out = reinterpret_cast<float*>(run.outputs[0]) + row * (mixed_ ? each : size_);
        mixed_ ? mix(run, row, out) : reduce(run, row, out);
        if (!all_finite(out, mixed_ ? each : size_)) finite.store(false, std::memory_order_relaxed);
      }
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr int64_t kMost = int64_t{1} << 40;
  static constexpr size_t kBlock = 1, kGates = 2, kWeights = 3;

  static void require_real(const Operand& operand, std::initializer_list<int64_t> sizes) {
    require(operand.type == Type::f32 && operand.dense() && operand.elements == elements_of(sizes),
            "no native kernel for these types");
  }
  static const float* reals(const Run& run, size_t input) { return reinterpret_cast<const float*>(run.inputs[input]); }

  // out[h] = gate * x[h] + out[h], gates for all numbers or for each.
  void add(const float* gate, bool wide, const float* x, float* out) const {
    if (wide) {
      for (int64_t h = 0; h < size_; ++h) out[h] = gate[h] * x[h] + out[h];
    } else {
      const float by = *gate;
      for (int64_t h = 0; h < size_; ++h) out[h] = by * x[h] + out[h];
    }
  }

  void reduce(const Run& run, int64_t row, float* out) const {
    const float *x = reals(run, 0) + row * count_ * size_, *gates = reals(run, 1) + row * count_ * (wide_ ? size_ : 1);
    std::fill_n(out, size_, 0.0f);
    for (int64_t c = 0; c < count_; ++c) add(gates + c * (wide_ ? size_ : 1), wide_, x + c * size_, out);
    for (int64_t h = 0; h < size_; ++h) out[h] = scale_ * out[h];
  }

  void mix(const Run& run, int64_t row, float* out) const {
    const float *x = reals(run, 0) + row * count_ * size_, *block = reals(run, kBlock) + row * size_;
    const float* gates = reals(run, kGates) + row * count_ * (wide_ ? size_ : 1);
    for (int64_t k = 0; k < count_; ++k, out += size_) {
      if (weighted_) {
        const float* weights = reals(run, kWeights) + row * count_ * count_ + k;
        std::fill_n(out, size_, 0.0f);
        for (int64_t c = 0; c < count_; ++c) add(weights + c * count_, false, x + c * size_, out);
      } else {
        std::copy_n(x + k * size_, size_, out);
      }
      add(gates + k * (wide_ ? size_ : 1), wide_, block, out);
    }
  }

  bool mixed_;
  int64_t rows_, count_, size_;
  float scale_;
  bool weighted_, wide_ = false;
};

std::unique_ptr<Kernel> make_reduced(const Step& step, const CoreSet&) {
  return std::make_unique<Streams>(step, false);
}
std::unique_ptr<Kernel> make_mixed(const Step& step, const CoreSet&) { return std::make_unique<Streams>(step, true); }

BITTRUE_OPERATOR(reduce_streams, make_reduced)
BITTRUE_OPERATOR(mix_streams, make_mixed)

}  // namespace
}  // namespace bittrue

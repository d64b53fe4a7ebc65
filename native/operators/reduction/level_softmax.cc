// softmax of quantized values that real numbers or 8 bits hold: shares of binary32 powers as quantized values.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "arithmetic/elementary.h"
#include "core/share.h"
#include "operators/quantization/level_kernel.h"
#include "operators/reduction/softmax.h"

namespace bittrue {
namespace {

class LevelSoftmax final : public Kernel {
 public:
  explicit LevelSoftmax(const Step& step)
      : load_(step.input(0)), store_(step), real_(real_levels_of(step, "input")), levels_(levels_of(step)) {
    const Operand &in = step.input(0), &out = step.output();
    const std::vector<int64_t>& view = step.list("view");
    require(view.size() == 3 && view[1] > 0 && view[2] > 0 && view[0] * view[1] * view[2] == in.elements &&
                in.elements == out.elements && in.dense() && out.dense(),
            "the view does not fit");
    outer_ = view[0], length_ = view[1], inner_ = view[2];
    in_item_ = type_bytes(in.type), out_item_ = type_bytes(out.type);
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }

  void run(const Run& run) const override {
    std::atomic<bool> all{true};
    const auto row = [&](int64_t task, int worker) {
      auto* values = reinterpret_cast<float*>(run.scratch + worker * worker_bytes());
      auto* bytes = reinterpret_cast<uint8_t*>(values + length_);
      const int64_t first = task / inner_ * length_ * inner_ + task % inner_;
      for (int64_t i = 0; i < length_; ++i) {
        const uint8_t* source = run.inputs[0] + (first + i * inner_) * in_item_;
        std::memcpy(bytes + i * in_item_, source, static_cast<size_t>(in_item_));
      }
      const float* loaded = load_.load(bytes, values, length_);
      if (loaded != values) std::copy_n(loaded, length_, values);
      const bool defined = shares(values) && store_.store(values, bytes, length_);
      if (!defined) all.store(false, std::memory_order_relaxed);
      for (int64_t i = 0; i < length_; ++i) {
        uint8_t* target = run.outputs[0] + (first + i * inner_) * out_item_;
        std::memcpy(target, bytes + i * out_item_, static_cast<size_t>(out_item_));
      }
    };
    const int64_t rows = outer_ * inner_;
    run.pool.parallel(rows, rows * length_ < 2000 ? 1 : run.pool.threads(), row);
    if (!all.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  int64_t worker_bytes() const { return round_up(length_ * 8, 64); }

  // False where the sum is no number.
  bool shares(float* values) const {
    real_.apply(values, length_);
    // As C++ compares: what is no number is kept or passed over.
    float largest = values[0];
    for (int64_t i = 1; i < length_; ++i) largest = largest < values[i] ? values[i] : largest;
    float total = 0;
    for (int64_t i = 0; i < length_; ++i) {
      values[i] = arithmetic::exp(values[i] - largest);
      total += values[i];
    }
    for (int64_t i = 0; i < length_; ++i) values[i] = values[i] / total;
    levels_.apply(values, length_);
    return total == total;
  }

  LevelLoad load_;
  LevelStore store_;
  rules::RealLevels real_;
  rules::Levels levels_;
  int64_t outer_ = 1, length_ = 1, inner_ = 1, in_item_ = 1, out_item_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> make_level_softmax(const Step& step) { return std::make_unique<LevelSoftmax>(step); }

}  // namespace bittrue

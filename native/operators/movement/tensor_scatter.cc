// tensor_scatter: a cache with new elements along one axis, for every batch from a position of its own on.
#include <algorithm>
#include <cstring>

#include "core/kernel.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

class TensorScatter final : public Kernel {
 public:
  explicit TensorScatter(const Step& step) : circular_(step.integer("circular", 0, 1) != 0) {
    const Operand &cache = step.input(0), &update = step.input(1), &out = step.output();
    require(cache.type == out.type && update.type == out.type && cache.shape == out.shape && cache.dense() &&
                update.dense() && out.dense(),
            "no native kernel for these tensors");
    const int64_t axis = step.integer("axis", 1, cache.rank() - 1);
    require(update.rank() == cache.rank(), "the shapes do not fit");
    for (int i = 0; i < cache.rank(); ++i) {
      require(i == axis || update.shape[i] == cache.shape[i], "the shapes do not fit");
      if (i > 0 && i < axis) outer_ *= cache.shape[i];
      if (i > axis) inner_ *= cache.shape[i];
    }
    batches_ = cache.shape[0], room_ = cache.shape[axis], count_ = update.shape[axis];
    require(count_ <= room_ && cache.elements > 0, "the shapes do not fit");
    inner_ *= type_bytes(out.type);
    given_ = step.has_input(2);
    if (!given_) return;
    const Operand& positions = step.input(2);
    require(positions.type == Type::s64 && positions.elements == batches_ && positions.dense(),
            "one position per batch is needed");
  }

  void run(const Run& run) const override {
    const auto* positions = given_ ? reinterpret_cast<const int64_t*>(run.inputs[2]) : nullptr;
    for (int64_t b = 0; given_ && b < batches_; ++b) {
      if (positions[b] < 0 || (!circular_ && positions[b] > room_ - count_)) throw Undefined();
    }
    run.pool.parallel(batches_ * outer_, [&](int64_t row, int worker) {
      run.check(worker);
      const int64_t whole = room_ * inner_, start = given_ ? positions[row / outer_] % room_ : 0;
      uint8_t* out = run.outputs[0] + row * whole;
      const uint8_t* update = run.inputs[1] + row * count_ * inner_;
      std::memcpy(out, run.inputs[0] + row * whole, static_cast<size_t>(whole));
      const int64_t straight = std::min(count_, room_ - start) * inner_;
      std::memcpy(out + start * inner_, update, static_cast<size_t>(straight));
      std::memcpy(out, update + straight, static_cast<size_t>(count_ * inner_ - straight));
    });
  }

 private:
  bool circular_, given_ = false;
  int64_t batches_ = 0, outer_ = 1, room_ = 0, count_ = 0, inner_ = 1;
};

std::unique_ptr<Kernel> make_tensor_scatter(const Step& step, const CoreSet&) {
  return std::make_unique<TensorScatter>(step);
}

BITTRUE_OPERATOR(tensor_scatter, make_tensor_scatter)

}  // namespace
}  // namespace bittrue

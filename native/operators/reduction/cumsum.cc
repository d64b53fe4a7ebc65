// cumsum and cumprod: running sums and products along one axis, element by element from +0 or 1, or from the first
// element; integers wrap.
#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

// Number is an unsigned type for integers, so that sums wrap.
template <class Number, bool kProduct>
class Running final : public Kernel {
 public:
  Running(int64_t outer, int64_t dimension, int64_t inner, const Step& step)
      : outer_(outer),
        dimension_(dimension),
        inner_(inner),
        exclusive_(step.integer("exclusive", 0, 1) != 0),
        reverse_(step.integer("reverse", 0, 1) != 0),
        from_first_(step.rules.count("start") != 0) {
    require(!from_first_ || step.rule("start") == "first_element", "no native rule for this slot");
  }

  void run(const Run& run) const override {
    const auto* x = reinterpret_cast<const Number*>(run.inputs[0]);
    auto* out = reinterpret_cast<Number*>(run.outputs[0]);
    run.pool.parallel(outer_, [&](int64_t o, int worker) {
      const int64_t first = o * dimension_ * inner_;
      for (int64_t i = 0; i < dimension_; ++i) {
        if (inner_ >= 64 || i % 4096 == 0) run.check(worker);
        const int64_t row = first + (reverse_ ? dimension_ - 1 - i : i) * inner_;
        const int64_t before = row + (reverse_ ? inner_ : -inner_);
        if (i == 0) {
          for (int64_t k = 0; k < inner_; ++k) {
            out[row + k] = exclusive_ ? kNeutral : from_first_ ? x[row + k] : joined(kNeutral, x[row + k]);
          }
          continue;
        }
        // Exclusive ones end one element earlier.
        const Number *sums = out + before, *more = x + (exclusive_ ? before : row);
        for (int64_t k = 0; k < inner_; ++k) out[row + k] = joined(sums[k], more[k]);
      }
    });
  }

 private:
  static constexpr Number kNeutral = kProduct ? 1 : 0;
  static Number joined(Number a, Number b) { return kProduct ? a * b : a + b; }

  int64_t outer_, dimension_, inner_;
  bool exclusive_, reverse_, from_first_;
};

template <bool kProduct>
std::unique_ptr<Kernel> make(const Step& step, const CoreSet&) {
  const Operand &in = step.input(0), &out = step.output();
  require_same_type(in, out);
  require(in.dense() && out.dense() && in.shape == out.shape && in.rank() >= 1, "the shapes do not fit");
  const int64_t axis = step.integer("axis", 0, in.rank() - 1), dimension = in.shape[axis];
  int64_t outer = 1, inner = 1;
  for (int64_t a = 0; a < in.rank() && in.elements != 0; ++a) {
    if (a < axis) outer *= in.shape[a];
    if (a > axis) inner *= in.shape[a];
  }
  if (in.elements == 0) outer = 0;
  switch (in.type) {
    case Type::s32:
    case Type::u32: return std::make_unique<Running<uint32_t, kProduct>>(outer, dimension, inner, step);
    case Type::s64:
    case Type::u64: return std::make_unique<Running<uint64_t, kProduct>>(outer, dimension, inner, step);
    case Type::f32: return std::make_unique<Running<float, kProduct>>(outer, dimension, inner, step);
    case Type::f64: return std::make_unique<Running<double, kProduct>>(outer, dimension, inner, step);
    default: return nullptr;
  }
}

BITTRUE_OPERATOR(cumsum, make<false>)
BITTRUE_OPERATOR(cumprod, make<true>)

}  // namespace
}  // namespace bittrue

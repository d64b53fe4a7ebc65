// cumsum: running sums along one axis, element by element from +0; integers wrap.
#include "core/kernel.h"
#include "operators/strided_copy.h"

namespace bittrue {
namespace {

// Sum is an unsigned type for integers, so that sums wrap.
template <class Sum>
class CumSum final : public Kernel {
 public:
  CumSum(int64_t outer, int64_t extent, int64_t inner, bool exclusive, bool reverse)
      : outer_(outer), extent_(extent), inner_(inner), exclusive_(exclusive), reverse_(reverse) {}

  void run(const Run& run) const override {
    const Sum* x = reinterpret_cast<const Sum*>(run.inputs[0]);
    Sum* out = reinterpret_cast<Sum*>(run.outputs[0]);
    run.pool.parallel(outer_, [&](int64_t o, int worker) {
      const int64_t first = o * extent_ * inner_;
      for (int64_t i = 0; i < extent_; ++i) {
        if (inner_ >= 64 || i % 4096 == 0) run.check(worker);
        const int64_t row = first + (reverse_ ? extent_ - 1 - i : i) * inner_;
        const int64_t before = row + (reverse_ ? inner_ : -inner_);
        for (int64_t k = 0; k < inner_; ++k) {
          // Exclusive sums end one element earlier.
          const Sum so_far = i == 0 ? Sum{0} : out[before + k];
          out[row + k] = !exclusive_ ? so_far + x[row + k] : i == 0 ? Sum{0} : so_far + x[before + k];
        }
      }
    });
  }

 private:
  int64_t outer_, extent_, inner_;
  bool exclusive_, reverse_;
};

template <class Sum>
std::unique_ptr<Kernel> make(const Step& step, int64_t outer, int64_t extent, int64_t inner) {
  return std::make_unique<CumSum<Sum>>(outer, extent, inner, step.integer("exclusive", 0, 1) != 0,
                                       step.integer("reverse", 0, 1) != 0);
}

}  // namespace

std::unique_ptr<Kernel> make_cumsum(const Step& step, const CoreSet&) {
  const Operand &in = step.input(0), &out = step.output();
  require_same_type(in, out);
  require(in.dense() && out.dense() && in.shape == out.shape && in.rank() >= 1, "the shapes do not fit");
  const int64_t axis = step.integer("axis", 0, in.rank() - 1);
  int64_t outer = 1, inner = 1;
  for (int64_t a = 0; a < in.rank() && in.elements != 0; ++a) {
    if (a < axis) outer *= in.shape[a];
    if (a > axis) inner *= in.shape[a];
  }
  if (in.elements == 0) outer = 0;
  switch (in.type) {
    case Type::s32: return make<uint32_t>(step, outer, in.shape[axis], inner);
    case Type::s64: return make<uint64_t>(step, outer, in.shape[axis], inner);
    case Type::f32: return make<float>(step, outer, in.shape[axis], inner);
    default: return nullptr;
  }
}

}  // namespace bittrue

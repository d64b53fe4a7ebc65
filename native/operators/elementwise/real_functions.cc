// hard_sigmoid, softsign, softplus, mish, and circular and hyperbolic functions of real numbers; not_finite. Every
// operation is rounded, but for those of the C library whose products are joined to sums.
#include <atomic>
#include <cmath>
#include <type_traits>

#include "arithmetic/circular.h"
#include "arithmetic/elementary.h"
#include "operators/core/map.h"
#include "operators/core/registry.h"
#include "operators/elementwise/grouped_map.h"
#include "operators/elementwise/real_loops.h"

namespace bittrue {
namespace {

void require_single_operations(const Step& step) {
  require(step.rule("real_function") == "binary32_single_operations", "no native rule for this slot");
  require(step.input(0).type == Type::f32 && step.output().type == Type::f32, "no native kernel for these types");
}

bool joined(const Step& step) {
  if (step.rule("real_function") != "binary32_joined_operations") return false;
  require(step.input(0).type == Type::f32 && step.output().type == Type::f32, "no native kernel for these types");
  return true;
}

std::unique_ptr<Kernel> make_hard_sigmoid(const Step& step, const CoreSet& cores) {
  require_single_operations(step);
  const auto alpha = static_cast<float>(step.real("alpha")), beta = static_cast<float>(step.real("beta"));
  return make_real_loop(step, cores, {RealLoop::hard_sigmoid, alpha, beta});
}

std::unique_ptr<Kernel> make_softsign(const Step& step, const CoreSet&) {
  require_single_operations(step);
  return make_map<float, float>(step, [](float x) { return x * (1.0f / (1.0f + std::fabs(x))); });
}

// max(x, 0) + log(1 + e^-|x|)
template <bool kJoined>
float softplus_by_library(float x) {
  if (x != x) return x + x;
  const float logarithm = arithmetic::log1p<kJoined>(arithmetic::exp(-std::fabs(x)));
  return x > 0 ? x + logarithm : logarithm;
}

std::unique_ptr<Kernel> make_softplus(const Step& step, const CoreSet& cores) {
  if (step.rule("real_function") == "binary32_log_of_sum") {
    require(step.input(0).type == Type::f32 && step.output().type == Type::f32, "no native kernel for these types");
    return make_map<float, float>(
        step, [](float x) { return (x > 0 ? x : 0.0f) + arithmetic::log(arithmetic::exp(x > 0 ? -x : x) + 1.0f); });
  }
  if (joined(step)) return make_map<float, float>(step, softplus_by_library<true>);
  require_single_operations(step);
  return make_grouped_map(step, grouped_loop(cores, {RealLoop::softplus}), softplus_by_library<false>);
}

// tanh(softplus(x)) x; the reference decides which NaN stays.
class Mish final : public Kernel {
 public:
  Mish(const Step& step, const CoreSet& cores)
      : inner_(make_softplus(step, cores)), tanh_(cores.real_function()), elements_(step.output().elements) {}

  void run(const Run& run) const override {
    inner_->run(run);
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    std::atomic<bool> defined{true};
    run.pool.parallel((elements_ + kBlock - 1) / kBlock, [&](int64_t block, int) {
      const int64_t first = block * kBlock, last = std::min(elements_, first + kBlock);
      tanh_(RealFunction::tanh, out + first, out + first, last - first);
      bool numbers = true;
      for (int64_t i = first; i < last; ++i) {
        numbers &= in[i] == in[i];
        out[i] *= in[i];
      }
      if (!numbers) defined.store(false, std::memory_order_relaxed);
    });
    if (!defined.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr int64_t kBlock = 4096;
  std::unique_ptr<Kernel> inner_;
  RealFunctionCore tanh_;
  int64_t elements_;
};

std::unique_ptr<Kernel> make_mish(const Step& step, const CoreSet& cores) {
  return std::make_unique<Mish>(step, cores);
}

template <class Function>
std::unique_ptr<Kernel> make_single(const Step& step, Function function, Function of_joined_operations) {
  if (joined(step)) return make_map<float, float>(step, of_joined_operations);
  require_single_operations(step);
  return make_map<float, float>(step, function);
}

template <class Rest>
std::unique_ptr<Kernel> make_grouped(const Step& step, const CoreSet& cores, RealLoop::Function function, Rest rest) {
  require_single_operations(step);
  return make_grouped_map(step, grouped_loop(cores, {function}), rest);
}

std::unique_ptr<Kernel> make_acos(const Step& step, const CoreSet& cores) {
  return make_grouped(step, cores, RealLoop::arc_cosine, [](float x) { return arithmetic::acos(x); });
}

std::unique_ptr<Kernel> make_acosh(const Step& step, const CoreSet&) {
  return make_single(step, arithmetic::acosh<false>, arithmetic::acosh<true>);
}

std::unique_ptr<Kernel> make_asin(const Step& step, const CoreSet& cores) {
  return make_grouped(step, cores, RealLoop::arc_sine, [](float x) { return arithmetic::asin(x); });
}

std::unique_ptr<Kernel> make_asinh(const Step& step, const CoreSet&) {
  return make_single(step, arithmetic::asinh<false>, arithmetic::asinh<true>);
}

std::unique_ptr<Kernel> make_atan(const Step& step, const CoreSet& cores) {
  return make_grouped(step, cores, RealLoop::arc_tangent, [](float x) { return arithmetic::atan(x); });
}

std::unique_ptr<Kernel> make_atanh(const Step& step, const CoreSet&) {
  return make_single(step, arithmetic::atanh<false>, arithmetic::atanh<true>);
}

std::unique_ptr<Kernel> make_cosh(const Step& step, const CoreSet&) {
  return make_single(step, arithmetic::cosh<false>, arithmetic::cosh<true>);
}

std::unique_ptr<Kernel> make_sinh(const Step& step, const CoreSet&) {
  return make_single(step, arithmetic::sinh<false>, arithmetic::sinh<true>);
}

std::unique_ptr<Kernel> make_tan(const Step& step, const CoreSet&) {
  return make_single(step, arithmetic::tan<false>, arithmetic::tan<true>);
}

// The bits below the sign, `infinity` those of an infinity: what lies above are NaN.
template <class Bits>
std::unique_ptr<Kernel> not_finite_of(const Step& step, Bits infinity) {
  using Size = std::make_signed_t<Bits>;
  constexpr int kShift = 8 * sizeof(Bits) - 1;
  const auto nan = static_cast<Size>(step.integer("nan", 0, 1)),
             positive = static_cast<Size>(step.integer("positive", 0, 1));
  const auto other = static_cast<Size>(step.integer("negative", 0, 1) ^ positive);
  const auto end = static_cast<Size>(infinity);
  return make_map<Bits, uint8_t>(step, [=](Bits x) {
    const auto negative = static_cast<Size>(x >> kShift);
    const auto size = static_cast<Size>(x & static_cast<Bits>(~(Bits{1} << kShift)));
    const auto beyond = static_cast<Size>(size > end), equal = static_cast<Size>(size == end);
    return static_cast<uint8_t>((beyond & nan) | (equal & (positive ^ (other & negative))));
  });
}

// What differs from itself.
std::unique_ptr<Kernel> make_nan(const Step& step, const CoreSet& cores, PairLoop::Number number, size_t bytes) {
  const auto block = [core = cores.pair_loop(), number](const uint8_t* const* in, uint8_t* out, int64_t count) {
    core({PairLoop::not_equal, number}, in[0], in[0], out, count);
  };
  return make_blocks(step, {bytes}, 1, BlockFunction(block));
}

std::unique_ptr<Kernel> make_not_finite(const Step& step, const CoreSet& cores) {
  const std::string& type = step.text("dtype");
  require(step.output().type == Type::boolean, "no native kernel for these types");
  if (step.integer("nan", 0, 1) != 0 && step.integer("negative", 0, 1) == 0 && step.integer("positive", 0, 1) == 0) {
    if (type == "f32") return make_nan(step, cores, PairLoop::f32, 4);
    if (type == "f64") return make_nan(step, cores, PairLoop::f64, 8);
  }
  if (type == "f32") return not_finite_of<uint32_t>(step, 0x7f800000u);
  if (type == "f64") return not_finite_of<uint64_t>(step, 0x7ff0000000000000u);
  if (type == "f16") return not_finite_of<uint16_t>(step, 0x7c00u);
  return type == "bf16" ? not_finite_of<uint16_t>(step, 0x7f80u) : nullptr;
}

BITTRUE_OPERATOR(acos, make_acos)
BITTRUE_OPERATOR(acosh, make_acosh)
BITTRUE_OPERATOR(asin, make_asin)
BITTRUE_OPERATOR(asinh, make_asinh)
BITTRUE_OPERATOR(atan, make_atan)
BITTRUE_OPERATOR(atanh, make_atanh)
BITTRUE_OPERATOR(cosh, make_cosh)
BITTRUE_OPERATOR(hard_sigmoid, make_hard_sigmoid)
BITTRUE_OPERATOR(mish, make_mish)
BITTRUE_OPERATOR(not_finite, make_not_finite)
BITTRUE_OPERATOR(sinh, make_sinh)
BITTRUE_OPERATOR(softplus, make_softplus)
BITTRUE_OPERATOR(softsign, make_softsign)
BITTRUE_OPERATOR(tan, make_tan)

}  // namespace
}  // namespace bittrue

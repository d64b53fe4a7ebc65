// gelu: x times the normal distribution function of x; integers by tables.
#include <limits>

#include "arithmetic/elementary.h"
#include "arithmetic/fused.h"
#include "arithmetic/rational.h"
#include "operators/core/registry.h"
#include "operators/elementwise/grouped_map.h"
#include "operators/elementwise/half_map.h"
#include "operators/elementwise/logistic.h"
#include "operators/elementwise/polynomial_function.h"

namespace bittrue {
namespace {

namespace rational = arithmetic::rational;

template <bool kFused>
float by_tanh(float x) {
  const float inner = 0.7978845608028654f * (x + 0.044715f * (x * x * x));
  return 0.5f * x * (1.0f + rational::tanh<kFused>(inner));
}

// The last elements, fewer than a group, use another exponential.
template <bool kRest>
float exact(float x) {
  return 0.5f * x * rational::erfc(x * -0.7071067811865476f, [](float h) {
           return kRest ? arithmetic::exp(h) : rational::exp(h);
         });
}

// x logistic(alpha x), or with a function that is limited by 1.
class QuickGelu final : public BlockKernel {
 public:
  QuickGelu(const Step& step, const CoreSet& cores)
      : BlockKernel(step, 1),
        core_(cores.real_function()),
        limit_(cores.real_loop()),
        product_(cores.pair_loop()),
        alpha_(static_cast<float>(step.real("alpha"))),
        limited_(step.rule("real_function") == "binary32_fused_below_1") {
    require(step.input(0).type == Type::f32 && step.output().type == Type::f32, "no native kernel for these types");
    require(limited_ || step.rule("real_function") == "binary32_fused_polynomials", "no native rule for this slot");
  }

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    const auto* x = reinterpret_cast<const float*>(in[0]);
    auto* y = reinterpret_cast<float*>(out);
    if (alpha_ != 1.0f) product_({PairLoop::product, PairLoop::f32, false, true}, x, &alpha_, y, count);
    core_(RealFunction::logistic, alpha_ == 1.0f ? x : y, y, count);
    if (limited_) limit_({RealLoop::limit, -std::numeric_limits<float>::infinity(), 1.0f}, y, y, count);
    product_({PairLoop::product, PairLoop::f32}, x, y, y, count);
  }

  RealFunctionCore core_;
  RealLoopCore limit_;
  PairLoopCore product_;
  float alpha_;
  bool limited_;
};

std::unique_ptr<Kernel> make_gelu(const Step& step, const CoreSet& cores) {
  if (step.has_array("table")) return make_table(step, cores);
  if (step.reals.count("alpha") != 0) return std::make_unique<QuickGelu>(step, cores);
  const bool approximate = step.integer("approximate", 0, 1) != 0;
  if (of_halves(step)) {
    namespace short_functions = arithmetic::short_functions;
    const std::string& rule = step.rule("real_gelu");
    if (!approximate) return make_half_map(step, rule, short_functions::gelu, short_functions::gelu);
    return make_half_map(step, rule, short_functions::gelu_by_tanh<false>, short_functions::gelu_by_tanh<true>);
  }
  const RealFunction function = approximate ? RealFunction::gelu_tanh : RealFunction::gelu;
  if (auto kernel = make_polynomial(step, cores, function, "real_gelu")) return kernel;
  if (step.rule("real_gelu") == "binary32_fused") {
    if (step.input(0).type != Type::f32 || step.output().type != Type::f32) return nullptr;
    return make_map<float, float>(step, [approximate](float x) { return arithmetic::fused::gelu(x, approximate); });
  }
  if (step.rule("real_gelu") == "binary32_fused_rational_lanes_4" && approximate) {
    return make_map<float, float>(step, [](float x) { return by_tanh<true>(x); });
  }
  require(step.rule("real_gelu") == "binary32_rational_lanes_4", "no native rule for this slot");
  if (approximate) return make_map<float, float>(step, [](float x) { return by_tanh<false>(x); });
  return make_grouped_map(step, [](float x) { return exact<false>(x); }, [](float x) { return exact<true>(x); });
}

BITTRUE_OPERATOR(gelu, make_gelu)

}  // namespace
}  // namespace bittrue

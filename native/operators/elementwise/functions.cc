// exp, log, elu, sin and cos: tables for quantized integers, evaluation for real numbers.
#include "arithmetic/elementary.h"
#include "arithmetic/fused.h"
#include "arithmetic/rational_wide.h"
#include "operators/core/registry.h"
#include "operators/elementwise/grouped_map.h"
#include "operators/elementwise/half_map.h"
#include "operators/elementwise/logistic.h"
#include "operators/elementwise/polynomial_function.h"
#include "operators/elementwise/real_loops.h"

namespace bittrue {
namespace {

namespace fused = arithmetic::fused;
namespace short_functions = arithmetic::short_functions;

template <class Function, class Fused>
std::unique_ptr<Kernel> make_function(const Step& step, const CoreSet& cores, Function function, Fused fused) {
  if (step.has_array("table")) return make_table(step, cores);
  if (step.input(0).type != Type::f32 || step.output().type != Type::f32) return nullptr;
  const std::string& rule = step.rule("real_function");
  if (rule == "binary32_fused") return make_map<float, float>(step, fused);
  require(rule == "binary32_elementary", "no native rule for this slot");
  return make_map<float, float>(step, function);
}

bool follows(const Step& step, const char* rule) {
  const auto found = step.rules.find("real_function");
  return found != step.rules.end() && found->second == rule;
}

bool in_groups(const Step& step) { return follows(step, "binary32_single_operations"); }

bool by_exponent(const Step& step) {
  return follows(step, "binary32_fused_by_exponent") && step.input(0).type == Type::f32 &&
         step.output().type == Type::f32;
}

std::unique_ptr<Kernel> make_cos(const Step& step, const CoreSet& cores) {
  if (in_pairs(step)) {
    return make_paired_map(step, real_loops::WideFunction::cos, arithmetic::rational_wide::library_cos);
  }
  if (of_halves(step)) {
    return make_half_map(step, step.rule("real_function"), short_functions::cos<false>, short_functions::cos<true>);
  }
  const auto plain = [](float x) { return arithmetic::cos(x); };
  if (in_groups(step)) return make_grouped_map(step, real_loops::rational_cos, plain);
  return make_function(step, cores, plain, [](float x) { return fused::cos(x); });
}

// Functions with factors.
std::unique_ptr<Kernel> make_exponential_unit(const Step& step, const CoreSet& cores) {
  const std::string& function = step.text("function");
  const auto alpha = static_cast<float>(step.real("alpha"));
  if (function == "parametric_elu") {
    return make_grouped_map(step, grouped_loop(cores, {RealLoop::elu, alpha}),
                            [alpha](float x) { return x < 0 ? alpha * (arithmetic::exp(x) - 1.0f) : x; });
  }
  if (function == "celu") {
    return make_grouped_map(step, grouped_loop(cores, {RealLoop::celu, alpha}), [alpha](float x) {
      const float below = alpha * (arithmetic::exp(x / alpha) - 1.0f);
      return (x < 0 ? 0.0f : x) + (below > 0 ? 0.0f : below);
    });
  }
  require(function == "selu", "no native function");
  const auto gamma = static_cast<float>(step.real("gamma"));
  return make_grouped_map(step, grouped_loop(cores, {RealLoop::selu, alpha, gamma}),
                          [=](float x) { return x > 0 ? gamma * x : gamma * alpha * (arithmetic::exp(x) - 1.0f); });
}

std::unique_ptr<Kernel> make_elu(const Step& step, const CoreSet& cores) {
  if (in_groups(step)) return make_exponential_unit(step, cores);
  if (by_exponent(step)) return make_map<float, float>(step, [](float x) { return fused::elu_by_exponent(x); });
  return make_function(
      step, cores, [](float x) { return x < 0 ? arithmetic::expm1(x) : x; }, [](float x) { return fused::elu(x); });
}

std::unique_ptr<Kernel> make_erf(const Step& step, const CoreSet& cores) {
  return make_polynomial(step, cores, RealFunction::erf);
}

std::unique_ptr<Kernel> make_exp(const Step& step, const CoreSet& cores) {
  if (in_pairs(step)) {
    return make_paired_map(step, real_loops::WideFunction::exp, arithmetic::rational_wide::library_exp);
  }
  if (auto kernel = make_polynomial(step, cores, RealFunction::exp)) return kernel;
  return make_function(step, cores, [](float x) { return arithmetic::exp(x); }, [](float x) { return fused::exp(x); });
}

std::unique_ptr<Kernel> make_log(const Step& step, const CoreSet& cores) {
  if (in_pairs(step)) {
    return make_paired_map(step, real_loops::WideFunction::log, arithmetic::rational_wide::library_log);
  }
  if (in_groups(step)) {
    return make_grouped_map(step, grouped_loop(cores, {RealLoop::log}), [](float x) { return arithmetic::log(x); });
  }
  const bool of_tables = follows(step, "binary32_fused_tables") && step.input(0).type == Type::f32;
  if (by_exponent(step) || of_tables) {
    return make_map<float, float>(step, [](float x) { return fused::log_by_exponent(x); });
  }
  return make_function(step, cores, [](float x) { return arithmetic::log(x); }, [](float x) { return fused::log(x); });
}

std::unique_ptr<Kernel> make_sin(const Step& step, const CoreSet& cores) {
  if (in_pairs(step)) {
    return make_paired_map(step, real_loops::WideFunction::sin, arithmetic::rational_wide::library_sin);
  }
  if (of_halves(step)) {
    return make_half_map(step, step.rule("real_function"), short_functions::sin<false>, short_functions::sin<true>);
  }
  const auto plain = [](float x) { return arithmetic::sin(x); };
  if (in_groups(step)) return make_grouped_map(step, real_loops::rational_sin, plain);
  return make_function(step, cores, plain, [](float x) { return fused::sin(x); });
}

BITTRUE_OPERATOR(cos, make_cos)
BITTRUE_OPERATOR(elu, make_elu)
BITTRUE_OPERATOR(erf, make_erf)
BITTRUE_OPERATOR(exp, make_exp)
BITTRUE_OPERATOR(log, make_log)
BITTRUE_OPERATOR(sin, make_sin)

}  // namespace
}  // namespace bittrue

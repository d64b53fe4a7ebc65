// Elementary functions by the cores' polynomials.
#pragma once

#include <limits>

#include "operators/core/map.h"

namespace bittrue {

class PolynomialFunction final : public BlockKernel {
 public:
  PolynomialFunction(const Step& step, const CoreSet& cores, RealFunction function, bool limited = false)
      : BlockKernel(step, 1),
        core_(cores.real_function()),
        limit_(cores.real_loop()),
        function_(function),
        limited_(limited) {
    require(step.input(0).type == Type::f32 && step.output().type == Type::f32, "no native kernel for these types");
  }

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    auto* y = reinterpret_cast<float*>(out);
    core_(function_, reinterpret_cast<const float*>(in[0]), y, count);
    if (limited_) limit_({RealLoop::limit, -std::numeric_limits<float>::infinity(), 1.0f}, y, y, count);
  }

  RealFunctionCore core_;
  RealLoopCore limit_;
  RealFunction function_;
  bool limited_;  // by 1
};

// Null unless the slot has the rule binary32_fused_polynomials, or the one whose results are limited.
inline std::unique_ptr<Kernel> make_polynomial(const Step& step, const CoreSet& cores, RealFunction function,
                                               const char* slot = "real_function") {
  const auto found = step.rules.find(slot);
  const bool limited = found != step.rules.end() && found->second == "binary32_fused_below_1";
  if (!limited && (found == step.rules.end() || found->second != "binary32_fused_polynomials")) return nullptr;
  return std::make_unique<PolynomialFunction>(step, cores, function, limited);
}

}  // namespace bittrue

// Elementary functions by the cores' polynomials.
#pragma once

#include "operators/core/map.h"

namespace bittrue {

class PolynomialFunction final : public BlockKernel {
 public:
  PolynomialFunction(const Step& step, const CoreSet& cores, RealFunction function)
      : BlockKernel(step, 1), core_(cores.real_function()), function_(function) {
    require(step.input(0).type == Type::f32 && step.output().type == Type::f32, "no native kernel for these types");
  }

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    core_(function_, reinterpret_cast<const float*>(in[0]), reinterpret_cast<float*>(out), count);
  }

  RealFunctionCore core_;
  RealFunction function_;
};

// Null unless the slot has the rule binary32_fused_polynomials.
inline std::unique_ptr<Kernel> make_polynomial(const Step& step, const CoreSet& cores, RealFunction function,
                                               const char* slot = "real_function") {
  const auto found = step.rules.find(slot);
  if (found == step.rules.end() || found->second != "binary32_fused_polynomials") return nullptr;
  return std::make_unique<PolynomialFunction>(step, cores, function);
}

}  // namespace bittrue

// Functions of binary16 numbers that are evaluated in binary32.
#pragma once

#include "arithmetic/short_functions.h"
#include "operators/core/map.h"

namespace bittrue {

inline bool of_halves(const Step& step) { return step.input(0).type == Type::f16 && step.output().type == Type::f16; }

// Function: float operator()(float) const.
template <class Function>
std::unique_ptr<Kernel> make_half_map(const Step& step, const Function& function) {
  return make_map<uint16_t, uint16_t>(step, [function](uint16_t x) {
    return arithmetic::short_functions::stored(function(arithmetic::half_to_float(x)));
  });
}

// The same where `rule` is `fused` or `apart`; null for another one.
template <class Fused, class Apart>
std::unique_ptr<Kernel> make_half_map(const Step& step, const std::string& rule, const Fused& fused,
                                      const Apart& apart) {
  if (!of_halves(step)) return nullptr;
  if (rule == "binary32_short") return make_half_map(step, fused);
  return rule == "binary32_short_apart" ? make_half_map(step, apart) : nullptr;
}

}  // namespace bittrue

// The functions of gates on real numbers, by the rule binary32_polynomials of the slot `recurrence`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/core_set.h"

namespace bittrue {

// Where a function stands, which decides how it is computed.
enum class GatePlace : uint8_t { gate, cell, merged, whole_layer };

class GateFunction {
 public:
  // In place.
  void apply(float* x, int64_t count) const;

  // Number `which` of a text such as "sigmoid 0.0 0.0, tanh 0.0 0.0"; NoKernel for what has no native twin.
  static GateFunction read(const std::string& text, int64_t which, GatePlace place, const CoreSet& cores);

 private:
  using Loop = void (*)(float* x, int64_t count, float alpha, float beta);

  RealFunctionCore core_ = nullptr;
  RealFunction function_ = RealFunction::logistic;
  Loop loop_ = nullptr;  // instead of the core
  float alpha_ = 0, beta_ = 0;
};

}  // namespace bittrue

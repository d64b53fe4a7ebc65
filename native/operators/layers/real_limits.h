// Limits that a pass moved into the layer of real numbers before them.
#pragma once

#include <limits>

#include "core/step.h"

namespace bittrue {

struct RealLimits {
  RealLimits() = default;
  // The step's parameters `limit_low` and `limit_high`, when they are there.
  explicit RealLimits(const Step& step) {
    const auto least = step.reals.find("limit_low"), most = step.reals.find("limit_high");
    if (least != step.reals.end()) low = static_cast<float>(least->second);
    if (most != step.reals.end()) high = static_cast<float>(most->second);
  }

  // NaN, and -0 beside 0, stay.
  float operator()(float x) const {
    const float raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
  void apply(float* numbers, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) numbers[i] = (*this)(numbers[i]);
  }

  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
};

}  // namespace bittrue

// What the plan says of averages by the slot `window_average`.
#pragma once

#include "core/step.h"
#include "rules/window_average.h"

namespace bittrue {

template <bool kFused>
struct ScaledNumbers {
  explicit ScaledNumbers(const Step& step) {
    constexpr int64_t kLow = -(1 << 23), kHigh = 1 << 23;
    low = static_cast<int32_t>(step.integer("low", kLow, kHigh));
    high = static_cast<int32_t>(step.integer("high", kLow, kHigh));
    input_zero_point = step.integer("input_zero_point", -256, 256);
    zero_point = static_cast<int32_t>(step.integer("output_zero_point", kLow, kHigh));
    if (kFused) {
      require(step.array("factor").count == 1 && step.array("factor").type == Type::f32, "there must be one factor");
      factor = static_cast<float>(step.array("factor").real(0));
      return;
    }
    require(step.array("multiplier").count == 1 && step.array("right_shift").count == 1,
            "there must be one multiplier");
    multiplier = step.array("multiplier").integer(0);
    right = step.array("right_shift").integer(0);
    require(multiplier >= 0 && multiplier < int64_t{1} << 24 && right >= 1 && right <= 62,
            "the multiplier is out of range");
  }

  rules::ScaledAverage<kFused> average(int64_t count) const {
    return {multiplier, static_cast<int>(right), factor, count, zero_point, low, high};
  }

  int32_t low = 0, high = 0, zero_point = 0;
  int64_t input_zero_point = 0, multiplier = 0, right = 1;
  float factor = 0;
};

}  // namespace bittrue

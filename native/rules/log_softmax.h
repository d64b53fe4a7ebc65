// Scalar twin of src/bittrue/rules/log_softmax.py; tables are built in Python only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arithmetic/fixed_point.h"
#include "arithmetic/transcendental.h"
#include "rules/rescale.h"

namespace bittrue::rules {

// One row: sixteenths, 0 or less, not yet clamped, for a difference to the row's largest value and its scaled form.
struct LogSoftmaxRow {
  static constexpr int kOutputRightShift = 22;     // F5 to F4 with 8 bits
  static constexpr int64_t kNothing = -(1 << 16);  // below everything that is representable

  int64_t logarithm, threshold;

  // `sum` of the exponentials in F12; `inverse` stands for one over the scale's multiplier.
  LogSoftmaxRow(int64_t sum, int64_t smallest, const Multiplier& inverse) : logarithm(arithmetic::logarithm(sum)) {
    threshold = std::max(smallest - 1, q31_two_step_up_away(arithmetic::wrap_s32(logarithm + INT32_MIN), inverse));
  }
  int64_t operator()(int64_t difference, int64_t scaled) const {
    if (difference <= threshold) return kNothing;
    return arithmetic::divide_by_power_of_two_away(arithmetic::wrap_s32(scaled - logarithm), kOutputRightShift);
  }
};

}  // namespace bittrue::rules

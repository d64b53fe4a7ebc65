// Scalar twins of src/bittrue/rules/sigmoid.py: 16-bit logistic and tanh from 256 samples of the logistic function.
#pragma once

#include <cstdint>
#include <vector>

#include "arithmetic/fixed_point.h"

namespace bittrue::rules {

// The argument's multiplier and right shift, and the samples.
struct Sigmoid {
  static constexpr int64_t kSaturated = 255;  // first interval without a right end in the table

  int64_t multiplier = 0;
  int right_shift = 0;
  std::vector<int64_t> samples;  // 256

  int64_t argument(int64_t q) const { return arithmetic::divide_by_power_of_two_up(q * multiplier, right_shift); }

  // Linear between entries 2^bits apart; `saturated` from the last entry on.
  int64_t interpolate(int64_t magnitude, int bits, int64_t saturated) const {
    const int64_t index = magnitude >> bits;
    if (index >= kSaturated) return saturated;
    const int64_t left = samples[index], right = samples[index + 1];
    return (left << bits) + (magnitude & ((1 << bits) - 1)) * (right - left);
  }

  int64_t logistic(int64_t q) const {
    const int64_t x = argument(q);
    const int64_t value = interpolate(x < 0 ? -x : x, 9, 0x7FFF << 10);
    return (x >= 0 ? value + (1 << 9) : (1 << 25) - value + (1 << 9) - 1) >> 10;
  }

  int64_t tanh(int64_t q) const {
    const int64_t x = argument(q);
    const int64_t value = interpolate(x < 0 ? -x : x, 8, 0xFFFF << 8);
    constexpr int64_t one = 1 << 23;
    return (x >= 0 ? value - one + (1 << 7) : -value + one + (1 << 7) - 1) >> 8;
  }
};

}  // namespace bittrue::rules

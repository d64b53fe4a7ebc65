// Scalar twin of src/bittrue/rules/layer_norm.py.
#pragma once

#include <cstdint>

#include "arithmetic/transcendental.h"

namespace bittrue::rules {

// What all cells of one gate have in common. 1 <= count, 1 <= guard < 2^31.
struct LayerNorm {
  int64_t mean = 0;
  arithmetic::InverseRoot inverse{};

  LayerNorm(const int16_t* gate, int64_t count, int64_t guard) {
    int64_t total = 0, squares = 0;
    for (int64_t i = 0; i < count; ++i) {
      total += gate[i];
      squares += int64_t{gate[i]} * gate[i];
    }
    mean = total * 1024 / count;
    const int64_t variance = (squares * ((int64_t{1} << 20) / count) - mean * mean) / (int64_t{1} << 20);
    inverse = arithmetic::inverse_square_root(variance < 1 ? guard : variance);
  }

  // Clears `defined` where the product plus the bias leaves 32 bits.
  int64_t operator()(int64_t gate, int64_t weight, int64_t bias, bool* defined) const {
    const int64_t high = arithmetic::doubling_high_multiply_up(1024 * gate - mean, inverse.multiplier);
    const int64_t weighted = arithmetic::divide_by_power_of_two_away(high, -inverse.exponent) * weight + bias;
    if (weighted < INT32_MIN || weighted > INT32_MAX) *defined = false;
    return (weighted + (weighted > 0 ? 512 : -512)) / 1024;
  }
};

}  // namespace bittrue::rules

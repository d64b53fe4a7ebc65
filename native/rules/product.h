// Scalar twin of src/bittrue/rules/product.py; the other rule there, exact_s32, is a product that wraps to 32 bits.
#pragma once

#include <cstdint>

#include "arithmetic/fixed_point.h"

namespace bittrue::rules {

inline int64_t q15_up_then_256_away(int64_t first, int64_t second) {
  return arithmetic::divide_by_power_of_two_away(arithmetic::doubling_high_multiply_up_s16(first, second), 8);
}

}  // namespace bittrue::rules

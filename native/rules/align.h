// Twins of src/bittrue/rules/align.py.
#pragma once

#include <cstdint>

#include "arithmetic/fixed_point.h"
#include "rules/rescale.h"

namespace bittrue::rules {

struct AlignRow {
  const char* name;
  int left;
};

inline constexpr AlignRow kAlign[] = {
    {"left_20", 20}, {"left_15", 15}, {"left_7", 7}, {"power_of_two_or_left_15", 15}};

// rescale((q - zero_point) * 2^left); the moved value wraps to 32 bits.
inline int64_t align(int64_t centred, int left, RescaleRule rule, const Multiplier& m) {
  return apply(rule, arithmetic::wrap_s32(static_cast<int64_t>(static_cast<uint64_t>(centred) << left)), m);
}

inline int64_t align_power_of_two(int64_t q, int right_shift) {
  return arithmetic::divide_by_power_of_two_away(q, right_shift);
}

}  // namespace bittrue::rules

// Scalar twins of src/bittrue/rules/center.py. Differences in binary32 and binary64 are integers, too.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "arithmetic/fixed_point.h"

namespace bittrue::rules {

enum class CenterRule : uint8_t { s16_wrap, s32_wrap, binary32, binary64 };

// The rule of a name; false where there is no twin.
inline bool find_rule(const std::string& name, CenterRule& found) {
  constexpr const char* kNames[] = {"s16_wrap", "s32_wrap", "binary32", "binary64"};
  for (int i = 0; i < 4; ++i) {
    if (name != kNames[i]) continue;
    found = static_cast<CenterRule>(i);
    return true;
  }
  return false;
}

// The integer of these real numbers; beyond 64 bits the last one inside of them.
inline int64_t whole(double x) {
  if (x >= 0x1p63) return std::numeric_limits<int64_t>::max();
  return x < -0x1p63 ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(x);
}

// The zero point has 32 bits, `q` 32 or 64.
inline int64_t center(CenterRule rule, int64_t q, int64_t zero_point) {
  const int64_t difference = arithmetic::wrapping_sum(q, -zero_point);
  switch (rule) {
    case CenterRule::s16_wrap: return static_cast<int16_t>(static_cast<uint16_t>(difference));
    case CenterRule::s32_wrap: return arithmetic::wrap_s32(difference);
    case CenterRule::binary32: return whole(static_cast<float>(q) - static_cast<float>(zero_point));
    default: return whole(static_cast<double>(q) - static_cast<double>(zero_point));
  }
}

}  // namespace bittrue::rules

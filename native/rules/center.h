// Scalar twins of src/bittrue/rules/center.py. Differences in binary32 and binary64 are integers, too.
#pragma once

#include <cstdint>
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

// Both numbers have 32 bits.
inline int64_t center(CenterRule rule, int64_t q, int64_t zero_point) {
  switch (rule) {
    case CenterRule::s16_wrap: return static_cast<int16_t>(static_cast<uint16_t>(q - zero_point));
    case CenterRule::s32_wrap: return arithmetic::wrap_s32(q - zero_point);
    case CenterRule::binary32: return static_cast<int64_t>(static_cast<float>(q) - static_cast<float>(zero_point));
    default: return q - zero_point;
  }
}

}  // namespace bittrue::rules

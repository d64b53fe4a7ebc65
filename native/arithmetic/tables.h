// Scalar twins of the readers in src/bittrue/arithmetic/tables.py. Tables themselves are built in Python only.
#pragma once

#include <cstdint>

namespace bittrue::arithmetic {

// base + floor(slope * (x mod 128) / 128 + 1/2) with i = 256 + floor(x / 128); slope and result wrap to 16 bits.
// Domain: x s16, 513 entries.
inline int64_t lookup_513(const int16_t* table, int64_t x) {
  const int64_t index = 256 + (x >> 7);
  const int64_t base = table[index];
  const auto slope = static_cast<int16_t>(table[index + 1] - base);
  return static_cast<int16_t>(base + ((slope * (x & 127) + 64) >> 7));
}

}  // namespace bittrue::arithmetic

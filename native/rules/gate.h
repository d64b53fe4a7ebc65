// Twins of src/bittrue/rules/gate.py, as tables over all 16-bit arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "arithmetic/transcendental.h"

namespace bittrue::rules {

// A function of a 16-bit number; `at(x)` is what the slow one gives.
class GateTable {
 public:
  template <class Function>
  explicit GateTable(const Function& function) : entries_(65536) {
    for (int x = -32768; x <= 32767; ++x) entries_[static_cast<uint16_t>(x)] = static_cast<int16_t>(function(x));
  }
  int64_t at(int64_t x) const { return entries_[static_cast<uint16_t>(x)]; }
  // In place.
  void apply(int16_t* x, int64_t count) const {
    const int16_t* entries = entries_.data();
    for (int64_t i = 0; i < count; ++i) x[i] = entries[static_cast<uint16_t>(x[i])];
  }

 private:
  std::vector<int16_t> entries_;
};

inline constexpr int kMostTanhBits = 6;

// Built when first used, kept for good: every recurrent layer shares them.
inline const GateTable& logistic_table() {
  static const GateTable table([](int x) { return arithmetic::logistic_s16(x); });
  return table;
}

// integer_bits in 0..kMostTanhBits.
template <int kBits = 0>
const GateTable& tanh_table(int integer_bits) {
  if constexpr (kBits < kMostTanhBits) {
    if (integer_bits > kBits) return tanh_table<kBits + 1>(integer_bits);
  }
  static const GateTable table([](int x) { return arithmetic::tanh_s16(x, kBits); });
  return table;
}

}  // namespace bittrue::rules

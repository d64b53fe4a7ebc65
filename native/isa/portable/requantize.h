// rules::requantize for runs of columns, with everything that does not depend on the accumulator done beforehand.
#pragma once

#include <cstdint>
#include <vector>

#include "rules/requantize.h"

namespace bittrue::portable {

// out[i] = requantize(acc[i], column first + i).
class Requantizer {
 public:
  explicit Requantizer(const rules::Requantize& requantize);
  void run(const int32_t* acc, int64_t first, int64_t count, uint8_t* out) const;
  // The same for column i without an object, and without memory of its own.
  static void run_once(const rules::Requantize& requantize, const int32_t* acc, int64_t count, uint8_t* out);

 private:
  // floor((a * multiplier + addend) / 2^right), a being the accumulator shifted left modulo 2^32; `less` is taken from
  // the addend when a < 0.
  struct Column {
    int64_t multiplier, addend, less;
    int left, right;
  };

  static bool integer_column(rules::RescaleRule rule, const rules::Multiplier& m, Column& column);
  template <bool wrap, bool shared>
  static void run_integer(const rules::Requantize& requantize, const Column* columns, const int32_t* acc, int64_t count,
                          uint8_t* out);
  static void run_shared(const rules::Requantize& requantize, const Column& column, const int32_t* acc, int64_t count,
                         uint8_t* out);

  rules::Requantize requantize_;
  std::vector<Column> columns_;  // empty where some column needs the general path
};

}  // namespace bittrue::portable

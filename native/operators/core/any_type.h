// Elements of any type as numbers of binary64, and back.
#pragma once

#include <array>

#include "arithmetic/narrow_float.h"
#include "core/type.h"
#include "rules/cast.h"
#include "rules/narrow.h"

namespace bittrue {

// Null where the type is no floating-point type of 16 bits or fewer with a mantissa.
const arithmetic::Format* format_of(Type type);

// The ends of an integer type; false for others.
bool ends_of(Type type, rules::Ends& ends);

inline bool is_integer(Type type) {
  rules::Ends ends{};
  return ends_of(type, ends);
}

// Reads stored elements of one type as integers or real numbers.
class AnyReader {
 public:
  // NoKernel for types that are no numbers.
  [[gnu::cold]] explicit AnyReader(Type type);

  int64_t bytes() const { return type_bytes(type_); }
  // Whether the numbers are integers, or truth values.
  bool whole() const { return whole_; }
  // Numbers, exact but for those of 64 bits, which are rounded once: to binary32 where `single`, which real numbers are, too.
  void reals(const uint8_t* in, double* out, int64_t count, bool single = false) const;
  // Of integer types: modulo 2^64.
  void integers(const uint8_t* in, int64_t* out, int64_t count) const;

 private:
  Type type_;
  bool whole_;
  std::array<double, 256> table_{};  // of types of 8 bits and fewer
};

// Stores integers modulo the type's range.
class IntegerWriter {
 public:
  [[gnu::cold]] explicit IntegerWriter(Type type);
  int64_t bytes() const { return bytes_; }
  // `values` is scratch memory afterwards.
  void store(int64_t* values, uint8_t* out, int64_t count) const;

 private:
  int64_t bytes_, flip_, low_ = 0, mask_ = -1;  // of types of fewer than 8 bits
};

// Stores binary64 numbers as numbers of a floating-point type.
class RealWriter {
 public:
  // `one_nan`: bf16 has one NaN alone. Only formats of 8 bits and fewer need a rule, and f16 and bf16 may have one.
  [[gnu::cold]] RealWriter(Type type, const std::string& narrow, bool one_nan);
  int64_t bytes() const { return type_bytes(type_); }
  void store(const double* values, uint8_t* out, int64_t count) const;

 private:
  Type type_;
  bool by_rule_ = false, one_nan_ = false;
  rules::NarrowRule rule_ = rules::NarrowRule::even_overflow;
  arithmetic::Format form_{};
};

}  // namespace bittrue

// What general convolutions and fully-connected layers share: operands without zero points, and the way from exact sums
// to stored integers.
#pragma once

#include <cstdint>
#include <vector>

#include "core/share.h"
#include "core/step.h"
#include "operators/layers/fused_table.h"

namespace bittrue {

// Activations q - zero_point as 16-bit numbers. NoKernel unless all of the type's differences fit.
class CenteredInput {
 public:
  explicit CenteredInput(const Step& step, size_t input = 0);
  // Converts `count` stored elements, the first of which is element `first` of the tensor.
  void convert(const uint8_t* tensor, int64_t first, int64_t count, int16_t* out) const;
  // The same with every element `times` times.
  void repeat(const uint8_t* tensor, int64_t first, int64_t count, int64_t times, int16_t* out) const;
  int64_t largest() const { return largest_; }  // |q - zero_point| <= largest

 private:
  bool wide_;  // 16 bits
  int32_t zero_;
  int64_t largest_;
};

// Weights w - zero_point, read from a constant or at run time.
class CenteredWeights {
 public:
  CenteredWeights(const Operand& weights, int64_t zero_point);
  bool constant() const { return !values_.empty() || elements_ == 0; }
  // Element i of the stored tensor (`stored` is not read when the weights are constant).
  int32_t at(const uint8_t* stored, int64_t i) const {
    if (constant()) return values_[i];
    if (type_ == Type::s16) return reinterpret_cast<const int16_t*>(stored)[i] - zero_;
    return (type_ == Type::u8 || type_ == Type::s8 ? stored[i] : static_cast<int8_t>(stored[i])) - zero_;
  }
  int64_t largest() const { return largest_; }  // |w - zero_point| <= largest

 private:
  Type type_;
  int32_t zero_;  // of the stored values
  int64_t elements_, largest_;
  std::vector<int32_t> values_;
};

// One addend per column: a constant, an input of the run, or nothing.
class Bias {
 public:
  Bias(const Step& step, size_t input, int64_t columns);
  // out[i] = sums[i] + the bias of column first + i; `stored` is the operand's memory unless it is constant or absent.
  void add(const int64_t* sums, const uint8_t* stored, int64_t first, int64_t count, int64_t* out) const;
  bool constant() const { return constant_; }

 private:
  bool constant_ = true;
  Type type_ = Type::s32;
  std::vector<int64_t> values_;
};

// From exact sums to stored integers, looked up in the step's array `fused_table` when there is one.
class Finish {
 public:
  Finish(const Step& step, const CoreSet& cores, int64_t columns);
  // sums[i] belongs to column first + i; stored as elements of the output's type from `out` on. `bias` is as stored.
  void run(const int64_t* sums, const Bias& bias, const uint8_t* stored_bias, int64_t first, int64_t count,
           uint8_t* out) const;
  int64_t bytes() const { return bytes_; }  // of one output element

 private:
  using Rescale = void (*)(const rules::Requantize& requantize, int64_t* acc, int64_t first, int64_t count);
  using Store = void (*)(const rules::Requantize& requantize, const int64_t* values, int64_t count, uint8_t* out);
  static Rescale rescale_of(rules::RescaleRule rule);
  static Store store_of(Type type);

  rules::Requantize requantize_;
  bool wrap_;
  int64_t bytes_;
  int64_t body_;  // columns from here on are rescaled by the rule of the slot `rescale_tail`
  FusedTable table_;
  Rescale rescale_, tail_rescale_;
  Store store_;
};

}  // namespace bittrue

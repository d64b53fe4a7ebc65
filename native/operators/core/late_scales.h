// Multipliers of scales that only running tells: the slots `scale_form`, `rescale` and `store`, or `requantize` and `store`.
#pragma once

#include <cstdint>

#include "core/kernel.h"
#include "operators/core/any_type.h"
#include "rules/requantize.h"

namespace bittrue {

class LateScales {
 public:
  // The multiplier of one product: of a rescale rule, or real numbers whose quotient it is.
  struct Multiplier {
    rules::Multiplier encoded{};
    double numerator = 0, denominator = 1;
  };

  [[gnu::cold]] explicit LateScales(const Step& step);

  // Of binary32 scales; false where the reference tells what is wrong with them, or what it makes of them.
  bool prepare(double first, double second, double output, Multiplier* made) const;
  // The stored integer in the plan's own numbers.
  int64_t stored(int64_t acc, const Multiplier& m, int64_t zero_point) const;

 private:
  enum class Form : uint8_t { binary32, binary32_over_product, binary32_product, binary32_quotient_first, binary64 };

  Form form_ = Form::binary64;
  rules::RescaleRule rescale_ = rules::RescaleRule::q31_two_step_up_away;
  rules::StoreRule store_ = rules::StoreRule::zero_point_then_clamp;
  bool exact_ = false;
  int64_t low_ = 0, high_ = 0;
};

// What an operand holds, as binary64 numbers: one, or as many as there may be.
class LateNumbers {
 public:
  // An absent operand is one 0.
  [[gnu::cold]] LateNumbers(const Step& step, size_t input, int64_t most);
  int64_t count() const { return count_; }
  double at(const Run& run, int64_t i) const;

 private:
  size_t input_;
  int64_t count_ = 1;
  AnyReader reader_;
  bool given_;
};

}  // namespace bittrue

// Scalar twins of src/bittrue/rules/levels.py: real numbers as quantized values, in binary32 throughout.
#pragma once

#include <cmath>
#include <cstdint>

namespace bittrue::rules {

// Integers from real numbers of any size; NaN and infinities pass through, zeros keep their sign. Numbers from 2^23 on
// are integers.
inline float whole_away(float x) {
  // The float below one half keeps numbers below a tie there.
  const float moved = x + std::copysign(0x1.fffffep-2f, x), size = std::fabs(moved);
  const bool near = size < 8388608.0f;
  const float whole = static_cast<float>(static_cast<int32_t>(near ? size : 0.0f));
  return near ? std::copysign(whole, x) : moved;
}

inline float whole_even(float x) {
  // The unit in the last place is 1 from 2^23 on.
  const float size = std::fabs(x), whole = (size + 8388608.0f) - 8388608.0f;
  return size < 8388608.0f ? std::copysign(whole, x) : x;
}

// A rule with its numbers.
struct Levels {
  enum class Rule : uint8_t { divide, multiply, whole } rule = Rule::divide;
  bool even = false, moves = false;
  float scale = 1, zero_point = 0;  // `scale` is the one to divide by, or the factor

  // `divide` with a scale of 1 rounds nothing.
  Levels() = default;
  Levels(Rule chosen, bool ties_even, double output_scale, double output_zero_point)
      : rule(chosen),
        even(ties_even),
        moves(chosen != Rule::whole && output_zero_point != 0),
        scale(static_cast<float>(chosen == Rule::divide ? output_scale : 1.0 / output_scale)),
        zero_point(static_cast<float>(output_zero_point)),
        exact_(chosen == Rule::divide && output_scale == 1) {}

  // All numbers in place.
  void apply(float* x, int64_t count) const {
    if (rule == Rule::divide && !exact_) {
      for (int64_t i = 0; i < count; ++i) x[i] = x[i] / scale;
    } else if (rule == Rule::multiply) {
      for (int64_t i = 0; i < count; ++i) x[i] = x[i] * scale;
    }
    if (!exact_ && even) {
      for (int64_t i = 0; i < count; ++i) x[i] = whole_even(x[i]);
    } else if (!exact_) {
      for (int64_t i = 0; i < count; ++i) x[i] = whole_away(x[i]);
    }
    if (moves) {
      for (int64_t i = 0; i < count; ++i) x[i] = x[i] + zero_point;
    }
  }

 private:
  bool exact_ = false;
};

// What quantized values stand for.
struct RealLevels {
  float zero_point = 0, scale = 1;

  void apply(float* x, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) x[i] = (x[i] - zero_point) * scale;
  }
};

}  // namespace bittrue::rules

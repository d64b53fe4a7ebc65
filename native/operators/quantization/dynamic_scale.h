// Scale and zero point of u8 from the numbers that are to be quantized: twins of rules/dynamic_range.py where no number is
// NaN.
#pragma once

#include <cstdint>

#include "core/step.h"
#include "isa/cores.h"

namespace bittrue {

// The least and the largest number, and 0; whether one is NaN.
struct Extremes {
  float low = 0, high = 0;
  int32_t missing = 0;
};

Extremes extremes_of(const float* in, int64_t count);

struct DynamicScale {
  float scale;
  int32_t zero_point;
};

// By the rules binary32_over_255_by_eights and _by_fours, which differ in what they do with NaN.
DynamicScale dynamic_scale(const Extremes& all);

// Whether a step has one of these rules.
bool has_dynamic_scale(const Step& step);

// To all bytes.
QuantizeSpec all_bytes(const DynamicScale& to);

}  // namespace bittrue

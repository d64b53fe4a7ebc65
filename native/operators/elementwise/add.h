// What operators share that bring two quantized inputs to one scale.
#pragma once

#include <array>
#include <memory>

#include "core/kernel.h"
#include "isa/cores.h"
#include "operators/core/rescaling.h"
#include "rules/align.h"

namespace bittrue {

// One aligned input: A(q) = rescale((q - zero_point) * 2^left).
struct Aligned {
  int64_t zero_point = 0;
  int left = 0;
  Rescaling rescale;

  int64_t operator()(int64_t q) const { return rules::align(q - zero_point, left, rescale.rule, rescale.multiplier); }
  // A of every stored byte of this type.
  std::array<int64_t, 256> table(Type type) const;
};

// `prefix` is "first_" or "second_".
Aligned aligned(const Step& step, const std::string& prefix);

// What the core of an 8-bit addition (or subtraction) needs. NoKernel when the step is none.
AddSpec add_spec(const Step& step, bool subtract);

// The largest |value|.
int64_t magnitude(const std::array<int64_t, 256>& values);

// add, form "affine": in affine_add.cc.
std::unique_ptr<Kernel> make_affine_add(const Step& step, const CoreSet& cores);

// add, slots `level_sum` and `levels`: in quantization/stored_values.cc; whatever holds the operands: in
// level_functions.cc.
std::unique_ptr<Kernel> make_add_levels(const Step& step);
std::unique_ptr<Kernel> make_sum_of_levels(const Step& step);

}  // namespace bittrue

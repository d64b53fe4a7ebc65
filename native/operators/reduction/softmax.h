// Kernels of softmax, each in the file of its arithmetic; softmax.cc chooses.
#pragma once

#include <memory>
#include <string>

#include "core/kernel.h"

namespace bittrue {

// Real numbers.
std::unique_ptr<Kernel> make_real_softmax(const Step& step, const CoreSet& cores, bool logarithm);
std::unique_ptr<Kernel> make_softmax_along(const Step& step, const CoreSet& cores, bool logarithm);

// The lanes of sums of the rules binary32_polynomial_16_lanes and _8_lanes; 0 for others.
inline int softmax_lanes(const Step& step) {
  const std::string& rule = step.rule("real_softmax");
  return rule == "binary32_polynomial_16_lanes" ? 16 : rule == "binary32_polynomial_8_lanes" ? 8 : 0;
}

// The slot `levels`.
std::unique_ptr<Kernel> make_level_softmax(const Step& step);

// The slot `affine_softmax`.
std::unique_ptr<Kernel> make_quantized_softmax(const Step& step);

}  // namespace bittrue

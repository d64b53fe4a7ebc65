// Kernels of softmax, each in the file of its arithmetic; softmax.cc chooses.
#pragma once

#include <memory>
#include <string>

#include "core/kernel.h"

namespace bittrue {

// Real numbers.
std::unique_ptr<Kernel> make_real_softmax(const Step& step, const CoreSet& cores, bool logarithm);
std::unique_ptr<Kernel> make_softmax_along(const Step& step, const CoreSet& cores, bool logarithm);

// The lanes of sums of the rules binary32_polynomial_16_lanes, _8_lanes and _4_lanes; 0 for others.
inline int softmax_lanes(const Step& step) {
  const std::string& rule = step.rule("real_softmax");
  for (const int lanes : {16, 8, 4}) {
    if (rule == "binary32_polynomial_" + std::to_string(lanes) + "_lanes") return lanes;
  }
  return 0;
}

// The slot `levels`.
std::unique_ptr<Kernel> make_level_softmax(const Step& step);

// The slot `affine_softmax`.
std::unique_ptr<Kernel> make_quantized_softmax(const Step& step);

}  // namespace bittrue

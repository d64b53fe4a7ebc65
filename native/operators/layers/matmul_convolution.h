// 8-bit convolution as a matrix product whose rows are found by pointers: no unfolded copy of the image is made.
#pragma once

#include <cstdint>
#include <memory>

#include "core/kernel.h"
#include "operators/core/window.h"
#include "operators/layers/weights.h"

namespace bittrue {

// Where the sums are the result: 32-bit numbers in place of stored bytes.
struct ConvolutionSums {
  static constexpr size_t kNone = SIZE_MAX;
  bool wanted = false;
  size_t zero_point = kNone;  // input that holds the zero point of the image while running
};

// `weights` are [out_c][filter_h][filter_w][in_c]; `bias` has out_c values, `requantize` one multiplier or out_c; inputs 1
// and 2 of the step are packed. Pixels lie as far apart as the step's operands say, so `window` may be one group of them.
std::unique_ptr<Kernel> make_matmul_convolution(const Step& step, const CoreSet& cores, const Window& window,
                                                const SignedWeights& weights, const std::vector<int64_t>& bias,
                                                const rules::Requantize& requantize, const ConvolutionSums& sums = {});

}  // namespace bittrue

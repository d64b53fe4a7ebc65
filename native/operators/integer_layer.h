// 8-bit rows times constant weights whose sums are the result, as integers or scaled to real numbers.
#pragma once

#include <memory>
#include <vector>

#include "core/kernel.h"
#include "operators/weights.h"

namespace bittrue {

// y[r][n] = f32(f32(acc) * factor[n]): the array `factor` and the parameter input_zero_point of the step. The rest is as for
// make_matmul_layer.
std::unique_ptr<Kernel> make_scaled_sums(const Step& step, const CoreSet& cores, int64_t columns, int64_t depth,
                                         const SignedWeights& weights, const std::vector<int64_t>& addends);

}  // namespace bittrue

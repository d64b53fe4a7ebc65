// 8-bit rows times constant weights, as a matrix product of the cores.
#pragma once

#include <memory>
#include <vector>

#include "core/kernel.h"
#include "operators/layers/weights.h"

namespace bittrue {

// The step's first input is rows of `depth` elements, its output rows of `columns`; `weights` are [columns][depth] and
// `bias` has one value per column. All inputs of the step but the first are packed.
std::unique_ptr<Kernel> make_matmul_layer(const Step& step, const CoreSet& cores, int64_t columns, int64_t depth,
                                          const SignedWeights& weights, const std::vector<int64_t>& bias);

}  // namespace bittrue

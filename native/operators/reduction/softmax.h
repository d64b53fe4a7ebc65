// Kernels of softmax, each in the file of its arithmetic; softmax.cc chooses.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

// Real numbers.
std::unique_ptr<Kernel> make_real_softmax(const Step& step, const CoreSet& cores, bool logarithm);
std::unique_ptr<Kernel> make_softmax_along(const Step& step, const CoreSet& cores, bool logarithm);

// The slot `affine_softmax`.
std::unique_ptr<Kernel> make_quantized_softmax(const Step& step);

}  // namespace bittrue

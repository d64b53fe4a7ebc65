// Products of matrices whose scales and zero points belong to the tensors.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

// A step of matmul with the text `form`: plain, sums or quantized.
std::unique_ptr<Kernel> make_tensor_products(const Step& step, const CoreSet& cores);

}  // namespace bittrue

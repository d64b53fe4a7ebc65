// Products of matrices of bytes: of what is computed, of several matrices, and where rows and columns have zero points or
// addends of their own.
#pragma once

#include <memory>

#include "operators/layers/tensor_products.h"

namespace bittrue {

// A step of matmul with 8-bit operands whose sums are the result, or are requantized to bytes, or made real. NoKernel for
// others.
std::unique_ptr<Kernel> make_computed_products(const Step& step, const CoreSet& cores, const ProductSizes& products);

}  // namespace bittrue

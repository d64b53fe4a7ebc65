// Products of matrices whose scales and zero points belong to the tensors.
#pragma once

#include <memory>
#include <vector>

#include "core/kernel.h"

namespace bittrue {

// How many matrices a tensor has, and for every matrix of `out` the one of `operand` that is broadcast to it.
int64_t matrices_of(const Operand& operand);
std::vector<int64_t> matching(const Operand& operand, const Operand& out);

// A step of matmul with the text `form`: plain, sums or quantized.
std::unique_ptr<Kernel> make_tensor_products(const Step& step, const CoreSet& cores);

}  // namespace bittrue

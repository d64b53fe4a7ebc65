// Products of matrices of bytes of which both are computed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/kernel.h"

namespace bittrue {

// [rows, depth] times [depth, columns] (`turned`: [columns, depth]), for each matrix of the output.
struct ComputedProducts {
  int64_t rows, depth, columns;
  bool turned;
  int64_t right_matrices;
  std::vector<int64_t> left, right;  // matrix of input 0 and of input 1
};

// A step of matmul with 8-bit operands, sums as they are or requantized to bytes with one multiplier. NoKernel for
// others.
std::unique_ptr<Kernel> make_computed_products(const Step& step, const CoreSet& cores,
                                               const ComputedProducts& products);

}  // namespace bittrue

// Products of matrices: which ones there are, and those whose scales and zero points belong to the tensors.
#pragma once

#include <memory>
#include <vector>

#include "core/kernel.h"

namespace bittrue {

// How many matrices a tensor has, and for every matrix of `out` the one of `operand` that is broadcast to it.
int64_t matrices_of(const Operand& operand);
std::vector<int64_t> matching(const Operand& operand, const Operand& out);

// [..., rows, depth] times [..., depth, columns], and which of the operands' matrices belong together.
struct ProductSizes {
  int64_t rows, depth, columns;
  bool transpose_a, transpose_b;  // [..., depth, rows], [..., columns, depth]
  int64_t left_matrices, right_matrices;
  std::vector<int64_t> left, right;  // per matrix of the output
  bool apart = false;  // the columns of every matrix on the right have multipliers and addends of their own

  int64_t matrices() const { return static_cast<int64_t>(left.size()); }
  int64_t work() const { return matrices() * rows * depth * columns; }
};

// Those of a step of matmul; vectors are matrices of one row or column. NoKernel where there is nothing to do.
ProductSizes read_products(const Step& step);

// A step of matmul with the text `form`: plain, sums or quantized.
std::unique_ptr<Kernel> make_tensor_products(const Step& step, const CoreSet& cores);

}  // namespace bittrue

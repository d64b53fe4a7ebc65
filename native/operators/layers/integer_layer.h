// 8-bit rows times constant weights: requantized, or the sums as integers or scaled to real numbers.
#pragma once

#include <memory>
#include <vector>

#include "core/kernel.h"
#include "operators/layers/weights.h"

namespace bittrue {

// The second factor of a step of matmul, as weights [columns][depth], or `by_rows` [depth][columns].
struct ConstantMatrix {
  SignedWeights weights;
  int64_t depth = 0, columns = 0;
  bool by_rows = false;
};

// NoKernel where the first factor's rows are not side by side.
ConstantMatrix constant_matrix(const Step& step);

// The integers that a step of matmul adds to every column: a constant of one row, or one number; zeros without one.
std::vector<int64_t> column_addends(const Step& step, int64_t columns);

// The step's first input is rows of as many elements as the matrix is deep, its output rows of its columns; `bias` has
// one value per column. All inputs of the step but the first are packed.
std::unique_ptr<Kernel> make_matmul_layer(const Step& step, const CoreSet& cores, const ConstantMatrix& matrix,
                                          const std::vector<int64_t>& bias);

// A step of matmul whose sums are the result: as s32, or f32(f32(acc) * factor) plus a real addend.
std::unique_ptr<Kernel> make_integer_layer(const Step& step, const CoreSet& cores);

}  // namespace bittrue

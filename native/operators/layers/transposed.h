// The geometry of a transposed convolution, as the ordinary convolutions that it consists of.
#pragma once

#include <cstdint>
#include <memory>

#include "core/kernel.h"

namespace bittrue {

// Positions of a transposed convolution's inputs.
constexpr size_t kTransposedSource = 0, kTransposedWeights = 1, kTransposedBias = 2, kTransposedShape = 9;

// Outputs p, p + stride, p + 2 * stride, ... of one axis: number k sees input k + first + i, i < taps, through the
// filter's tap p + pad - stride * (first + i).
struct Phase {
  int64_t first, taps;
};

struct Transposed {
  bool given;  // whether an operand says the shape of the result
  int64_t batch, in_h, in_w, in_c;
  int64_t filter_h, filter_w, stride_h, stride_w, pad_top, pad_left;
  int64_t out_h, out_w, out_c;

  Phase vertical(int64_t p) const { return phase(p + pad_top, filter_h, stride_h); }
  Phase horizontal(int64_t p) const { return phase(p + pad_left, filter_w, stride_w); }
  int64_t rows(int64_t p) const { return p < out_h ? (out_h - 1 - p) / stride_h + 1 : 0; }
  int64_t columns(int64_t p) const { return p < out_w ? (out_w - 1 - p) / stride_w + 1 : 0; }
  // Undefined when this run's output shape is not the planned one.
  void check_shape(const Run& run) const;
  // Multiply-adds, those that meet padding included.
  int64_t work() const { return batch * in_h * in_w * in_c * filter_h * filter_w * out_c; }

 private:
  static Phase phase(int64_t at, int64_t filter, int64_t stride) {
    const int64_t last = at / stride;
    const int64_t first = at < filter ? -((filter - 1 - at) / stride) : (at - filter) / stride + 1;
    return {first, last - first + 1};
  }
};

// NoKernel when the numbers contradict the shapes of the operands, or each other.
Transposed read_transposed(const Step& step);

// 8-bit activations whose weights are computed, 16-bit activations, and hybrid layers.
std::unique_ptr<Kernel> make_general_transposed(const Step& step, const CoreSet& cores, const Transposed& geometry);

}  // namespace bittrue

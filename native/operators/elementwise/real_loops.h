// Loops over real numbers with selects and square roots. Their file is compiled without the flags of exceptions and errno, which
// nobody reads: only so they become vectors.
#pragma once

#include <cstdint>
#include <memory>

#include "operators/core/blocks.h"

namespace bittrue {
namespace real_loops {

// out[i] = the function of x[i]; those of `rational` are of groups of four.
using Loop = void(const float* x, float* out, int64_t count);
Loop rational_log, rational_sin, rational_cos, rational_softplus, square_root, inverse_square_root;
Loop round_even, round_down, round_up;  // to integers

void rational_elu(float alpha, const float* x, float* out, int64_t count);
void rational_celu(float alpha, const float* x, float* out, int64_t count);
void rational_selu(float alpha, float gamma, const float* x, float* out, int64_t count);

void hard_sigmoid(float alpha, float beta, const float* x, float* out, int64_t count);
void hard_swish(const float* x, float* out, int64_t count);  // x * hard_sigmoid of 1/6 and 1/2

// x times the slope below zero; `unless_above`: also at zero, and NaN.
void leaky_relu(float slope, bool unless_above, const float* x, float* out, int64_t count);
// The same with a slope per number, none of which is NaN.
void leaky_relu(const float* x, const float* slopes, float* out, int64_t count);

// The first number where it is NaN, or where neither is and it is beyond the second one, or equal with `first`.
template <class T>
void chosen(bool largest, bool first, const T* a, const T* b, T* out, int64_t count);

}  // namespace real_loops

// A kernel of one loop, loop(from, to, count).
template <class Loop>
std::unique_ptr<Kernel> make_real_loop(const Step& step, const Loop& loop) {
  require(step.input(0).type == Type::f32 && step.output().type == Type::f32, "no native kernel for these types");
  const auto block = [loop](const uint8_t* const* in, uint8_t* out, int64_t count) {
    loop(reinterpret_cast<const float*>(in[0]), reinterpret_cast<float*>(out), count);
  };
  return make_blocks(step, {sizeof(float)}, sizeof(float), BlockFunction(block));
}

}  // namespace bittrue

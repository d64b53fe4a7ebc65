// Loops over real numbers with selects, in the order that is written. Those of `real_loop` are cores; what is left here is
// compiled without the flags of exceptions and errno, which nobody reads: only so they become vectors.
#pragma once

#include <cstdint>
#include <memory>

#include "operators/core/blocks.h"
#include "operators/elementwise/grouped_map.h"

namespace bittrue {
namespace real_loops {

// out[i] = the function of x[i], of groups of four.
void rational_sin(const float* x, float* out, int64_t count);
void rational_cos(const float* x, float* out, int64_t count);

// out[i] = the function of arithmetic/rational_wide of x[i], of pairs; out may be x.
enum class WideFunction : uint8_t { cos, exp, log, logistic, sin, tanh };
void wide_function(WideFunction function, const double* x, double* out, int64_t count);

// out[i] = x[i]^exponent as arithmetic/double_words has it, of finite numbers above 0; out may be x.
void power_of_positive(const float* x, float exponent, float* out, int64_t count);

// x times the slope below zero, none of which is NaN.
void leaky_relu(const float* x, const float* slopes, float* out, int64_t count);

}  // namespace real_loops

// A kernel of one loop of the core.
[[gnu::cold]] inline std::unique_ptr<Kernel> make_real_loop(const Step& step, const CoreSet& cores,
                                                            const RealLoop& loop) {
  require(step.input(0).type == Type::f32 && step.output().type == Type::f32, "no native kernel for these types");
  const auto block = [loop, core = cores.real_loop()](const uint8_t* const* in, uint8_t* out, int64_t count) {
    core(loop, reinterpret_cast<const float*>(in[0]), reinterpret_cast<float*>(out), count);
  };
  return make_blocks(step, {sizeof(float)}, sizeof(float), BlockFunction(block));
}

// The same as a function(from, to, count).
inline auto grouped_loop(const CoreSet& cores, const RealLoop& loop) {
  return [loop, core = cores.real_loop()](const float* x, float* out, int64_t count) { core(loop, x, out, count); };
}

// Whether the step has a function of arithmetic/rational_wide, and its kernel: `rest` gives what has no neighbour.
[[gnu::cold]] inline bool in_pairs(const Step& step) {
  const auto found = step.rules.find("real_function");
  return found != step.rules.end() && found->second == "binary64_in_pairs";
}
template <class Rest>
std::unique_ptr<Kernel> make_paired_map(const Step& step, real_loops::WideFunction function, Rest rest) {
  const auto pairs = [function](const double* x, double* out, int64_t count) {
    real_loops::wide_function(function, x, out, count);
  };
  return make_grouped_map<double>(step, pairs, rest);
}

}  // namespace bittrue

#include "operators/elementwise/real_loops.h"

#include <cmath>

#include "arithmetic/rational.h"

namespace bittrue::real_loops {
namespace {

namespace rational = arithmetic::rational;

template <class Function>
inline void each(const float* x, float* out, int64_t count, const Function& function) {
  for (int64_t i = 0; i < count; ++i) out[i] = function(x[i]);
}

// Numbers from kFar on are reduced in another way, with branches.
template <class Function>
void turning(const float* x, float* out, int64_t count) {
  uint32_t far = 0;
  for (int64_t i = 0; i < count; ++i) far |= std::fabs(x[i]) >= Function::kFar;
  if (far)
    return each(x, out, count,
                [](float value) { return Function::of(value, rational::turned(value, Function::kFar)); });
  each(x, out, count, [](float value) { return Function::of(value, rational::turned_near(value)); });
}

}  // namespace

void rational_sin(const float* x, float* out, int64_t count) { turning<rational::Sine>(x, out, count); }

void rational_cos(const float* x, float* out, int64_t count) { turning<rational::Cosine>(x, out, count); }

void leaky_relu(const float* x, const float* slopes, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] >= 0 ? x[i] : x[i] * slopes[i];
}

}  // namespace bittrue::real_loops

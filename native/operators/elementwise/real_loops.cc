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

template <bool kLargest, bool kFirst, class T>
void choose(const T* first, const T* second, T* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const T a = first[i], b = second[i];
    const bool beyond = (kLargest ? a > b : a < b) | (kFirst & (a == b));
    out[i] = (a != a) | ((b == b) & beyond) ? a : b;
  }
}

}  // namespace

void rational_sin(const float* x, float* out, int64_t count) { turning<rational::Sine>(x, out, count); }

void rational_cos(const float* x, float* out, int64_t count) { turning<rational::Cosine>(x, out, count); }

void leaky_relu(const float* x, const float* slopes, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] >= 0 ? x[i] : x[i] * slopes[i];
}

template <class T>
void chosen(bool largest, bool first, const T* a, const T* b, T* out, int64_t count) {
  if (largest) return first ? choose<true, true>(a, b, out, count) : choose<true, false>(a, b, out, count);
  return first ? choose<false, true>(a, b, out, count) : choose<false, false>(a, b, out, count);
}
template void chosen(bool largest, bool first, const float* a, const float* b, float* out, int64_t count);
template void chosen(bool largest, bool first, const double* a, const double* b, double* out, int64_t count);

}  // namespace bittrue::real_loops

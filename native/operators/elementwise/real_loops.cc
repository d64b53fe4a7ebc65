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

// Ties to even; from 2^23 on all numbers are integers.
inline float to_even(float x) {
  constexpr float kWhole = 0x1p23f;
  const float size = std::fabs(x), near = std::copysign((size + kWhole) - kWhole, x), number = size < kWhole ? near : x;
  return x == x ? number : x + x;
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

void rational_log(const float* x, float* out, int64_t count) { each(x, out, count, rational::log); }

void rational_sin(const float* x, float* out, int64_t count) { turning<rational::Sine>(x, out, count); }

void rational_cos(const float* x, float* out, int64_t count) { turning<rational::Cosine>(x, out, count); }

void rational_softplus(const float* x, float* out, int64_t count) {
  each(x, out, count, [](float value) {
    const float logarithm = rational::log1p(rational::exp_of_any(-std::fabs(value)));
    const float number = value > 0 ? value + logarithm : logarithm;
    return value == value ? number : rational::every_bit();
  });
}

void square_root(const float* x, float* out, int64_t count) {
  each(x, out, count, [](float value) { return std::sqrt(value); });
}

void inverse_square_root(const float* x, float* out, int64_t count) {
  each(x, out, count, [](float value) { return 1.0f / std::sqrt(value); });
}

void round_even(const float* x, float* out, int64_t count) { each(x, out, count, to_even); }

void round_down(const float* x, float* out, int64_t count) {
  each(x, out, count, [](float value) {
    const float near = to_even(value);
    return near > value ? near - 1.0f : near;
  });
}

void round_up(const float* x, float* out, int64_t count) {
  each(x, out, count, [](float value) {
    const float near = to_even(value);
    return near < value ? std::copysign(near + 1.0f, value) : near;
  });
}

void rational_elu(float alpha, const float* x, float* out, int64_t count) {
  each(x, out, count, [=](float value) { return value < 0 ? alpha * (rational::exp_of_any(value) - 1.0f) : value; });
}

void rational_celu(float alpha, const float* x, float* out, int64_t count) {
  each(x, out, count, [=](float value) {
    const float below = alpha * (rational::exp_of_any(value / alpha) - 1.0f);
    return (value < 0 ? 0.0f : value) + (below > 0 ? 0.0f : below);
  });
}

void rational_selu(float alpha, float gamma, const float* x, float* out, int64_t count) {
  each(x, out, count,
       [=](float value) { return value > 0 ? gamma * value : gamma * alpha * (rational::exp_of_any(value) - 1.0f); });
}

namespace {

inline float limited_line(float alpha, float beta, float x) {
  const float line = x * alpha + beta, lowered = line > 1.0f ? 1.0f : line;
  return lowered < 0.0f ? 0.0f : lowered;
}

}  // namespace

void hard_sigmoid(float alpha, float beta, const float* x, float* out, int64_t count) {
  each(x, out, count, [=](float value) { return limited_line(alpha, beta, value); });
}

void hard_swish(const float* x, float* out, int64_t count) {
  each(x, out, count, [](float value) { return value * limited_line(0.16666667f, 0.5f, value); });
}

void leaky_relu(float slope, bool unless_above, const float* x, float* out, int64_t count) {
  if (unless_above) return each(x, out, count, [=](float value) { return value > 0 ? value : value * slope; });
  each(x, out, count, [=](float value) { return value < 0 ? value * slope : value; });
}

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

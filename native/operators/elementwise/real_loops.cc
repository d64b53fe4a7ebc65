#include "operators/elementwise/real_loops.h"

#include <cmath>

#include "arithmetic/double_words.h"
#include "arithmetic/rational.h"
#include "arithmetic/rational_wide.h"

namespace bittrue::real_loops {
namespace {

namespace rational = arithmetic::rational;

template <class T, class Function>
inline void each(const T* x, T* out, int64_t count, const Function& function) {
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

// Pairs of which one number is large are reduced in another way, and huge numbers are the C library's.
template <bool kCosine>
void wide_circular(const double* x, double* out, int64_t count) {
  namespace wide = arithmetic::rational_wide;
  constexpr double kMedium = 15.0, kHuge = 1e14;
  for (int64_t i = 0; i < count; i += 2) {
    const bool medium = std::fabs(x[i]) >= kMedium || std::fabs(x[i + 1]) >= kMedium;
    for (int64_t k = i; k < i + 2; ++k) {
      const bool huge = std::fabs(x[k]) > kHuge && std::isfinite(x[k]);
      out[k] = !huge     ? wide::circular<kCosine>(x[k], medium)
               : kCosine ? wide::library_cos(x[k])
                         : wide::library_sin(x[k]);
    }
  }
}

}  // namespace

void rational_sin(const float* x, float* out, int64_t count) { turning<rational::Sine>(x, out, count); }

void rational_cos(const float* x, float* out, int64_t count) { turning<rational::Cosine>(x, out, count); }

void wide_function(WideFunction function, const double* x, double* out, int64_t count) {
  namespace wide = arithmetic::rational_wide;
  switch (function) {
    case WideFunction::cos: return wide_circular<true>(x, out, count);
    case WideFunction::sin: return wide_circular<false>(x, out, count);
    case WideFunction::exp: return each(x, out, count, wide::exp);
    case WideFunction::log: return each(x, out, count, wide::log);
    case WideFunction::tanh: return each(x, out, count, wide::tanh);
    case WideFunction::logistic: return each(x, out, count, [](double v) { return wide::logistic(v, wide::exp); });
  }
}

void power_of_positive(const float* x, float exponent, float* out, int64_t count) {
  namespace words = arithmetic::double_words;
  if (exponent == std::trunc(exponent) && exponent >= -3 && exponent <= 7) {
    const auto whole = static_cast<int>(exponent);
    return each(x, out, count, [whole](float v) { return words::products(v, whole); });
  }
  each(x, out, count, [exponent](float v) { return words::power_of_positive(v, exponent); });
}

void leaky_relu(const float* x, const float* slopes, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] >= 0 ? x[i] : x[i] * slopes[i];
}

}  // namespace bittrue::real_loops

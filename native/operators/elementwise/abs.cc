// abs: the modulus of the number, rescaled when the output scale differs.
#include <cmath>
#include <limits>
#include <type_traits>

#include "operators/core/map.h"
#include "operators/core/registry.h"
#include "operators/core/rescaling.h"
#include "operators/elementwise/complex.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

// sqrt(re^2 + im^2) in binary64, rounded once; infinite when a part is, even beside NaN.
float modulus(Complex z) {
  const double re = z.real, im = z.imaginary;
  if (std::isinf(z.real) || std::isinf(z.imaginary)) return std::numeric_limits<float>::infinity();
  if (z.real != z.real || z.imaginary != z.imaginary) {
    return rules::with_first_nan(std::numeric_limits<float>::quiet_NaN(), z.real, z.imaginary);
  }
  return static_cast<float>(std::sqrt(re * re + im * im));
}

template <class T>
T wrapping_abs(T q) {
  const auto sign = static_cast<std::make_unsigned_t<T>>(q >> (8 * sizeof(T) - 1));
  return static_cast<T>((static_cast<std::make_unsigned_t<T>>(q) ^ sign) - sign);
}

std::unique_ptr<Kernel> make_abs(const Step& step, const CoreSet& cores) {
  const Type from = step.input(0).type;
  if (step.texts.count("dtype") == 0) {
    if (from == Type::c64 && step.output().type == Type::f32) return make_map<Complex, float>(step, modulus);
    if (from != step.output().type) return nullptr;
    if (from == Type::f32) return make_map<float, float>(step, [](float x) { return std::fabs(x); });
    if (from == Type::f64) return make_map<double, double>(step, [](double x) { return std::fabs(x); });
    // The smallest integer wraps to itself.
    if (from == Type::s32) return make_map<int32_t, int32_t>(step, [](int32_t q) { return wrapping_abs(q); });
    if (from == Type::s64) return make_map<int64_t, int64_t>(step, [](int64_t q) { return wrapping_abs(q); });
    return make_integer_map(step, cores, [](int64_t q) { return q < 0 ? -q : q; });
  }
  const Rescaling rescale = rescaling(step);
  const Storing store = storing(step);
  const int64_t zero_point = step.integer("input_zero_point", -kLargestZeroPoint, kLargestZeroPoint);
  return make_integer_map(step, cores, [=](int64_t q) {
    const int64_t x = q - zero_point;
    return store(rescale(x < 0 ? -x : x));
  });
}

BITTRUE_OPERATOR(abs, make_abs)

}  // namespace
}  // namespace bittrue

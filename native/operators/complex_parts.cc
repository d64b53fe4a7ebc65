// real, imag and complex_abs: scalar twins of operators/complex_parts.py.
#include <cmath>
#include <limits>

#include "operators/map.h"
#include "operators/registry.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

struct Complex {
  float real, imaginary;
};

// sqrt(re^2 + im^2) in binary64, rounded once; infinite when a part is, even beside NaN.
float magnitude(Complex z) {
  const double re = z.real, im = z.imaginary;
  if (std::isinf(z.real) || std::isinf(z.imaginary)) return std::numeric_limits<float>::infinity();
  if (z.real != z.real || z.imaginary != z.imaginary) {
    return rules::with_first_nan(std::numeric_limits<float>::quiet_NaN(), z.real, z.imaginary);
  }
  return static_cast<float>(std::sqrt(re * re + im * im));
}

template <class Function>
std::unique_ptr<Kernel> make(const Step& step, Function function) {
  require(step.input(0).type == Type::bytes8 && step.output().type == Type::f32, "no native kernel for these types");
  return make_map<Complex, float>(step, function);
}

}  // namespace

std::unique_ptr<Kernel> make_real(const Step& step, const CoreSet&) {
  return make(step, [](Complex z) { return z.real; });
}

std::unique_ptr<Kernel> make_imag(const Step& step, const CoreSet&) {
  return make(step, [](Complex z) { return z.imaginary; });
}

std::unique_ptr<Kernel> make_complex_abs(const Step& step, const CoreSet&) { return make(step, magnitude); }

}  // namespace bittrue

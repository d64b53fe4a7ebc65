// real and imag: scalar twins of operators/elementwise/complex_parts.py.
#include "operators/elementwise/complex.h"
#include "operators/core/map.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

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

BITTRUE_OPERATOR(imag, make_imag)
BITTRUE_OPERATOR(real, make_real)

}  // namespace bittrue

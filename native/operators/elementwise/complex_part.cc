// complex_part: scalar twin of operators/elementwise/complex_part.py.
#include "operators/core/map.h"
#include "operators/core/registry.h"
#include "operators/elementwise/complex.h"

namespace bittrue {
namespace {

std::unique_ptr<Kernel> make_complex_part(const Step& step, const CoreSet&) {
  require(step.input(0).type == Type::c64 && step.output().type == Type::f32, "no native kernel for these types");
  if (step.text("part") == "real") return make_map<Complex, float>(step, [](Complex z) { return z.real; });
  require(step.text("part") == "imaginary", "no part of this name");
  return make_map<Complex, float>(step, [](Complex z) { return z.imaginary; });
}

BITTRUE_OPERATOR(complex_part, make_complex_part)

}  // namespace
}  // namespace bittrue

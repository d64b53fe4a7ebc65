// pow: first ^ second for 32-bit integers. Negative exponents are the reference's to report.
#include "arithmetic/floats.h"
#include "operators/zip.h"

namespace bittrue {
namespace {

// In binary64 every power below 2^53 is exact, and no larger one comes back below it.
template <class T>
T by_squaring(T base, int32_t exponent) {
  T result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace

std::unique_ptr<Kernel> make_pow(const Step& step, const CoreSet&) {
  if (step.input(0).type != Type::s32 || step.output().type != Type::s32) return nullptr;
  // One exponent of 1 or more for all elements: powers wrap. Otherwise what leaves 32 bits becomes -2^31.
  const bool one_exponent = step.integer("one_exponent", 0, 1) != 0;
  require(!one_exponent || step.input(1).elements == 1, "there must be one exponent");
  return make_checked_zip<int32_t, int32_t>(step, [one_exponent](int32_t base, int32_t exponent, bool* defined) {
    if (exponent < 0) *defined = false;
    if (one_exponent && exponent > 0) return static_cast<int32_t>(by_squaring(static_cast<uint32_t>(base), exponent));
    return arithmetic::truncate_to_s32(by_squaring(static_cast<double>(base), exponent));
  });
}

}  // namespace bittrue

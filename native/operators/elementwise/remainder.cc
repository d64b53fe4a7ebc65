// remainder: what a quotient toward minus infinity leaves, with the divisor's sign, or of real numbers one toward zero, with the
// dividend's. What has no defined result is the reference's to report.
#include <cmath>
#include <limits>

#include "operators/core/registry.h"
#include "operators/core/zip.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

template <class Stored, class T>
std::unique_ptr<Kernel> make_integers(const Step& step) {
  const int flip = flip_of(step.input(0).type);
  return make_checked_zip<Stored, Stored>(step, [flip](Stored first, Stored second, bool* defined) {
    const int64_t a = int64_t{first} - flip, b = int64_t{second} - flip;
    if (b == 0 || (sizeof(T) >= 4 && a == std::numeric_limits<T>::min() && b == -1)) {
      *defined = false;
      return Stored{0};
    }
    const int64_t remainder = a % b;
    return static_cast<Stored>(remainder + (remainder != 0 && (remainder < 0) != (b < 0) ? b : 0) + flip);
  });
}

bool same_types(const Step& step) {
  return step.input(0).type == step.input(1).type && step.input(0).type == step.output().type;
}

double left_of(double a, double b) { return std::fmod(a, b); }

// Remainders are exact. The quotient of two binary32 numbers that is no integer is 2^-24 or more away from one, so that of
// small ones no rounding in binary64 reaches it, and their products with the divisor are exact.
float left_of(float a, float b) {
  const double quotient = static_cast<double>(a) / static_cast<double>(b);
  if (!(std::fabs(quotient) < 0x1p28)) return std::fmod(a, b);
  const double whole = static_cast<int32_t>(quotient);
  const auto rest = static_cast<float>(static_cast<double>(a) - whole * static_cast<double>(b));
  // An infinite divisor times 0 is no number.
  return whole == 0 ? a : std::copysign(rest, a);
}

template <class T>
std::unique_ptr<Kernel> make_truncated(const Step& step) {
  return make_checked_zip<T, T>(step, [](T a, T b, bool* defined) {
    const T remainder = left_of(a, b);
    if (remainder != remainder) *defined = false;
    return remainder;
  });
}

std::unique_ptr<Kernel> make_remainder(const Step& step, const CoreSet&) {
  if (!same_types(step)) return nullptr;
  if (step.text("sign_of") == "dividend") {
    if (step.input(0).type == Type::f32) return make_truncated<float>(step);
    require(step.input(0).type == Type::f64, "no native kernel gives integers the dividend's sign");
    return make_truncated<double>(step);
  }
  switch (step.input(0).type) {
    case Type::s8: return make_integers<uint8_t, int8_t>(step);
    case Type::s16: return make_integers<int16_t, int16_t>(step);
    case Type::s32: return make_integers<int32_t, int32_t>(step);
    case Type::s64: return make_integers<int64_t, int64_t>(step);
    case Type::f32:
      require(step.rule("modulo") == "zero_of_dividend", "no native rule for this slot");
      return make_zip<float, float>(step, [](float a, float b) {
        const float remainder = left_of(a, b);
        const float moved = remainder != 0 && (b < 0) != (remainder < 0) ? remainder + b : remainder;
        return rules::with_first_nan(moved, a, b);
      });
    default: return nullptr;
  }
}

BITTRUE_OPERATOR(remainder, make_remainder)

}  // namespace
}  // namespace bittrue

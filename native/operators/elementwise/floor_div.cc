// floor_div and floor_mod: quotient toward minus infinity, and the remainder that takes the divisor's sign. What has no
// defined result is the reference's to report.
#include <cmath>
#include <limits>

#include "operators/core/zip.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

template <class T>
T floor_quotient(T a, T b) {
  const T quotient = a / b;
  return quotient - (quotient * b != a && (a < 0) != (b < 0) ? 1 : 0);
}

// `Stored` elements hold the values of `T`, moved by `flip`.
template <class Stored, class T>
std::unique_ptr<Kernel> make_quotient(const Step& step) {
  const int flip = flip_of(step.input(0).type);
  return make_checked_zip<Stored, Stored>(step, [flip](Stored first, Stored second, bool* defined) {
    const int64_t a = int64_t{first} - flip, b = int64_t{second} - flip;
    // The one quotient that does not fit wraps in 32 bits.
    if (b == 0 || (sizeof(T) < 4 && a == std::numeric_limits<T>::min() && b == -1)) {
      *defined = false;
      return Stored{0};
    }
    return static_cast<Stored>(floor_quotient(a, b) + flip);
  });
}

template <class Stored, class T>
std::unique_ptr<Kernel> make_remainder(const Step& step) {
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

}  // namespace

std::unique_ptr<Kernel> make_floor_div(const Step& step, const CoreSet&) {
  if (!same_types(step)) return nullptr;
  switch (step.input(0).type) {
    case Type::s8: return make_quotient<uint8_t, int8_t>(step);
    case Type::s16: return make_quotient<int16_t, int16_t>(step);
    case Type::s32: return make_quotient<int32_t, int32_t>(step);
    case Type::f32:
      return make_checked_zip<float, float>(step, [](float a, float b, bool* defined) {
        if (b == 0) *defined = false;
        const double quotient = std::floor(static_cast<double>(a) / static_cast<double>(b));
        return rules::with_first_nan(static_cast<float>(quotient), a, b);
      });
    default: return nullptr;
  }
}

std::unique_ptr<Kernel> make_floor_mod(const Step& step, const CoreSet&) {
  if (!same_types(step)) return nullptr;
  switch (step.input(0).type) {
    case Type::s8: return make_remainder<uint8_t, int8_t>(step);
    case Type::s16: return make_remainder<int16_t, int16_t>(step);
    case Type::s32: return make_remainder<int32_t, int32_t>(step);
    case Type::s64: return make_remainder<int64_t, int64_t>(step);
    case Type::f32:
      return make_zip<float, float>(step, [](float a, float b) {
        const float remainder = std::fmod(a, b);
        const float moved = remainder != 0 && (b < 0) != (remainder < 0) ? remainder + b : remainder;
        return rules::with_first_nan(moved, a, b);
      });
    default: return nullptr;
  }
}

BITTRUE_OPERATOR(floor_div, make_floor_div)
BITTRUE_OPERATOR(floor_mod, make_floor_mod)

}  // namespace bittrue

// remainder: what a quotient toward minus infinity leaves, with the divisor's sign, or of real numbers one toward zero, with the
// dividend's. What has no defined result is the reference's to report.
#include <cmath>
#include <limits>

#include "operators/core/integer_pairs.h"
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

// With the dividend's sign; of u64, whose numbers are the low bits, or of others.
std::unique_ptr<Kernel> make_truncated_integers(const Step& step) {
  const bool is_unsigned = step.input(0).type == Type::u64, wide = step.rule("remainder") == "binary64";
  require(wide || step.rule("remainder") == "exact", "no native rule for this slot");
  return make_integer_zip(step, [=](int64_t a, int64_t b, bool* defined) -> int64_t {
    if (b == 0) {
      *defined = false;
      return 0;
    }
    const auto first = static_cast<uint64_t>(a), second = static_cast<uint64_t>(b);
    if (!wide) return is_unsigned ? static_cast<int64_t>(first % second) : b == -1 ? 0 : a % b;
    if (!is_unsigned) return static_cast<int64_t>(std::fmod(static_cast<double>(a), static_cast<double>(b)));
    return static_cast<int64_t>(
        static_cast<uint64_t>(std::fmod(static_cast<double>(first), static_cast<double>(second))));
  });
}

template <class T>
std::unique_ptr<Kernel> make_unsigned(const Step& step) {
  return make_checked_zip<T, T>(step, [](T a, T b, bool* defined) {
    if (b == 0) *defined = false;
    return b == 0 ? T{0} : static_cast<T>(a % b);
  });
}

// Which NaN it is is the reference's to say, but where zeros have the dividend's sign.
template <class T>
std::unique_ptr<Kernel> make_floored(const Step& step) {
  const auto moved = [](T a, T b) {
    const auto remainder = static_cast<T>(left_of(a, b));
    return remainder != 0 && (b < 0) != (remainder < 0) ? remainder + b : remainder;
  };
  if constexpr (sizeof(T) == 4) {
    if (step.rule("modulo") == "zero_of_dividend") {
      return make_zip<T, T>(step, [moved](T a, T b) { return rules::with_first_nan(moved(a, b), a, b); });
    }
  }
  require(step.rule("modulo") == "zero_of_divisor", "no native rule for this slot");
  return make_checked_zip<T, T>(step, [moved](T a, T b, bool* defined) {
    const T found = moved(a, b);
    if (found != found) *defined = false;
    return found == 0 ? std::copysign(T{0}, b) : found;
  });
}

std::unique_ptr<Kernel> make_remainder(const Step& step, const CoreSet&) {
  if (!same_types(step)) return nullptr;
  if (step.text("sign_of") == "dividend") {
    if (step.input(0).type == Type::f32) return make_truncated<float>(step);
    return step.input(0).type == Type::f64 ? make_truncated<double>(step) : make_truncated_integers(step);
  }
  switch (step.input(0).type) {
    case Type::s8: return make_integers<uint8_t, int8_t>(step);
    case Type::s16: return make_integers<int16_t, int16_t>(step);
    case Type::s32: return make_integers<int32_t, int32_t>(step);
    case Type::s64: return make_integers<int64_t, int64_t>(step);
    case Type::u8: return make_unsigned<uint8_t>(step);
    case Type::u16: return make_unsigned<uint16_t>(step);
    case Type::u32: return make_unsigned<uint32_t>(step);
    case Type::u64: return make_unsigned<uint64_t>(step);
    case Type::f32: return make_floored<float>(step);
    case Type::f64: return make_floored<double>(step);
    default: return nullptr;
  }
}

BITTRUE_OPERATOR(remainder, make_remainder)

}  // namespace
}  // namespace bittrue

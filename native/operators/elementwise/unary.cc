// neg, round_to_integer and sign: one exact operation on the stored numbers.
#include <cstring>
#include <limits>
#include <type_traits>

#include "arithmetic/fused.h"
#include "operators/core/map.h"
#include "operators/core/registry.h"
#include "operators/elementwise/real_loops.h"

namespace bittrue {
namespace {

std::unique_ptr<Kernel> make_neg(const Step& step, const CoreSet& cores) {
  const Type type = step.input(0).type;
  if (type != step.output().type) return nullptr;
  if (step.rules.count("real_function") != 0) {
    if (type != Type::f32 || step.rule("real_function") != "binary32_fused") return nullptr;
    return make_map<float, float>(step, [](float x) { return arithmetic::fused::neg(x); });
  }
  if (type == Type::f32) return make_map<float, float>(step, [](float x) { return -x; });
  if (type == Type::f64) return make_map<double, double>(step, [](double x) { return -x; });
  if (type == Type::s64) {
    return make_map<uint64_t, uint64_t>(step, [](uint64_t q) { return uint64_t{0} - q; });
  }
  return make_integer_map(step, cores, [](int64_t q) { return -q; });
}

// Two binary64 numbers, as compilers would not take them by themselves, and their bits.
using Two = double __attribute__((vector_size(16)));
using TwoBits = int64_t __attribute__((vector_size(16)));

// x as integers, which `mend` makes of x and its nearest ones. Sums with 2^52 have no fractions; larger numbers are integers.
template <class Mend>
Two whole_of(Two x, const Mend& mend) {
  const Two whole = 4503599627370496.0 - Two{};
  const TwoBits bits = reinterpret_cast<TwoBits>(x), sign = bits & std::numeric_limits<int64_t>::min();
  const Two size = reinterpret_cast<Two>(bits ^ sign);
  const Two nearest = reinterpret_cast<Two>(reinterpret_cast<TwoBits>((size + whole) - whole) | sign);
  const Two mended = mend(x, nearest), kept = x + 0.0;
  // What becomes zero has the sign of x.
  const TwoBits made = (reinterpret_cast<TwoBits>(mended) & std::numeric_limits<int64_t>::max()) | sign;
  const auto small = reinterpret_cast<TwoBits>(size < whole);
  return reinterpret_cast<Two>((made & small) | (reinterpret_cast<TwoBits>(kept) & ~small));
}

template <class Mend>
std::unique_ptr<Kernel> make_wide_round(const Step& step, const Mend& mend) {
  const auto block = [mend](const uint8_t* const* in, uint8_t* out, int64_t count) {
    Two x = {};
    int64_t i = 0;
    for (; i + 2 <= count; i += 2) {
      std::memcpy(&x, in[0] + 8 * i, sizeof(Two));
      x = whole_of(x, mend);
      std::memcpy(out + 8 * i, &x, sizeof(Two));
    }
    if (i == count) return;
    std::memcpy(&x, in[0] + 8 * i, sizeof(double));
    x = whole_of(x, mend);
    std::memcpy(out + 8 * i, &x, sizeof(double));
  };
  return make_blocks(step, {sizeof(double)}, sizeof(double), BlockFunction(block));
}

// 1 where `which` is true, else 0.
Two ones(TwoBits which) { return reinterpret_cast<Two>(reinterpret_cast<TwoBits>(1.0 - Two{}) & which); }

std::unique_ptr<Kernel> make_round(const Step& step, const CoreSet& cores) {
  const std::string& direction = step.text("direction");
  if (step.input(0).type == Type::f64) {
    if (direction == "down")
      return make_wide_round(step,
                             [](Two x, Two nearest) { return nearest - ones(reinterpret_cast<TwoBits>(nearest > x)); });
    if (direction == "up")
      return make_wide_round(step,
                             [](Two x, Two nearest) { return nearest + ones(reinterpret_cast<TwoBits>(nearest < x)); });
    require(direction == "even", "no native rounding of this name");
    return make_wide_round(step, [](Two, Two nearest) { return nearest; });
  }
  if (direction == "down") return make_real_loop(step, cores, {RealLoop::round_down});
  if (direction == "up") return make_real_loop(step, cores, {RealLoop::round_up});
  require(direction == "even", "no native rounding of this name");
  if (step.rules.count("real_function") != 0) {
    require(step.rule("real_function") == "binary32_floor_or_next", "no native rule for this slot");
    return make_map<float, float>(step, [](float x) {
      const float below = std::floor(x), rest = x - below, half = below * 0.5f;
      return rest < 0.5f || (rest == 0.5f && half == std::floor(half)) ? below : below + 1.0f;
    });
  }
  return make_real_loop(step, cores, {RealLoop::round_even});
}

// Of the bits of real numbers: with the sign of what is no zero, `one`; NaN stays, or gives 0.
template <class Bits>
std::unique_ptr<Kernel> make_real_sign(const Step& step, Bits infinity, Bits one, bool keeps_nan) {
  using Size = std::make_signed_t<Bits>;
  constexpr auto kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  return make_map<Bits, Bits>(step, [=](Bits x) {
    const auto size = static_cast<Size>(x & static_cast<Bits>(~kSign));
    const auto unit = static_cast<Bits>((x & kSign) | one), odd = keeps_nan ? x : Bits{0};
    return size == 0 ? Bits{0} : size > static_cast<Size>(infinity) ? odd : unit;
  });
}

template <class T>
std::unique_ptr<Kernel> make_integer_sign(const Step& step) {
  return make_map<T, T>(step, [](T q) { return static_cast<T>((q > 0 ? 1 : 0) - (q < 0 ? 1 : 0)); });
}

std::unique_ptr<Kernel> make_sign(const Step& step, const CoreSet& cores) {
  const Type type = step.input(0).type;
  if (type != step.output().type) return nullptr;
  if (type == Type::s32 || type == Type::s16 || is_byte(type)) {
    return make_integer_map(step, cores, [](int64_t q) { return int64_t{q > 0} - (q < 0); });
  }
  if (type == Type::s64) return make_integer_sign<int64_t>(step);
  if (type == Type::u64) return make_integer_sign<uint64_t>(step);
  if (type == Type::u32) return make_integer_sign<uint32_t>(step);
  if (type == Type::u16) return make_integer_sign<uint16_t>(step);
  if (type == Type::f32) return make_real_sign<uint32_t>(step, 0x7f800000, 0x3f800000, true);
  if (type == Type::f64) return make_real_sign<uint64_t>(step, 0x7ff0000000000000, 0x3ff0000000000000, true);
  if (!is_half(type)) return nullptr;
  const bool half = type == Type::f16;
  return make_real_sign<uint16_t>(step, half ? 0x7c00 : 0x7f80, half ? 0x3c00 : 0x3f80, false);
}

BITTRUE_OPERATOR(neg, make_neg)
BITTRUE_OPERATOR(round_to_integer, make_round)
BITTRUE_OPERATOR(sign, make_sign)

}  // namespace
}  // namespace bittrue

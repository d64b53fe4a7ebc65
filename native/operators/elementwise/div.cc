// div: first / second. Divisors that stand for 0, and quotients outside of the rule's domain, are the reference's to
// report.
#include <cmath>
#include <limits>

#include "operators/core/integer_pairs.h"
#include "operators/core/registry.h"
#include "operators/core/rescaling.h"
#include "operators/core/zip.h"
#include "rules/divide.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

// Toward zero; the one quotient that does not fit saturates. In 64 bits that one is the reference's.
std::unique_ptr<Kernel> make_truncated_32(const Step& step, const CoreSet& cores) {
  constexpr int32_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
  const auto lowest = static_cast<int32_t>(step.integer("low", kLow, kHigh));
  const auto highest = static_cast<int32_t>(step.integer("high", kLow, kHigh));
  const int64_t refused = step.integer("refused_divisor");
  // Where no divisor of 32 bits is refused but 0, 0 once more.
  const int32_t other = refused < kLow || refused > kHigh ? 0 : static_cast<int32_t>(refused);
  const PairLoopCore core = cores.pair_loop();
  const auto block = [=](const uint8_t* const* in, uint8_t* out, int64_t count) {
    const auto* second = reinterpret_cast<const int32_t*>(in[1]);
    const int32_t low = lowest, high = highest, undefined = other;
    int32_t found = 0;
    for (int64_t i = 0; i < count; ++i) found |= (second[i] == 0 ? -1 : 0) | (second[i] == undefined ? -1 : 0);
    if (found != 0) return false;
    PairLoop loop;
    loop.operation = PairLoop::quotient, loop.number = PairLoop::s32;
    core(loop, in[0], in[1], out, count);
    auto* target = reinterpret_cast<int32_t*>(out);
    if (low > kLow || high < kHigh) {
      for (int64_t i = 0; i < count; ++i) target[i] = rules::clamp(target[i], low, high);
    }
    return true;
  };
  return make_checked_blocks(step, {4, 4}, 4, CheckedBlockFunction(block));
}

std::unique_ptr<Kernel> make_truncated_64(const Step& step) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = std::numeric_limits<int64_t>::max();
  const int64_t low = step.integer("low", kLow, kHigh), high = step.integer("high", kLow, kHigh);
  const int64_t refused = step.integer("refused_divisor");
  return make_checked_zip<int64_t, int64_t>(step, [=](int64_t a, int64_t b, bool* defined) {
    if (b == 0 || b == refused || (a == kLow && b == -1)) {
      *defined = false;
      return int64_t{0};
    }
    return rules::clamp(a / b, low, high);
  });
}

std::unique_ptr<Kernel> make_truncated_u64(const Step& step) {
  require(step.integer("low") == 0 && step.integer("refused_divisor") == 0 &&
              step.text("high") == std::to_string(std::numeric_limits<uint64_t>::max()),
          "there are limits");
  return make_checked_zip<uint64_t, uint64_t>(step, [](uint64_t a, uint64_t b, bool* defined) {
    if (b == 0) *defined = false;
    return b == 0 ? 0 : a / b;
  });
}

// Other widths wrap before they are limited.
std::unique_ptr<Kernel> make_truncated_integers(const Step& step) {
  constexpr int64_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<uint32_t>::max();
  const int64_t low = step.integer("low", kLow, kHigh), high = step.integer("high", kLow, kHigh);
  const int64_t refused = step.integer("refused_divisor");
  const Type type = step.input(0).type;
  const int64_t lowest = is_8bit(type) ? INT8_MIN : INT16_MIN;
  return make_integer_zip(step, [=](int64_t a, int64_t b, bool* defined) -> int64_t {
    if (b == 0 || b == refused) {
      *defined = false;
      return 0;
    }
    const int64_t quotient = a / b, wrapped = b == -1 && a == lowest ? lowest : quotient;
    return rules::clamp(wrapped, low, high);
  });
}

template <class T>
T floor_quotient(T a, T b) {
  const T quotient = a / b;
  return quotient - (quotient * b != a && (a < 0) != (b < 0) ? 1 : 0);
}

// `Stored` elements hold the values of `T`, moved by `flip`.
template <class Stored, class T>
std::unique_ptr<Kernel> make_floor_quotient(const Step& step) {
  const int flip = flip_of(step.input(0).type);
  bool limited = false;
  if constexpr (sizeof(T) == 4) {
    limited = step.rule("beyond_32_bits") == "limited";
    require(limited || step.rule("beyond_32_bits") == "lowest", "no native rule for this slot");
  }
  return make_checked_zip<Stored, Stored>(step, [flip, limited](Stored first, Stored second, bool* defined) {
    const int64_t a = int64_t{first} - flip, b = int64_t{second} - flip;
    // The one quotient that does not fit in 32 bits.
    if (limited && b == -1 && a == std::numeric_limits<T>::min())
      return static_cast<Stored>(std::numeric_limits<T>::max());
    if (b == 0 || (sizeof(T) < 4 && a == std::numeric_limits<T>::min() && b == -1)) {
      *defined = false;
      return Stored{0};
    }
    return static_cast<Stored>(floor_quotient(a, b) + flip);
  });
}

std::unique_ptr<Kernel> make_floored(const Step& step) {
  switch (step.input(0).type) {
    case Type::s8: return make_floor_quotient<uint8_t, int8_t>(step);
    case Type::s16: return make_floor_quotient<int16_t, int16_t>(step);
    case Type::s32: return make_floor_quotient<int32_t, int32_t>(step);
    case Type::f32:
      return make_checked_zip<float, float>(step, [](float a, float b, bool* defined) {
        if (b == 0) *defined = false;
        const double quotient = std::floor(static_cast<double>(a) / static_cast<double>(b));
        return rules::with_first_nan(static_cast<float>(quotient), a, b);
      });
    default: return nullptr;
  }
}

template <class T>
std::unique_ptr<Kernel> make_quantized(const Step& step) {
  const bool wrapping = step.rule("divide") == "q31_reciprocal_up_away_modulo_32";
  require(wrapping || step.rule("divide") == "q31_reciprocal_up_away", "no native rule for this slot");
  const rules::Multiplier multiplier = rescaling(step, "q31_two_step_up_away", "").multiplier;
  const Storing store = storing(step);
  const int flip = flip_of(step.input(0).type);
  const int64_t first = step.integer("first_zero_point", -kLargestZeroPoint, kLargestZeroPoint) + flip;
  const int64_t second = step.integer("second_zero_point", -kLargestZeroPoint, kLargestZeroPoint) + flip;
  return make_checked_zip<T, T>(step, [=](T a, T b, bool* defined) {
    if (b == second) {
      *defined = false;
      return T{0};
    }
    const int64_t quotient = wrapping ? rules::q31_reciprocal_up_away_modulo_32(a - first, b - second, multiplier)
                                      : rules::q31_reciprocal_up_away(a - first, b - second, multiplier, defined);
    return static_cast<T>(store(quotient) + flip);
  });
}

std::unique_ptr<Kernel> make_div(const Step& step, const CoreSet& cores) {
  const Type type = step.input(0).type;
  if (step.input(1).type != type || step.output().type != type) return nullptr;
  if (step.text("form") == "floored") return make_floored(step);
  if (step.text("form") == "quantized") {
    if (is_8bit(type)) return make_quantized<uint8_t>(step);
    return type == Type::s16 ? make_quantized<int16_t>(step) : nullptr;
  }
  require(!step.rules.count("real_divide") || step.rule("real_divide") == "binary32_quotient", "no native rule");
  if (type == Type::f32 || type == Type::f64) return make_pair_loop(step, cores, PairLoop::quotient);
  if (type == Type::s64) return make_truncated_64(step);
  if (type == Type::u64) return make_truncated_u64(step);
  return type == Type::s32 ? make_truncated_32(step, cores) : make_truncated_integers(step);
}

BITTRUE_OPERATOR(div, make_div)

}  // namespace
}  // namespace bittrue

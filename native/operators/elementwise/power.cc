// power: first ^ second. Negative exponents of integers are the reference's to report.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "arithmetic/elementary.h"
#include "arithmetic/floats.h"
#include "arithmetic/rational_wide.h"
#include "operators/core/any_type.h"
#include "operators/core/registry.h"
#include "operators/core/zip.h"
#include "rules/plain_range.h"

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

// An integer of 1 or more: products from the highest bit, each kept finite.
float multiplied(float x, int32_t exponent) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const auto product = [](float a, float b) {
    return rules::clamp(rules::with_first_nan(a * b, a, b), -kLargest, kLargest);
  };
  int bit = 31 - __builtin_clz(static_cast<uint32_t>(exponent));
  float result = x;
  while (bit-- > 0) {
    result = product(result, result);
    if (exponent >> bit & 1) result = product(x, result);
  }
  return result;
}

// The whole number that an exponent is within 1e-5 of, 0 when there is none of 1 or more.
int32_t near_whole(float exponent) {
  const int32_t whole = arithmetic::round_away_to_s32(exponent);
  return std::fabs(exponent - static_cast<float>(whole)) < 1e-5f && whole >= 1 ? whole : 0;
}

// The C library's powers of binary32 numbers, with one exponent or one for each: usual ones by the core, and all of a piece
// one after the other where one is not.
void library_powers(PairLoopCore core, const float* x, const float* y, bool one, float* out, int64_t count) {
  constexpr int64_t kPiece = 256;
  for (int64_t first = 0; first < count; first += kPiece) {
    const int64_t piece = std::min(kPiece, count - first);
    const float* exponents = one ? y : y + first;
    if (core({PairLoop::power, PairLoop::f32, false, one}, x + first, exponents, out + first, piece)) continue;
    for (int64_t i = 0; i < piece; ++i) out[first + i] = arithmetic::power(x[first + i], exponents[one ? 0 : i]);
  }
}

// Of what is wider, rounded last.
template <class X, class Y>
X library_power(X x, Y y) {
  namespace wide = arithmetic::rational_wide;
  return static_cast<X>(wide::library_power(static_cast<double>(x), static_cast<double>(y)));
}

// Exponents that are the same for a row at least; squares, cubes and, if `finite`, other products are loops of their own.
template <class X, class Y>
class PowerOfRows final : public BlockKernel {
 public:
  PowerOfRows(const Step& step, const CoreSet& cores, bool finite)
      : BlockKernel(step, {sizeof(X), sizeof(Y)}, sizeof(X)),
        core_(cores.pair_loop()),
        finite_(finite),
        only_(step.input(1).elements == 1) {}

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    const auto* first = reinterpret_cast<const X*>(in[0]);
    const auto* second = reinterpret_cast<const Y*>(in[1]);
    auto* target = reinterpret_cast<X*>(out);
    for (int64_t i = 0, end = count; i < count; i = end) {
      if (!only_) {
        for (end = i + 1; end < count && second[end] == second[i];) ++end;
      }
      stretch(first + i, second[i], target + i, end - i);
    }
  }

  void stretch(const X* first, Y y, X* target, int64_t count) const {
    const auto each = [&](const auto& function) {
      for (int64_t i = 0; i < count; ++i) target[i] = function(first[i]);
    };
    if constexpr (kBinary32) {
      const int32_t whole = finite_ ? near_whole(y) : 0;
      if (whole == 2) return each([](float x) { return multiplied(x, 2); });
      if (whole != 0) return each([whole](float x) { return multiplied(x, whole); });
    }
    if (!finite_ && y == 2) {
      each([](X x) { return x * x; });
    } else if (!finite_ && y == 3) {
      each([](X x) { return x * x * x; });
    } else if constexpr (kBinary32) {
      library_powers(core_, first, &y, true, target, count);
    } else {
      each([y](X x) { return library_power(x, y); });
    }
  }

  static constexpr bool kBinary32 = std::is_same_v<X, float> && std::is_same_v<Y, float>;

  PairLoopCore core_;
  bool finite_, only_;
};

void require_one(const Step& step, bool one_exponent) {
  require(!one_exponent || step.input(1).elements == 1, "there must be one exponent");
}

template <class X, class Y>
std::unique_ptr<Kernel> make_wide_power(const Step& step, const CoreSet& cores, bool one_exponent) {
  if (one_exponent) return std::make_unique<PowerOfRows<X, Y>>(step, cores, false);
  const auto block = [](const uint8_t* const* in, uint8_t* out, int64_t count) {
    const auto* first = reinterpret_cast<const X*>(in[0]);
    const auto* second = reinterpret_cast<const Y*>(in[1]);
    auto* target = reinterpret_cast<X*>(out);
    for (int64_t i = 0; i < count; ++i) target[i] = library_power(first[i], second[i]);
  };
  return make_blocks(step, {sizeof(X), sizeof(Y)}, sizeof(X), BlockFunction(block));
}

template <class X>
std::unique_ptr<Kernel> make_wide_power(const Step& step, const CoreSet& cores, bool one_exponent) {
  switch (step.input(1).type) {
    case Type::s32: return make_wide_power<X, int32_t>(step, cores, one_exponent);
    case Type::s64: return make_wide_power<X, int64_t>(step, cores, one_exponent);
    case Type::f32:
      if constexpr (std::is_same_v<X, double>) return make_wide_power<X, float>(step, cores, one_exponent);
      return nullptr;
    case Type::f64: return make_wide_power<X, double>(step, cores, one_exponent);
    default: return nullptr;
  }
}

std::unique_ptr<Kernel> make_real_power(const Step& step, const CoreSet& cores, bool one_exponent) {
  if (step.rule("power") == "binary64_products_or_library") {
    return step.input(0).type == Type::f64 ? make_wide_power<double>(step, cores, one_exponent)
                                           : make_wide_power<float>(step, cores, one_exponent);
  }
  require(step.input(0).type == Type::f32, "no native rule for this slot");
  const std::string& rule = step.rule("power");
  const bool finite = rule == "finite_products_or_library", plain = rule == "binary32_products_or_library";
  require(finite || plain || rule == "library", "no native rule for this slot");
  if (!plain) require_one(step, one_exponent);
  if (one_exponent && (finite || plain)) return std::make_unique<PowerOfRows<float, float>>(step, cores, finite);
  require(step.input(1).type == Type::f32, "no native kernel for these types");
  const auto block = [core = cores.pair_loop()](const uint8_t* const* in, uint8_t* out, int64_t count) {
    library_powers(core, reinterpret_cast<const float*>(in[0]), reinterpret_cast<const float*>(in[1]), false,
                   reinterpret_cast<float*>(out), count);
  };
  return make_blocks(step, {sizeof(float), sizeof(float)}, sizeof(float), BlockFunction(block));
}

// By the C library's power, the lowest value where that does not fit; squares and cubes of a row wrap.
template <class X>
std::unique_ptr<Kernel> make_integer_power(const Step& step, bool one_exponent) {
  const AnyReader reader(step.input(1).type);
  const auto block = [reader, one_exponent](const uint8_t* const* in, uint8_t* out, int64_t count) {
    using Bits = std::make_unsigned_t<X>;
    constexpr X kLeast = std::numeric_limits<X>::min();
    constexpr double kLow = static_cast<double>(kLeast);
    const auto* first = reinterpret_cast<const X*>(in[0]);
    auto* target = reinterpret_cast<X*>(out);
    for (int64_t i = 0; i < count; ++i) {
      double y = 0;
      reader.reals(in[1] + i * reader.bytes(), &y, 1);
      const auto x = static_cast<Bits>(first[i]);
      if (one_exponent && (y == 2 || y == 3)) {
        target[i] = static_cast<X>(y == 2 ? x * x : x * x * x);
        continue;
      }
      const double found = arithmetic::rational_wide::library_power(static_cast<double>(first[i]), y);
      target[i] = found >= kLow && found < -kLow ? static_cast<X>(found) : kLeast;
    }
  };
  return make_blocks(step, {sizeof(X), static_cast<size_t>(reader.bytes())}, sizeof(X), BlockFunction(block));
}

std::unique_ptr<Kernel> make_power(const Step& step, const CoreSet& cores) {
  // One exponent of 1 or more for all elements: powers wrap. Otherwise what leaves 32 bits becomes what the rule says.
  const bool one_exponent = step.integer("one_exponent", 0, 1) != 0;
  const Type type = step.input(0).type;
  if ((type == Type::f32 || type == Type::f64) && step.output().type == type) {
    return make_real_power(step, cores, one_exponent);
  }
  if (step.output().type != type) return nullptr;
  if (step.rules.count("power") != 0) {
    require(step.rule("power") == "integers_by_binary64", "no native rule for this slot");
    if (type == Type::s64) return make_integer_power<int64_t>(step, one_exponent);
    return type == Type::s32 ? make_integer_power<int32_t>(step, one_exponent) : nullptr;
  }
  if (type != Type::s32) return nullptr;
  require_one(step, one_exponent);
  const bool limited = step.rule("beyond_32_bits") == "limited";
  require(limited || step.rule("beyond_32_bits") == "lowest", "no native rule for this slot");
  return make_checked_zip<int32_t, int32_t>(step, [=](int32_t base, int32_t exponent, bool* defined) {
    if (exponent < 0) *defined = false;
    if (one_exponent && exponent > 0) return static_cast<int32_t>(by_squaring(static_cast<uint32_t>(base), exponent));
    const double found = by_squaring(static_cast<double>(base), exponent);
    return limited && found > 0x1p31 - 1 ? std::numeric_limits<int32_t>::max() : arithmetic::truncate_to_s32(found);
  });
}

BITTRUE_OPERATOR(power, make_power)

}  // namespace
}  // namespace bittrue

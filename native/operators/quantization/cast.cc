// cast: the same number in another type, as far as the type can hold it.
#include <type_traits>

#include "operators/core/map.h"
#include "operators/core/registry.h"
#include "rules/cast.h"

namespace bittrue {
namespace {

// The types that casts know: how they are stored, and what the storage adds.
template <class T>
struct Stored {
  using Kind = T;
  static T load(T x) { return x; }
  static T keep(T x) { return x; }
};
struct Flipped {};
template <>
struct Stored<Flipped> {
  using Kind = uint8_t;
  static int8_t load(uint8_t x) { return static_cast<int8_t>(x - 128); }
  static uint8_t keep(int8_t x) { return static_cast<uint8_t>(x + 128); }
};
template <>
struct Stored<bool> {
  using Kind = uint8_t;
  static uint8_t load(uint8_t x) { return x; }
  static uint8_t keep(bool x) { return x; }
};

// kLowBits: truncate_low_bits in place of truncate_saturate_nan_maximum.
template <class From, class To, bool kLowBits>
std::unique_ptr<Kernel> make_pair(const Step& step) {
  using In = typename Stored<From>::Kind;
  using Out = typename Stored<To>::Kind;
  using Source = decltype(Stored<From>::load(In()));
  using Target = std::conditional_t<std::is_same_v<To, Flipped>, int8_t, To>;
  return make_map<In, Out>(step, [](In stored) -> Out {
    const Source x = Stored<From>::load(stored);
    if constexpr (std::is_same_v<To, bool>) {
      // Between truth values a byte is only moved.
      return std::is_same_v<From, bool> ? stored : Stored<To>::keep(x != 0);
    } else if constexpr (std::is_same_v<From, bool> && (kLowBits || std::is_floating_point_v<Target>)) {
      // Elsewhere integers take the byte as it is.
      return Stored<To>::keep(static_cast<Target>(x != 0));
    } else if constexpr (std::is_floating_point_v<Source> && std::is_integral_v<Target>) {
      return Stored<To>::keep(kLowBits ? rules::truncate_low_bits<Target>(x)
                                       : rules::truncate_saturate_nan_maximum<Target>(x));
    } else {
      return Stored<To>::keep(static_cast<Target>(x));
    }
  });
}

template <class From, bool kLowBits>
std::unique_ptr<Kernel> make_from(const Step& step) {
  switch (step.output().type) {
    case Type::boolean: return make_pair<From, bool, kLowBits>(step);
    case Type::s8: return make_pair<From, Flipped, kLowBits>(step);
    case Type::u8: return make_pair<From, uint8_t, kLowBits>(step);
    case Type::s16: return make_pair<From, int16_t, kLowBits>(step);
    case Type::u16: return make_pair<From, uint16_t, kLowBits>(step);
    case Type::s32: return make_pair<From, int32_t, kLowBits>(step);
    case Type::u32: return make_pair<From, uint32_t, kLowBits>(step);
    case Type::s64: return make_pair<From, int64_t, kLowBits>(step);
    case Type::f32: return make_pair<From, float, kLowBits>(step);
    case Type::f64: return make_pair<From, double, kLowBits>(step);
    default: return nullptr;
  }
}

template <bool kLowBits>
std::unique_ptr<Kernel> make_any(const Step& step) {
  switch (step.input(0).type) {
    case Type::boolean: return make_from<bool, kLowBits>(step);
    case Type::s8: return make_from<Flipped, kLowBits>(step);
    case Type::u8: return make_from<uint8_t, kLowBits>(step);
    case Type::s16: return make_from<int16_t, kLowBits>(step);
    case Type::u16: return make_from<uint16_t, kLowBits>(step);
    case Type::s32: return make_from<int32_t, kLowBits>(step);
    case Type::u32: return make_from<uint32_t, kLowBits>(step);
    case Type::s64: return make_from<int64_t, kLowBits>(step);
    case Type::f32: return make_from<float, kLowBits>(step);
    case Type::f64: return make_from<double, kLowBits>(step);
    default: return nullptr;
  }
}

}  // namespace

std::unique_ptr<Kernel> make_cast(const Step& step, const CoreSet&) {
  // Conversions from integers have no rule.
  const Type from = step.input(0).type;
  const bool whole = step.rules.empty() && from != Type::f32 && from != Type::f64;
  require(whole || step.rule("cast") == "truncate_saturate_nan_maximum", "no native rule for this slot");
  return make_any<false>(step);
}

std::unique_ptr<Kernel> make_convert(const Step& step, const CoreSet&) {
  // Conversions from integers have no rule.
  require(step.rules.empty() || (step.rules.size() == 1 && step.rule("cast") == "truncate_low_bits"),
          "no native rule for this slot");
  return make_any<true>(step);
}

BITTRUE_OPERATOR(cast, make_cast)
BITTRUE_OPERATOR(convert, make_convert)

}  // namespace bittrue

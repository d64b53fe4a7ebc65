// cast: the same number in another type, as far as the type can hold it.
#include "rules/cast.h"

#include "arithmetic/narrow_float.h"
#include "operators/core/blocks.h"
#include "operators/core/registry.h"
#include "operators/quantization/any_cast.h"

namespace bittrue {
namespace {

// The types that casts know: how they are stored, and what the storage adds. `Number` is what is converted.
template <class T>
struct Stored {
  using Kind = T;
  using Number = T;
  static Number load(Kind x) { return x; }
  static Kind keep(Number x) { return x; }
};
struct Flipped {};
template <>
struct Stored<Flipped> {
  using Kind = uint8_t;
  using Number = int8_t;
  static Number load(Kind x) { return static_cast<int8_t>(x - 128); }
  static Kind keep(Number x) { return static_cast<uint8_t>(x + 128); }
};
template <>
struct Stored<bool> {
  using Kind = uint8_t;
  using Number = uint8_t;
  static Number load(Kind x) { return x != 0 ? 1 : 0; }
  static Kind keep(Number x) { return x; }
};

// 16 bits that count as the binary32 number that they widen to.
struct Half {};
template <>
struct Stored<Half> {
  using Kind = uint16_t;
  using Number = float;
  static float load(Kind x) { return arithmetic::half_to_float(x); }
  static Kind keep(float x) { return arithmetic::float_to_half(x); }
};
struct Brain {};
template <>
struct Stored<Brain> {
  using Kind = uint16_t;
  using Number = float;
  static float load(Kind x) { return arithmetic::float_of_bits(static_cast<uint32_t>(x) << 16); }
  static Kind keep(float x) {
    const uint32_t bits = arithmetic::bits_of(x), rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    return static_cast<Kind>((bits & 0x7fffffffu) > 0x7f800000u ? ((bits >> 16) & 0x8000u) | 0x7fc0u : rounded);
  }
};
// What kernels keep that widen their operands: every NaN is one and the same.
struct BrainOfOneNan {};
template <>
struct Stored<BrainOfOneNan> : Stored<Brain> {
  static Kind keep(float x) { return x != x ? Kind{0x7fc1} : Stored<Brain>::keep(x); }
};

template <class In, class Out>
struct Saturating {
  static Out convert(In x) { return rules::truncate_saturate_nan_maximum<Out>(x); }
};
template <class In, class Out>
struct LowBits {
  static Out convert(In x) { return rules::truncate_low_bits<Out>(x); }
};
template <class In, class Out>
struct Limited {
  static Out convert(In x) { return rules::truncate_limited_low_bits<Out>(x); }
};
// What C++ does: exact, one rounding, or the low bits of an integer.
template <class In, class Out>
struct Plain {
  static Out convert(In x) { return static_cast<Out>(x); }
};
template <class In, class Out>
struct Truth {
  static Out convert(In x) { return x != 0 ? 1 : 0; }
};

using Row = void (*)(const uint8_t* in, uint8_t* out, int64_t count);

template <class From, class To, template <class, class> class Conversion>
void convert_row(const uint8_t* in, uint8_t* out, int64_t count) {
  const auto* source = reinterpret_cast<const typename Stored<From>::Kind*>(in);
  auto* target = reinterpret_cast<typename Stored<To>::Kind*>(out);
  for (int64_t i = 0; i < count; ++i) {
    target[i] = Stored<To>::keep(
        Conversion<typename Stored<From>::Number, typename Stored<To>::Number>::convert(Stored<From>::load(source[i])));
  }
}

class Cast final : public BlockKernel {
 public:
  Cast(const Step& step, Row row) : BlockKernel(step, 1), row_(row) {}

  bool bears_changes() const override { return true; }

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override { row_(in[0], out, count); }

  Row row_;
};

// Truth as binary32, by its bits: vectors of bytes become such of words.
void truth_row(const uint8_t* in, uint8_t* out, int64_t count) {
  auto* target = reinterpret_cast<uint32_t*>(out);
  for (int64_t i = 0; i < count; ++i) target[i] = in[i] != 0 ? 0x3f800000u : 0u;
}

// Null where this type is not known. The low bits of an integer do not depend on the result's sign.
template <class From>
Row row_of_integer(Type to) {
  switch (to) {
    case Type::boolean: return convert_row<From, bool, Truth>;
    case Type::s8: return convert_row<From, Flipped, Plain>;
    case Type::u8: return convert_row<From, uint8_t, Plain>;
    case Type::s16:
    case Type::u16: return convert_row<From, uint16_t, Plain>;
    case Type::s32:
    case Type::u32: return convert_row<From, uint32_t, Plain>;
    case Type::s64:
    case Type::u64: return convert_row<From, uint64_t, Plain>;
    case Type::f32: return convert_row<From, float, Plain>;
    case Type::f64: return convert_row<From, double, Plain>;
    default: return nullptr;
  }
}

template <class From, template <class, class> class Conversion>
Row row_of_real(Type to) {
  switch (to) {
    case Type::boolean: return convert_row<From, bool, Truth>;
    case Type::s8: return convert_row<From, Flipped, Conversion>;
    case Type::u8: return convert_row<From, uint8_t, Conversion>;
    case Type::s16: return convert_row<From, int16_t, Conversion>;
    case Type::u16: return convert_row<From, uint16_t, Conversion>;
    case Type::s32: return convert_row<From, int32_t, Conversion>;
    case Type::u32: return convert_row<From, uint32_t, Conversion>;
    case Type::s64: return convert_row<From, int64_t, Conversion>;
    case Type::f32: return convert_row<From, float, Plain>;
    case Type::f64: return convert_row<From, double, Plain>;
    default: return nullptr;
  }
}

// The rule by which real numbers become integers.
enum class ByRule { saturating, low_bits, limited };

template <class From>
Row row_by_rule(Type to, ByRule rule) {
  switch (rule) {
    case ByRule::low_bits: return row_of_real<From, LowBits>(to);
    case ByRule::limited: return row_of_real<From, Limited>(to);
    default: return row_of_real<From, Saturating>(to);
  }
}

Row find_row(Type from, Type to, ByRule rule) {
  switch (from) {
    case Type::boolean:
      // Between truth values a byte is only moved; other integers take it as it is unless bits are asked for.
      if (to == Type::boolean) return convert_row<uint8_t, uint8_t, Plain>;
      if (to == Type::f32) return truth_row;
      if (rule != ByRule::saturating || to == Type::f64) return row_of_integer<bool>(to);
      return row_of_integer<uint8_t>(to);
    case Type::s8: return row_of_integer<Flipped>(to);
    case Type::s2:
    case Type::s4: return row_of_integer<int8_t>(to);
    case Type::u2:
    case Type::u4:
    case Type::u8: return row_of_integer<uint8_t>(to);
    case Type::s16: return row_of_integer<int16_t>(to);
    case Type::u16: return row_of_integer<uint16_t>(to);
    case Type::s32: return row_of_integer<int32_t>(to);
    case Type::u32: return row_of_integer<uint32_t>(to);
    case Type::s64: return row_of_integer<int64_t>(to);
    case Type::u64: return row_of_integer<uint64_t>(to);
    case Type::f32: return row_by_rule<float>(to, rule);
    case Type::f64: return row_by_rule<double>(to, rule);
    default: return nullptr;
  }
}

// From or to a type of 16 bits, whose name the step says.
template <class Real>
Row row_of_halves(const Step& step, bool widens, ByRule rule) {
  const Type from = step.input(0).type, to = step.output().type;
  if (widens) {
    if (to == Type::f32) return convert_row<Real, float, Plain>;
    if (to == Type::boolean) return convert_row<Real, bool, Truth>;
    if (to == Type::f64 || rule == ByRule::saturating) return nullptr;
    return rule == ByRule::limited ? row_of_real<Real, Limited>(to) : row_of_real<Real, LowBits>(to);
  }
  switch (from) {
    case Type::boolean: return convert_row<bool, Real, Plain>;
    case Type::s32: return convert_row<int32_t, Real, Plain>;
    case Type::s64: return convert_row<int64_t, Real, Plain>;
    case Type::f32: return convert_row<float, Real, Plain>;
    default: return nullptr;
  }
}

Row row_between(const Step& step, ByRule rule) {
  for (const bool widens : {true, false}) {
    const auto name = step.texts.find(widens ? "from" : "to");
    if (name == step.texts.end()) continue;
    if (name->second == "f16") return row_of_halves<Half>(step, widens, rule);
    if (name->second == "bf16") {
      const bool one = step.integers.count("one_nan") != 0;
      return one ? row_of_halves<BrainOfOneNan>(step, widens, rule) : row_of_halves<Brain>(step, widens, rule);
    }
  }
  return find_row(step.input(0).type, step.output().type, rule);
}

// binary16 to binary32, or the other way round.
class CastHalves final : public BlockKernel {
 public:
  CastHalves(const Step& step, const CoreSet& cores)
      : BlockKernel(step, {step.output().type == Type::f32 ? sizeof(uint16_t) : sizeof(float)},
                    step.output().type == Type::f32 ? sizeof(float) : sizeof(uint16_t)),
        widen_(cores.widen_halves()),
        narrow_(cores.narrow_to_halves()),
        widens_(step.output().type == Type::f32) {}

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    if (widens_) {
      widen_(reinterpret_cast<const uint16_t*>(in[0]), reinterpret_cast<float*>(out), count);
      return;
    }
    narrow_(reinterpret_cast<const float*>(in[0]), reinterpret_cast<uint16_t*>(out), count);
  }

  WidenHalves widen_;
  NarrowToHalves narrow_;
  bool widens_;
};

bool is_text(const Step& step, const char* key, const char* value) {
  const auto found = step.texts.find(key);
  return found != step.texts.end() && found->second == value;
}

std::unique_ptr<Kernel> make(const Step& step, const CoreSet& cores, ByRule rule) {
  const bool widens = is_text(step, "from", "f16") && step.output().type == Type::f32;
  if (widens || (is_text(step, "to", "f16") && step.input(0).type == Type::f32)) {
    return std::make_unique<CastHalves>(step, cores);
  }
  const Row row = row_between(step, rule);
  if (row == nullptr) return make_any_cast(step);
  return std::make_unique<Cast>(step, row);
}

std::unique_ptr<Kernel> make_cast(const Step& step, const CoreSet& cores) {
  // Conversions from integers have no rule.
  const Type from = step.input(0).type;
  const bool whole = step.rules.empty() && from != Type::f32 && from != Type::f64;
  require(whole || step.rule("cast") == "truncate_saturate_nan_maximum", "no native rule for this slot");
  return make(step, cores, ByRule::saturating);
}

std::unique_ptr<Kernel> make_convert(const Step& step, const CoreSet& cores) {
  // Rules differ in NaNs only (of those that are widened, in signalling ones), which are the reference's.
  if (step.rules.count("widen") != 0) {
    require(step.rules.size() == 1, "no native rule for this slot");
    return make_checked_blocks(
        step, {sizeof(uint16_t)}, sizeof(float),
        CheckedBlockFunction([widen = cores.widen_halves()](const uint8_t* const* in, uint8_t* out, int64_t count) {
          return widen(reinterpret_cast<const uint16_t*>(in[0]), reinterpret_cast<float*>(out), count);
        }));
  }
  if (step.rules.count("half_nan") != 0) {
    require(step.rules.size() == 1, "no native rule for this slot");
    return make_checked_blocks(
        step, {sizeof(float)}, sizeof(uint16_t),
        CheckedBlockFunction(
            [narrow = cores.narrow_to_halves()](const uint8_t* const* in, uint8_t* out, int64_t count) {
              return narrow(reinterpret_cast<const float*>(in[0]), reinterpret_cast<uint16_t*>(out), count);
            }));
  }
  // Conversions from integers have no rule.
  if (step.rules.empty()) return make(step, cores, ByRule::low_bits);
  const auto only = [&](const char* rule) {
    return step.rules.size() == 1 && step.rules.count("cast") != 0 && step.rule("cast") == rule;
  };
  if (only("truncate_low_bits")) return make(step, cores, ByRule::low_bits);
  return only("truncate_limited_low_bits") ? make(step, cores, ByRule::limited) : make_any_cast(step);
}

BITTRUE_OPERATOR(cast, make_cast)
BITTRUE_OPERATOR(convert, make_convert)

}  // namespace
}  // namespace bittrue

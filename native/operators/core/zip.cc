#include "operators/core/zip.h"

#include <limits>

#include "arithmetic/narrow_float.h"
#include "operators/core/any_type.h"
#include "operators/core/integer_pairs.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

class PairKernel final : public CheckedBlockKernel {
 public:
  PairKernel(const Step& step, const CoreSet& cores, const PairLoop& loop, bool exchanged)
      : CheckedBlockKernel(
            step,
            {static_cast<size_t>(type_bytes(step.input(0).type)), static_cast<size_t>(type_bytes(step.input(0).type))},
            static_cast<size_t>(type_bytes(step.output().type))),
        core_(cores.pair_loop()),
        loop_(loop),
        one_(exchanged ? 1 : 0),
        unsigned_(step.input(0).type == Type::u32) {
    const unsigned singles = blocks_.keep_singles();
    loop_.one_first = (singles >> one_ & 1) != 0, loop_.one_second = (singles >> (1 - one_) & 1) != 0;
    if (loop.operation > PairLoop::quotient) return;
    if (loop.number >= PairLoop::f32) {
      constexpr double kEnd = std::numeric_limits<double>::infinity();
      low_ = step.real("low"), high_ = step.real("high");
      limited_ = !(low_ == -kEnd && high_ == kEnd);
      const auto range = step.rules.find("plain_range");
      const bool by_signs = range != step.rules.end() && range->second == "unlimited_by_signs";
      require(by_signs || range == step.rules.end() || range->second == "unlimited" || range->second == "type_limits",
              "no native rule for the range");
      by_signs_ = loop.number == PairLoop::f32 && low_ == 0 && by_signs;
    } else {
      constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = std::numeric_limits<int64_t>::max();
      if (step.input(0).type == Type::u64) {
        require(step.integer("low") == 0 && step.text("high") == std::to_string(std::numeric_limits<uint64_t>::max()),
                "there are limits");
        return;
      }
      least_ = step.integer("low", kLow, kHigh), most_ = step.integer("high", kLow, kHigh);
      const int bits = 8 * type_bytes(step.input(0).type);
      const bool plain = step.input(0).type == Type::u8 || unsigned_;
      const int64_t lowest = plain ? 0 : bits == 64 ? kLow : -(int64_t{1} << (bits - 1));
      const int64_t highest = plain ? (int64_t{1} << bits) - 1 : bits == 64 ? kHigh : -(lowest + 1);
      limited_ = least_ > lowest || most_ < highest;
    }
  }

  bool bears_changes() const override { return loop_.operation != PairLoop::quotient; }

 private:
  bool defined(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    const bool numbers = core_(loop_, in[one_], in[1 - one_], out, count);
    if (loop_.operation > PairLoop::quotient) return true;
    if (loop_.number == PairLoop::f32 && !numbers) {
      const auto* first = reinterpret_cast<const float*>(in[one_]);
      const auto* second = reinterpret_cast<const float*>(in[1 - one_]);
      auto* target = reinterpret_cast<float*>(out);
      for (int64_t i = 0; i < count; ++i) {
        target[i] = rules::with_first_nan(target[i], first[loop_.one_first ? 0 : i], second[loop_.one_second ? 0 : i]);
      }
    }
    if (limited_) limit(out, count);
    // -0 becomes 0, and nothing else changes.
    for (int64_t i = 0; by_signs_ && i < count; ++i) reinterpret_cast<float*>(out)[i] += 0.0f;
    return numbers || loop_.number != PairLoop::f64;
  }

  void limit(uint8_t* out, int64_t count) const {
    switch (loop_.number) {
      case PairLoop::u8: return limit_as<uint8_t>(out, count, least_, most_);
      case PairLoop::s16: return limit_as<int16_t>(out, count, least_, most_);
      case PairLoop::s32:
        return unsigned_ ? limit_as<uint32_t>(out, count, least_, most_) : limit_as<int32_t>(out, count, least_, most_);
      case PairLoop::s64: return limit_as<int64_t>(out, count, least_, most_);
      case PairLoop::f32: return limit_as<float>(out, count, low_, high_);
      case PairLoop::f64: return limit_as<double>(out, count, low_, high_);
    }
  }
  template <class T, class Wide>
  static void limit_as(uint8_t* out, int64_t count, Wide low, Wide high) {
    const auto least = static_cast<T>(low), most = static_cast<T>(high);
    auto* target = reinterpret_cast<T*>(out);
    for (int64_t i = 0; i < count; ++i) target[i] = rules::clamp(target[i], least, most);
  }

  PairLoopCore core_;
  PairLoop loop_;
  int one_;
  bool unsigned_, limited_ = false, by_signs_ = false;
  double low_ = 0, high_ = 0;
  int64_t least_ = 0, most_ = 0;
};

// binary16: what binary32 makes of two numbers has bits enough that a second rounding changes nothing. NaN is the
// reference's.
std::unique_ptr<Kernel> make_half_pairs(const Step& step, PairLoop::Operation operation) {
  const std::string& range = step.rule("plain_range");
  const bool open = range == "open_limits", by_signs = range == "unlimited_by_signs";
  require(open || by_signs || range == "type_limits" || range == "unlimited", "no native rule for the range");
  const auto low = static_cast<float>(step.real("low")), high = static_cast<float>(step.real("high"));
  return make_checked_zip<uint16_t, uint16_t>(step, [=](uint16_t first, uint16_t second, bool* defined) {
    using arithmetic::float_to_half, arithmetic::half_to_float;
    const float a = half_to_float(first), b = half_to_float(second);
    const float wide = operation == PairLoop::sum          ? a + b
                       : operation == PairLoop::difference ? a - b
                       : operation == PairLoop::product    ? a * b
                                                           : a / b;
    *defined &= wide == wide;
    const float x = half_to_float(float_to_half(wide));
    if (open) return float_to_half(rules::cap_then_raise(x, low, high));
    const float limited = rules::clamp(x, low, high);
    return float_to_half(by_signs && low == 0 ? limited + 0.0f : limited);
  });
}

// Types that cores do not add and multiply, modulo their range.
std::unique_ptr<Kernel> make_wrapping_pairs(const Step& step, PairLoop::Operation operation) {
  rules::Ends ends{};
  require(operation <= PairLoop::product && ends_of(step.input(0).type, ends) && step.integer("low") == ends.minimum &&
              step.integer("high") == static_cast<int64_t>(ends.maximum),
          "no native kernel for these types");
  return make_integer_zip(step, [operation](int64_t a, int64_t b, bool*) {
    return operation == PairLoop::sum ? a + b : operation == PairLoop::difference ? a - b : a * b;
  });
}

}  // namespace

std::unique_ptr<Kernel> make_pair_loop(const Step& step, const CoreSet& cores, PairLoop::Operation operation,
                                       bool exchanged) {
  const Type type = step.input(0).type;
  const bool compares = operation >= PairLoop::equal, computes = operation <= PairLoop::quotient;
  if (step.input(1).type != type || step.output().type != (compares ? Type::boolean : type)) return nullptr;
  PairLoop loop;
  loop.operation = operation;
  switch (type) {
    case Type::u16: return computes ? make_wrapping_pairs(step, operation) : nullptr;
    case Type::s8:  // stored unsigned, which keeps the order
      if (computes) return make_wrapping_pairs(step, operation);
      [[fallthrough]];
    case Type::u8: loop.number = PairLoop::u8; break;
    case Type::s16: loop.number = PairLoop::s16; break;
    case Type::u32:
      if (!computes) return nullptr;
      [[fallthrough]];
    case Type::s32: loop.number = PairLoop::s32; break;
    case Type::u64:
      if (operation > PairLoop::product) return nullptr;
      [[fallthrough]];
    case Type::s64: loop.number = PairLoop::s64; break;
    case Type::f16: return computes ? make_half_pairs(step, operation) : nullptr;
    case Type::f32: loop.number = PairLoop::f32; break;
    case Type::f64: loop.number = PairLoop::f64; break;
    default: return nullptr;
  }
  if (operation == PairLoop::quotient && loop.number < PairLoop::f32) return nullptr;
  return std::make_unique<PairKernel>(step, cores, loop, exchanged);
}

}  // namespace bittrue

// equal, not_equal, greater, greater_equal, less and less_equal.
#include <utility>

#include "arithmetic/narrow_float.h"
#include "operators/core/registry.h"
#include "operators/core/zip.h"
#include "operators/elementwise/add.h"

namespace bittrue {
namespace {

constexpr int kCompareLeft = 8;  // src/bittrue/rules/compare.py, rescaled_left_8

// The inputs' order: exchanged, "less" is "greater".
struct ComparedOrder {
  explicit ComparedOrder(bool exchanged) : first(exchanged ? 1 : 0), second(exchanged ? 0 : 1) {}
  int first, second;
};

// Compare: bool operator()(T, T) const.
template <class T, class Compare>
std::unique_ptr<Kernel> make_for(const Step& step, ComparedOrder order, Compare compare) {
  require(step.input(0).type == step.input(1).type, "no native kernel for these types");
  const auto block = [order, compare](const uint8_t* const* in, uint8_t* out, int64_t count) {
    const auto* first = reinterpret_cast<const T*>(in[order.first]);
    const auto* second = reinterpret_cast<const T*>(in[order.second]);
    for (int64_t i = 0; i < count; ++i) out[i] = compare(first[i], second[i]) ? 1 : 0;
  };
  return make_blocks(step, {sizeof(T), sizeof(T)}, 1, BlockFunction(block));
}

// What every 8-bit value stands for in 1/256 of the real value.
class Entries {
 public:
  Entries(const Aligned& aligned, Type type) {
    const std::array<int64_t, 256> table = aligned.table(type);
    for (int i = 0; i < 256; ++i) entries_[i] = static_cast<int32_t>(table[i]);
  }
  int32_t operator()(uint8_t byte) const { return entries_[byte]; }

 private:
  std::array<int32_t, 256> entries_;  // rescaled values are 32-bit
};

Aligned compared(const Step& step, const std::string& prefix) {
  Aligned result;
  result.zero_point = step.integer((prefix + "zero_point").c_str(), -kLargestZeroPoint, kLargestZeroPoint);
  result.rescale = rescaling(step, prefix);
  require(result.rescale.rule == rules::RescaleRule::q31_two_step_up_away, "no native rule for this slot");
  result.left = kCompareLeft;
  return result;
}

template <class Compare>
std::unique_ptr<Kernel> make_comparison(const Step& step, const CoreSet& cores, bool exchanged = false) {
  const Type type = step.input(0).type;
  if (step.output().type != Type::boolean) return nullptr;
  const Compare compare;
  const ComparedOrder order(exchanged);
  if (step.text("form") == "rescaled") {
    require(step.rule("compare") == "rescaled_left_8", "no native rule for this slot");
    Aligned first = compared(step, "first_"), second = compared(step, "second_");
    if (exchanged) std::swap(first, second);
    if (is_8bit(type)) {
      const Entries one(first, type), two(second, type);
      return make_for<uint8_t>(step, order, [=](uint8_t a, uint8_t b) { return compare(one(a), two(b)); });
    }
    if (type != Type::s16) return nullptr;
    return make_for<int16_t>(step, order, [=](int16_t a, int16_t b) { return compare(first(a), second(b)); });
  }
  require(step.text("form") == "plain", "an unknown form");
  switch (type) {
    case Type::boolean:
      return make_for<uint8_t>(step, order, [=](uint8_t a, uint8_t b) { return compare(a != 0, b != 0); });
    case Type::u16: return make_for<uint16_t>(step, order, compare);
    case Type::u32: return make_for<uint32_t>(step, order, compare);
    case Type::u64: return make_for<uint64_t>(step, order, compare);
    case Type::f16:
      return make_for<uint16_t>(step, order, [=](uint16_t a, uint16_t b) {
        return compare(arithmetic::half_to_float(a), arithmetic::half_to_float(b));
      });
    case Type::bf16:
      return make_for<uint16_t>(step, order, [=](uint32_t a, uint32_t b) {
        return compare(arithmetic::float_of_bits(a << 16), arithmetic::float_of_bits(b << 16));
      });
    default: return make_pair_loop(step, cores, Compare::kOperation, exchanged);
  }
}

#define BITTRUE_COMPARISON(Name, operation, name)                     \
  struct Name {                                                       \
    static constexpr PairLoop::Operation kOperation = PairLoop::name; \
    template <class T>                                                \
    bool operator()(T a, T b) const {                                 \
      return a operation b;                                           \
    }                                                                 \
  };
BITTRUE_COMPARISON(Equal, ==, equal)
BITTRUE_COMPARISON(NotEqual, !=, not_equal)
BITTRUE_COMPARISON(Greater, >, greater)
BITTRUE_COMPARISON(GreaterEqual, >=, greater_equal)
#undef BITTRUE_COMPARISON

std::unique_ptr<Kernel> make_equal(const Step& step, const CoreSet& cores) {
  return make_comparison<Equal>(step, cores);
}

std::unique_ptr<Kernel> make_not_equal(const Step& step, const CoreSet& cores) {
  return make_comparison<NotEqual>(step, cores);
}

std::unique_ptr<Kernel> make_greater(const Step& step, const CoreSet& cores) {
  return make_comparison<Greater>(step, cores);
}

std::unique_ptr<Kernel> make_greater_equal(const Step& step, const CoreSet& cores) {
  return make_comparison<GreaterEqual>(step, cores);
}

std::unique_ptr<Kernel> make_less(const Step& step, const CoreSet& cores) {
  return make_comparison<Greater>(step, cores, true);
}

std::unique_ptr<Kernel> make_less_equal(const Step& step, const CoreSet& cores) {
  return make_comparison<GreaterEqual>(step, cores, true);
}

BITTRUE_OPERATOR(equal, make_equal)
BITTRUE_OPERATOR(greater, make_greater)
BITTRUE_OPERATOR(greater_equal, make_greater_equal)
BITTRUE_OPERATOR(less, make_less)
BITTRUE_OPERATOR(less_equal, make_less_equal)
BITTRUE_OPERATOR(not_equal, make_not_equal)

}  // namespace
}  // namespace bittrue

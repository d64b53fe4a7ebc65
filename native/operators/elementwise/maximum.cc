// maximum and minimum of the stored numbers: without a rule, a NaN on either side, or two equal zeros, give the second;
// with nan_else_last, the first NaN is the result; with nan_else_first, two equal zeros give the first as well; with
// first_unless_beyond, both give the first.
#include "operators/core/registry.h"
#include "operators/core/zip.h"

namespace bittrue {
namespace {

template <class Choose>
std::unique_ptr<Kernel> make_stored(const Step& step, const Choose& choose) {
  switch (step.input(0).type) {
    case Type::s8:  // stored unsigned, which keeps the order
    case Type::u8: return make_zip<uint8_t, uint8_t>(step, choose);
    case Type::s16: return make_zip<int16_t, int16_t>(step, choose);
    case Type::s32: return make_zip<int32_t, int32_t>(step, choose);
    case Type::s64: return make_zip<int64_t, int64_t>(step, choose);
    case Type::f32: return make_zip<float, float>(step, choose);
    default: return nullptr;
  }
}

template <class Compare>
std::unique_ptr<Kernel> make_chosen(const Step& step) {
  if (step.input(0).type != step.output().type) return nullptr;
  if (!step.rules.count("extreme")) return make_stored(step, [](auto a, auto b) { return Compare()(a, b) ? a : b; });
  if (step.rule("extreme") == "first_unless_beyond") {
    return make_stored(step, [](auto a, auto b) { return Compare()(b, a) ? b : a; });
  }
  const bool first = step.rule("extreme") == "nan_else_first";
  require(first || step.rule("extreme") == "nan_else_last", "no native rule for this slot");
  if (step.input(0).type != Type::f32) return nullptr;
  return make_zip<float, float>(step, [first, exchanged = step.integer("exchanged", 0, 1) != 0](float x, float y) {
    const float a = exchanged ? y : x, b = exchanged ? x : y;
    return a != a || (b == b && (Compare()(a, b) || (first && a == b))) ? a : b;
  });
}

struct LargerOf {
  template <class T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};

struct Less {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};

std::unique_ptr<Kernel> make_maximum(const Step& step, const CoreSet&) { return make_chosen<LargerOf>(step); }

std::unique_ptr<Kernel> make_minimum(const Step& step, const CoreSet&) { return make_chosen<Less>(step); }

BITTRUE_OPERATOR(maximum, make_maximum)
BITTRUE_OPERATOR(minimum, make_minimum)

}  // namespace
}  // namespace bittrue

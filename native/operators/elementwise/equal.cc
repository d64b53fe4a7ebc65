// equal, not_equal, greater, greater_equal, less and less_equal.
#include "operators/core/registry.h"
#include "operators/core/zip.h"
#include "operators/elementwise/add.h"

namespace bittrue {
namespace {

constexpr int kCompareLeft = 8;  // src/bittrue/rules/compare.py, rescaled_left_8

// What every 8-bit value stands for in 1/256 of the real value.
template <class Compare>
class CompareBytes final : public Kernel {
 public:
  CompareBytes(const Step& step, const Aligned& first, const Aligned& second)
      : blocks_({&step.input(0), &step.input(1)}, step.output()) {
    require(step.input(0).type == step.input(1).type, "no native kernel for these types");
    const std::array<int64_t, 256> one = first.table(step.input(0).type), two = second.table(step.input(1).type);
    for (int i = 0; i < 256; ++i) {
      first_[i] = static_cast<int32_t>(one[i]);
      second_[i] = static_cast<int32_t>(two[i]);
    }
  }

  void run(const Run& run) const override {
    blocks_.run(run, [&](const uint8_t* const* in, uint8_t* out, int64_t count) {
      for (int64_t i = 0; i < count; ++i) out[i] = Compare()(first_[in[0][i]], second_[in[1][i]]) ? 1 : 0;
    });
  }
  int64_t scratch_bytes(int threads) const override { return blocks_.scratch_bytes(threads); }

 private:
  Blocks blocks_;
  int32_t first_[256], second_[256];  // rescaled values are 32-bit
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
std::unique_ptr<Kernel> make_comparison(const Step& step) {
  const Type type = step.input(0).type;
  if (step.output().type != Type::boolean) return nullptr;
  const auto plain = [](auto a, auto b) { return static_cast<uint8_t>(Compare()(a, b)); };
  if (step.text("form") == "rescaled") {
    require(step.rule("compare") == "rescaled_left_8", "no native rule for this slot");
    const Aligned first = compared(step, "first_"), second = compared(step, "second_");
    if (is_8bit(type)) return std::make_unique<CompareBytes<Compare>>(step, first, second);
    if (type != Type::s16) return nullptr;
    return make_zip<int16_t, uint8_t>(step, [=](int16_t a, int16_t b) { return plain(first(a), second(b)); });
  }
  require(step.text("form") == "plain", "an unknown form");
  switch (type) {
    case Type::boolean:
      return make_zip<uint8_t, uint8_t>(step, [=](uint8_t a, uint8_t b) { return plain(a != 0, b != 0); });
    case Type::s8:
    case Type::u8: return make_zip<uint8_t, uint8_t>(step, plain);
    case Type::s16: return make_zip<int16_t, uint8_t>(step, plain);
    case Type::s32: return make_zip<int32_t, uint8_t>(step, plain);
    case Type::s64: return make_zip<int64_t, uint8_t>(step, plain);
    case Type::f32: return make_zip<float, uint8_t>(step, plain);
    default: return nullptr;
  }
}

#define BITTRUE_COMPARISON(Name, operation) \
  struct Name {                             \
    template <class T>                      \
    bool operator()(T a, T b) const {       \
      return a operation b;                 \
    }                                       \
  };
BITTRUE_COMPARISON(Equal, ==)
BITTRUE_COMPARISON(NotEqual, !=)
BITTRUE_COMPARISON(Greater, >)
BITTRUE_COMPARISON(GreaterEqual, >=)
BITTRUE_COMPARISON(Less, <)
BITTRUE_COMPARISON(LessEqual, <=)
#undef BITTRUE_COMPARISON

}  // namespace

std::unique_ptr<Kernel> make_equal(const Step& step, const CoreSet&) { return make_comparison<Equal>(step); }

std::unique_ptr<Kernel> make_not_equal(const Step& step, const CoreSet&) { return make_comparison<NotEqual>(step); }

std::unique_ptr<Kernel> make_greater(const Step& step, const CoreSet&) { return make_comparison<Greater>(step); }

std::unique_ptr<Kernel> make_greater_equal(const Step& step, const CoreSet&) {
  return make_comparison<GreaterEqual>(step);
}

std::unique_ptr<Kernel> make_less(const Step& step, const CoreSet&) { return make_comparison<Less>(step); }

std::unique_ptr<Kernel> make_less_equal(const Step& step, const CoreSet&) { return make_comparison<LessEqual>(step); }

BITTRUE_OPERATOR(equal, make_equal)
BITTRUE_OPERATOR(greater, make_greater)
BITTRUE_OPERATOR(greater_equal, make_greater_equal)
BITTRUE_OPERATOR(less, make_less)
BITTRUE_OPERATOR(less_equal, make_less_equal)
BITTRUE_OPERATOR(not_equal, make_not_equal)

}  // namespace bittrue

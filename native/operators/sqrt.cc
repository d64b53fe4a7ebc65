// sqrt and rsqrt. Negative real input has no result, so quantized types whose zero point leaves room for it are left to
// the reference, which can say so.
#include <cmath>

#include "operators/logistic.h"
#include "operators/rescaling.h"
#include "rules/square_root.h"

namespace bittrue {
namespace {

float real(const Step& step, const char* key) {
  const auto found = step.reals.find(key);
  require(found != step.reals.end(), "a scale is missing");
  return static_cast<float>(found->second);
}

bool may_be_negative(const Step& step) {
  const Type type = step.input(0).type;
  const int64_t minimum = type == Type::u8 ? 0 : type == Type::s8 ? -128 : std::numeric_limits<int16_t>::min();
  return step.integer("input_zero_point", -kLargestZeroPoint, kLargestZeroPoint) > minimum;
}

}  // namespace

std::unique_ptr<Kernel> make_sqrt(const Step& step, const CoreSet& cores) {
  const Type from = step.input(0).type;
  if (step.texts.count("dtype") == 0) {
    if (from != Type::f32 || step.output().type != Type::f32) return nullptr;
    return make_map<float, float>(step, [](float x) { return std::sqrt(x); });
  }
  require(step.rule("square_root") == "binary32_divide_trunc", "no native rule for this slot");
  if (!is_8bit(from) && from != Type::s16) return nullptr;
  require(!may_be_negative(step), "negative input has no square root");
  const float scale = real(step, "input_scale"), output_scale = real(step, "output_scale");
  const int64_t zero_point = step.integer("input_zero_point");
  constexpr int64_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
  const int64_t output_zero_point = step.integer("output_zero_point", kLow, kHigh);
  const int64_t low = step.integer("low", kLow, kHigh), high = step.integer("high", kLow, kHigh);
  return make_integer_map(step, cores, [=](int64_t q) {
    return rules::binary32_divide_trunc(q, scale, zero_point, output_scale, output_zero_point, low, high);
  });
}

std::unique_ptr<Kernel> make_rsqrt(const Step& step, const CoreSet& cores) {
  if (step.texts.count("dtype") == 0) {
    if (step.input(0).type != Type::f32 || step.output().type != Type::f32) return nullptr;
    return make_map<float, float>(step, [](float x) { return 1.0f / std::sqrt(x); });
  }
  require(!may_be_negative(step), "negative input has no square root");
  if (step.has_array("table")) return make_table(step, cores);
  return is_8bit(step.output().type) ? make_direct_table(step, cores, step.array("entries")) : nullptr;
}

}  // namespace bittrue

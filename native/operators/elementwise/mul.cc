// mul: first * second.
#include <algorithm>
#include <limits>

#include "operators/core/map.h"
#include "operators/core/registry.h"
#include "operators/core/rescaling.h"
#include "operators/core/zip.h"
#include "operators/elementwise/operand_pairs.h"
#include "rules/product.h"

namespace bittrue {
namespace {

MulSpec mul_spec(const Step& step) {
  constexpr int64_t kLargest = 32000;
  const int flip = flip_of(step.input(0).type);
  MulSpec spec;
  const int64_t first = step.integer("first_zero_point", -kLargest, kLargest - 128) + flip;
  const int64_t second = step.integer("second_zero_point", -kLargest, kLargest - 128) + flip;
  const auto span = [](int64_t zero_point) { return std::max(std::abs(zero_point), std::abs(255 - zero_point)); };
  spec.first_zero_point = static_cast<int32_t>(first);
  spec.second_zero_point = static_cast<int32_t>(second);
  spec.requantize = requantization(step, any_rescaling(step, step.rule("rescale"), ""), span(first) * span(second));
  return spec;
}

std::unique_ptr<Kernel> make_mul(const Step& step, const CoreSet& cores) {
  if (step.text("form") == "square") {
    require(step.input(0).type == Type::f32 && step.output().type == Type::f32, "squares are of real numbers");
    return make_map<float, float>(step, [](float x) { return x * x; });
  }
  if (step.text("form") == "plain") return make_pair_loop(step, cores, PairLoop::product);
  if (step.text("form") == "ranges") return make_ranged_mul(step);
  if (step.text("form") == "operands") return make_operand_mul(step, cores);
  const Type from = step.input(0).type, to = step.output().type;
  if (step.input(1).type != from || step.rules.count("lanes")) return nullptr;
  const std::string& rule = step.rule("product");
  if (rule == "q15_up_then_256_away") {
    if (from != Type::s16 || !is_8bit(to)) return nullptr;
    step.integer("first_zero_point", 0, 0);
    step.integer("second_zero_point", 0, 0);
    const Storing store = storing(step);
    const int flip = flip_of(to);
    return make_zip<int16_t, uint8_t>(step, [=](int16_t a, int16_t b) {
      return static_cast<uint8_t>(store(rules::q15_up_then_256_away(a, b)) + flip);
    });
  }
  require(rule == "exact_s32", "no native rule for this slot");
  if (is_8bit(from) && is_8bit(to)) return std::make_unique<ElementwiseBytes>(step, cores.mul(mul_spec(step)));
  if (from != Type::s16 || to != Type::s16) return nullptr;
  const Rescaling rescale = any_rescaling(step, step.rule("rescale"), "");
  const rules::Requantize requantize = requantization(step, rescale, int64_t{1} << 32);
  const int64_t first = step.integer("first_zero_point", -32768, 32767);
  const int64_t second = step.integer("second_zero_point", -32768, 32767);
  return make_zip<int16_t, int16_t>(step, [=](int16_t a, int16_t b) {
    return static_cast<int16_t>(rules::requantize(requantize, arithmetic::wrap_s32((a - first) * (b - second)), 0));
  });
}

BITTRUE_OPERATOR(mul, make_mul)

}  // namespace
}  // namespace bittrue

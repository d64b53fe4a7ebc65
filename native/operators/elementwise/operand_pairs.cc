// add and mul of quantized tensors whose scales are operands: sums and products in binary32.
#include "operators/elementwise/operand_pairs.h"

#include <cstring>
#include <vector>

#include "operators/core/zip.h"

namespace bittrue {
namespace {

// The factory's steps read two operands where scales are known; `late` ones read scales, too.
void require_bytes(const Step& step) {
  const Type type = step.output().type;
  require(step.integer("late", 0, 1) == 0, "scales are known while running only");
  require(is_8bit(type) && step.inputs.size() == 2 && step.input(0).type == type && step.input(1).type == type,
          "operands are not 8-bit");
  require(step.integer("low") == -flip_of(type) && step.integer("high") == 255 - flip_of(type),
          "the clamp is not the type's range");
}

float number(const Step& step, const char* name) {
  const Array& array = step.array(name);
  require(array.count == 1, "one number is needed");
  return static_cast<float>(array.real(0));
}

}  // namespace

FusedSumSpec fused_sum_spec(const Step& step) {
  require(step.name == "add" && step.text("form") == "operands" && step.rule("affine_sum") == "binary32_fused_even",
          "no native rule for this slot");
  require_bytes(step);
  FusedSumSpec spec;
  spec.first_scale = number(step, "first_factor");
  spec.second_scale = number(step, "second_factor");
  spec.addend = number(step, "constant");
  spec.is_signed = step.output().type == Type::s8;
  return spec;
}

std::unique_ptr<Kernel> make_operand_add(const Step& step, const CoreSet& cores) {
  return std::make_unique<ElementwiseBytes>(step, cores.fused_sum(fused_sum_spec(step)));
}

std::unique_ptr<Kernel> make_operand_mul(const Step& step) {
  require(step.rule("affine_product") == "binary32_zero_point_even", "no native rule for this slot");
  require_bytes(step);
  const float factor = number(step, "factor");
  const Array& zero_points = step.array("zero_points");
  require(zero_points.count == 3, "three zero points are needed");
  const auto at = [&](int i) {
    const int64_t value = zero_points.integer(i);
    require(value >= -255 && value <= 255, "a zero point is out of range");
    return static_cast<int32_t>(value);
  };
  const int32_t flip = flip_of(step.output().type), first = at(0) + flip, second = at(1) + flip;
  const float zero_point = static_cast<float>(at(2));
  const float low = static_cast<float>(-flip), high = static_cast<float>(255 - flip);
  return make_zip<uint8_t, uint8_t>(step, [=](uint8_t a, uint8_t b) {
    const float product = static_cast<float>((a - first) * (b - second)) * factor;
    float sum = product + zero_point;
    // What does not fit 32 bits, or is NaN, becomes the lowest; ends are integers, so clamps may come first.
    sum = sum < 2147483648.0f ? sum : low;
    sum = sum > low ? sum : low;
    sum = sum < high ? sum : high;
    // Rounds ties to even: the unit in the last place is 1 there.
    const float rounded = sum + 12582912.0f;
    int32_t bits;
    std::memcpy(&bits, &rounded, sizeof bits);
    return static_cast<uint8_t>(bits - 0x4B400000 + flip);
  });
}

}  // namespace bittrue

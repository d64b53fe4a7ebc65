// add and mul of quantized tensors whose scales are operands: sums and products in binary32.
#include "operators/elementwise/operand_pairs.h"

#include "operators/core/blocks.h"

namespace bittrue {
namespace {

// The factory's steps read two operands where scales are known; `late` ones read scales, too.
void require_two_bytes(const Step& step) {
  const Type type = step.output().type;
  require(step.integer("late", 0, 1) == 0, "scales are known while running only");
  require(is_8bit(type) && step.inputs.size() == 2 && step.input(0).type == type && step.input(1).type == type,
          "operands are not 8-bit");
  require(step.integer("low") == -flip_of(type) && step.integer("high") == 255 - flip_of(type),
          "the clamp is not the type's range");
}

float one_real(const Step& step, const char* name) {
  const Array& array = step.array(name);
  require(array.count == 1, "one one_real is needed");
  return static_cast<float>(array.real(0));
}

}  // namespace

FusedSumSpec fused_sum_spec(const Step& step) {
  require(step.name == "add" && step.text("form") == "operands" && step.rule("affine_sum") == "binary32_fused_even",
          "no native rule for this slot");
  require_two_bytes(step);
  FusedSumSpec spec;
  spec.first_scale = one_real(step, "first_factor");
  spec.second_scale = one_real(step, "second_factor");
  spec.addend = one_real(step, "constant");
  spec.is_signed = step.output().type == Type::s8;
  return spec;
}

std::unique_ptr<Kernel> make_operand_add(const Step& step, const CoreSet& cores) {
  return std::make_unique<ElementwiseBytes>(step, cores.fused_sum(fused_sum_spec(step)));
}

std::unique_ptr<Kernel> make_operand_mul(const Step& step, const CoreSet& cores) {
  require(step.rule("affine_product") == "binary32_zero_point_even", "no native rule for this slot");
  require_two_bytes(step);
  const Array& zero_points = step.array("zero_points");
  require(zero_points.count == 3, "three zero points are needed");
  const auto at = [&](int i) {
    const int64_t value = zero_points.integer(i);
    require(value >= -255 && value <= 255, "a zero point is out of range");
    return static_cast<float>(value);
  };
  ScaledProductSpec spec;
  spec.first_zero_point = at(0), spec.second_zero_point = at(1), spec.zero_point = at(2);
  spec.factor = one_real(step, "factor");
  spec.is_signed = step.output().type == Type::s8;
  return std::make_unique<ElementwiseBytes>(step, cores.scaled_product(spec));
}

}  // namespace bittrue

#include "operators/layers/integer_finish.h"

#include "operators/core/any_type.h"

namespace bittrue {

IntegerFinish::IntegerFinish(const Step& step, int64_t columns) {
  using Of = ProductOperands;
  if (step.rules.count("store") != 0) {
    result = Result::bytes;
    return;
  }
  if (step.rules.count("scale_back") == 0) return;
  const std::string& rule = step.rule("scale_back");
  const bool rows_first = rule == "binary32_rows_then_fused";
  fused = rows_first || rule == "binary32_product_then_fused";
  require(fused || rule == "binary32_product_of_scales", "no native rule for this slot");
  require(step.integer("b_scale_first", 0, 1) == 0 && step.integer("first_in_multiplier", 0, 1) != 0 &&
              step.integer("second_in_multiplier", 0, 1) != 0,
          "scales of another form");
  result = Result::reals;
  require(!rows_first || step.integer("late", 0, 1) == 0, "scales of another form");
  if (step.integer("late", 0, 1) == 0) {
    const Array &first = step.array("first_scale"), &second = step.array("second_scale");
    require(first.count == 1 || first.count == columns, "one factor, or one per column, is needed");
    require(second.count == 1 || second.count == columns, "one factor, or one per column, is needed");
    require(!rows_first || first.count == 1, "one factor of rows is needed");
    if (rows_first) first_factor = static_cast<float>(first.real(0));
    for (int64_t n = 0; n < columns; ++n) {
      const float factor = rows_first ? 1.0f : static_cast<float>(first.real(first.count == 1 ? 0 : n));
      factors.push_back(factor * static_cast<float>(second.real(second.count == 1 ? 0 : n)));
      require(std::isfinite(factors.back()), "a factor is not finite");
    }
  } else {
    const Operand &row = step.input(Of::kRowScale), &own = step.input(Of::kColumnScales);
    require(row.type == Type::f32 && own.type == Type::f32 && row.elements == 1 &&
                (own.elements == 1 || own.elements == columns) && !step.has_input(Of::kResultScale) &&
                step.real("alpha") == 1.0,
            "scales of another form");
    row_scale = Of::kRowScale;
    column_scales = Of::kColumnScales;
    one_column_scale = own.elements == 1;
  }
  if (step.has_input(Of::kAddend) && step.input(Of::kAddend).type == Type::f32) {
    require(step.input(Of::kAddend).elements == columns, "one addend per column is needed");
    addends = Of::kAddend;
  }
  // Without an addend there is a product alone, which may be -0.
  if (!rows_first && addends == kNone) fused = false;
}

Step without_center(const Step& step) {
  if (step.rules.count("center") == 0) return step;
  require(step.rule("center") == "s16_wrap", "no native rule for this slot");
  const bool late = step.integers.count("late") != 0 && step.integer("late", 0, 1) != 0;
  for (const size_t operand : {0, 1}) {
    const std::string name = operand == 0 ? "input_zero_point" : "weight_zero_point";
    const Type type = step.input(operand).type;
    rules::Ends ends{};
    require(ends_of(type, ends) && type_bytes(type) <= 2, "no native kernel for these types");
    std::vector<int64_t> points;
    if (late) {
      require(is_8bit(type), "differences may leave 16 bits");
    } else if (step.has_array(name + "s")) {
      const Array& given = step.array(name + "s");
      for (int64_t i = 0; i < given.count; ++i) points.push_back(given.integer(i));
    } else {
      points.push_back(step.integer(name.c_str()));
    }
    for (const int64_t point : points) {
      const int64_t least = ends.minimum, most = static_cast<int64_t>(ends.maximum);
      require(point <= least + INT16_MAX + 1 && point >= most - INT16_MAX, "differences may leave 16 bits");
    }
  }
  Step plain = step;
  plain.rules.erase("center");
  return plain;
}

}  // namespace bittrue

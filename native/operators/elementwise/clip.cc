// clip: raised to a lower end, then lowered to an upper end, both of them operands of one element.
#include "operators/core/registry.h"
#include "operators/elementwise/logistic.h"

namespace bittrue {
namespace {

// An end: the constant input, or the parameter where the input is absent.
double end_of(const Step& step, size_t input, const char* parameter) {
  if (!step.has_input(input)) return step.real(parameter);
  const Operand& operand = step.input(input);
  require(operand.constant != nullptr && operand.elements == 1, "an end is known while running only");
  if (operand.type == Type::f32) return static_cast<double>(*static_cast<const float*>(operand.constant));
  return static_cast<double>(operand.integers()[0]);
}

std::unique_ptr<Kernel> make_clip(const Step& step, const CoreSet& cores) {
  if (step.has_array("table")) return make_level_table(step, cores);
  const Type type = step.input(0).type;
  require(step.output().type == type, "no native kernel for these types");
  const double low = end_of(step, 1, "low"), high = end_of(step, 2, "high");
  if (type == Type::f32) {
    const auto least = static_cast<float>(low), most = static_cast<float>(high);
    return make_map<float, float>(step, [least, most](float x) {
      const float raised = x < least ? least : x;
      return raised > most ? most : raised;
    });
  }
  if (!is_8bit(type)) return nullptr;
  const auto least = static_cast<int64_t>(low), most = static_cast<int64_t>(high);
  return make_integer_map(step, cores, [least, most](int64_t q) {
    const int64_t raised = q < least ? least : q;
    return raised > most ? most : raised;
  });
}

BITTRUE_OPERATOR(clip, make_clip)

}  // namespace
}  // namespace bittrue

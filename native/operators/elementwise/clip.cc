// clip: raised to a lower end, then lowered to an upper end, both of them operands of one element.
#include <algorithm>
#include <limits>

#include "operators/core/registry.h"
#include "operators/elementwise/logistic.h"
#include "operators/elementwise/real_loops.h"
#include "operators/quantization/level_kernel.h"

namespace bittrue {
namespace {

const Operand* end_operand(const Step& step, size_t input) {
  if (!step.has_input(input)) return nullptr;
  const Operand& operand = step.input(input);
  require(operand.constant != nullptr && operand.elements == 1, "an end is known while running only");
  return &operand;
}

// An end: the constant input, or the parameter where the input is absent.
template <class T>
T real_end(const Step& step, size_t input, const char* parameter) {
  const Operand* operand = end_operand(step, input);
  return operand ? *static_cast<const T*>(operand->constant) : static_cast<T>(step.real(parameter));
}

int64_t integer_end(const Step& step, size_t input, const char* parameter) {
  const Operand* operand = end_operand(step, input);
  return operand ? operand->integers()[0] : step.integer(parameter);
}

// Real numbers that become integers of 8 bits.
class Converted final : public LevelKernel {
 public:
  explicit Converted(const Step& step) : LevelKernel(step, 1) {
    require(is_8bit(step.output().type), "no native kernel for these types");
  }

 private:
  bool levels(const float* const* in, float* out, int64_t count) const override {
    std::copy_n(in[0], count, out);
    return true;
  }
};

template <class T, class End>
std::unique_ptr<Kernel> clip_to(const Step& step, End low, End high) {
  const auto least = static_cast<T>(low), most = static_cast<T>(high);
  return make_map<T, T>(step, [least, most](T q) {
    const T raised = q < least ? least : q;
    return raised > most ? most : raised;
  });
}

std::unique_ptr<Kernel> make_clip(const Step& step, const CoreSet& cores) {
  if (step.has_array("table")) return make_level_table(step, cores);
  const Type type = step.input(0).type;
  if (step.texts.count("dtype")) return std::make_unique<Converted>(step);
  require(step.output().type == type, "no native kernel for these types");
  if (type == Type::f32) {
    const auto least = real_end<float>(step, 1, "low"), most = real_end<float>(step, 2, "high");
    return make_real_loop(step, cores, {RealLoop::limit, least, most});
  }
  if (type == Type::f64) {
    return clip_to<double>(step, real_end<double>(step, 1, "low"), real_end<double>(step, 2, "high"));
  }
  const int64_t least = integer_end(step, 1, "low"), most = integer_end(step, 2, "high");
  switch (type) {
    case Type::s8:
    case Type::u8:
      return make_integer_map(step, cores, [least, most](int64_t q) {
        const int64_t raised = q < least ? least : q;
        return raised > most ? most : raised;
      });
    case Type::s16: return clip_to<int16_t>(step, least, most);
    case Type::u16: return clip_to<uint16_t>(step, least, most);
    case Type::s32: return clip_to<int32_t>(step, least, most);
    case Type::u32: return clip_to<uint32_t>(step, least, most);
    case Type::s64: return clip_to<int64_t>(step, least, most);
    default: return nullptr;
  }
}

BITTRUE_OPERATOR(clip, make_clip)

}  // namespace
}  // namespace bittrue

// prelu: x where it is not negative, alpha * x elsewhere, with one alpha per broadcast element.
#include <algorithm>

#include "operators/core/blocks.h"
#include "operators/core/registry.h"
#include "operators/core/rescaling.h"
#include "operators/elementwise/real_loops.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

// Function: Out operator()(In, Alpha) const, on stored elements.
template <class In, class Alpha, class Function>
class Prelu final : public BlockKernel {
 public:
  Prelu(const Step& step, Function function) : BlockKernel(step, 2), function_(std::move(function)) {}

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    const auto* x = reinterpret_cast<const In*>(in[0]);
    const auto* alpha = reinterpret_cast<const Alpha*>(in[1]);
    auto* target = reinterpret_cast<In*>(out);
    for (int64_t i = 0; i < count; ++i) target[i] = function_(x[i], alpha[i]);
  }

  Function function_;
};

template <class In, class Alpha, class Function>
std::unique_ptr<Kernel> make(const Step& step, Function function) {
  return std::make_unique<Prelu<In, Alpha, Function>>(step, std::move(function));
}

// The products' magnitude stays far inside 64 bits.
constexpr int64_t kPreluZeroPoint = 1 << 24;

std::unique_ptr<Kernel> make_prelu(const Step& step, const CoreSet&) {
  const Type type = step.input(0).type, alpha_type = step.input(1).type;
  if (step.output().type != type) return nullptr;
  if (step.arrays.empty()) {
    if (type != Type::f32 || alpha_type != Type::f32) return nullptr;
    // Of two NaNs the input's stays; which one a product keeps is else up to the compiler.
    const Operand& slopes = step.input(1);
    const auto* first = static_cast<const float*>(slopes.constant);
    if (first != nullptr && std::none_of(first, first + slopes.elements, [](float a) { return a != a; })) {
      const auto block = [](const uint8_t* const* in, uint8_t* out, int64_t count) {
        real_loops::leaky_relu(reinterpret_cast<const float*>(in[0]), reinterpret_cast<const float*>(in[1]),
                               reinterpret_cast<float*>(out), count);
      };
      return make_blocks(step, {sizeof(float), sizeof(float)}, sizeof(float), BlockFunction(block));
    }
    return make<float, float>(
        step, [](float x, float alpha) { return x >= 0 ? x : rules::keep_first_nan(x * alpha, x, alpha); });
  }
  const Rescaling identity = rescaling(step, "identity_"), slope = rescaling(step, "alpha_");
  const Storing store = storing(step);
  const int64_t zero_point = step.integer("input_zero_point", -kPreluZeroPoint, kPreluZeroPoint);
  const int64_t alpha_zero_point =
      step.integer("alpha_zero_point", -kPreluZeroPoint, kPreluZeroPoint) + flip_of(alpha_type);
  const auto one = [=](int64_t q, int64_t alpha) {
    const int64_t x = q - zero_point;
    return store(x >= 0 ? identity(x) : slope(x * (alpha - alpha_zero_point)));
  };
  if (!is_8bit(alpha_type)) return nullptr;
  if (type == Type::s16) {
    return make<int16_t, uint8_t>(step, [=](int16_t q, uint8_t a) { return static_cast<int16_t>(one(q, a)); });
  }
  if (!is_8bit(type)) return nullptr;
  const int flip = flip_of(type);
  return make<uint8_t, uint8_t>(step,
                                [=](uint8_t q, uint8_t a) { return static_cast<uint8_t>(one(q - flip, a) + flip); });
}

BITTRUE_OPERATOR(prelu, make_prelu)

}  // namespace
}  // namespace bittrue

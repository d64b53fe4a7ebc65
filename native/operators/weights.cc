#include "operators/weights.h"

#include <algorithm>

namespace bittrue {

SignedWeights signed_weights(const Operand& weights, int64_t zero_point) {
  require(weights.constant != nullptr, "weights are computed at run time");
  require(weights.type == Type::s8 || weights.type == Type::u8 || weights.type == Type::s4, "weights are not 8-bit");
  require(zero_point >= -255 && zero_point <= 255, "the weights' zero point is out of range");
  SignedWeights result;
  result.values.resize(static_cast<size_t>(weights.elements));
  const auto* data = static_cast<const uint8_t*>(weights.constant);
  const bool is_unsigned = weights.type == Type::u8;
  const auto value = [&](int64_t i) { return is_unsigned ? int{data[i]} : int{static_cast<int8_t>(data[i])}; };
  int low = 0, high = 0;
  for (int64_t i = 0; i < weights.elements; ++i) {
    low = std::min(low, value(i) - static_cast<int>(zero_point));
    high = std::max(high, value(i) - static_cast<int>(zero_point));
  }
  // Differences that fit need no zero point at run time.
  const bool fits = low >= -128 && high <= 127;
  const int moved = fits ? static_cast<int>(zero_point) : is_unsigned ? 128 : 0;
  for (int64_t i = 0; i < weights.elements; ++i) result.values[i] = static_cast<int8_t>(value(i) - moved);
  result.zero_point = zero_point - moved;
  return result;
}

std::vector<int64_t> biases(const Step& step, size_t input, int64_t columns) {
  if (!step.has_input(input)) return std::vector<int64_t>(static_cast<size_t>(columns), 0);
  std::vector<int64_t> values = step.input(input).integers();
  require(static_cast<int64_t>(values.size()) == columns, "one bias per column is needed");
  return values;
}

bool suits_matmul(const Step& step) {
  const Operand& weights = step.input(1);
  const bool narrow = weights.type == Type::s8 || weights.type == Type::u8 || weights.type == Type::s4;
  const bool bias = !step.has_input(2) || step.input(2).constant != nullptr;
  const int flip = flip_of(step.input(0).type);
  const int64_t zero_point = step.integer("input_zero_point") + flip;
  const bool proven = step.bounded && step.magnitude < (int64_t{1} << 31);
  return is_8bit(step.input(0).type) && is_8bit(step.output().type) && narrow && weights.constant != nullptr && bias &&
         zero_point >= 0 && zero_point <= 255 && (proven || step.rule("accumulate") == "s32_wrap");
}

uint8_t stored_zero_point(const Step& step) {
  const int flip = flip_of(step.input(0).type);
  return static_cast<uint8_t>(step.integer("input_zero_point", -flip, 255 - flip) + flip);
}

}  // namespace bittrue

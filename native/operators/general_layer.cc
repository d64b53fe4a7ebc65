#include "operators/general_layer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace bittrue {
namespace {

constexpr int64_t kLargest16 = std::numeric_limits<int16_t>::max();

struct Range {
  int64_t low, high;
};

Range range_of(Type type) {
  switch (type) {
    case Type::s4: return {-8, 7};
    case Type::s8: return {-128, 127};
    case Type::u8: return {0, 255};
    case Type::s16: return {-32768, 32767};
    default: throw NoKernel("no native kernel for these types");
  }
}

using rules::RescaleRule;
using rules::StoreRule;

template <class Out, RescaleRule kRule, StoreRule kStore>
void store_row(const rules::Requantize& r, const int64_t* acc, int64_t first, int64_t count, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    const rules::Multiplier& m = r.at(static_cast<size_t>(first + i));
    const int64_t rescaled = rules::apply(kRule, acc[i], m);
    const int64_t stored = kStore == StoreRule::zero_point_then_clamp
                               ? rules::zero_point_then_clamp(rescaled, r.zero_point, r.low, r.high)
                               : rules::clamp_then_zero_point(rescaled, r.zero_point, r.low, r.high);
    const Out value = static_cast<Out>(stored + r.flip);
    std::memcpy(out + i * static_cast<int64_t>(sizeof(Out)), &value, sizeof(Out));
  }
}

}  // namespace

CenteredInput::CenteredInput(const Step& step) {
  const Operand& in = step.input(0);
  require(in.dense() && (is_8bit(in.type) || in.type == Type::s16), "activations are not 8- or 16-bit");
  const Range range = range_of(in.type);
  const int64_t zero_point = step.integer("input_zero_point", -32768, 32767);
  require(range.high - zero_point <= kLargest16 && range.low - zero_point >= -kLargest16 - 1,
          "activations without their zero point do not fit 16 bits");
  wide_ = in.type == Type::s16;
  zero_ = static_cast<int32_t>(zero_point) + flip_of(in.type);
  largest_ = std::max(std::abs(range.high - zero_point), std::abs(range.low - zero_point));
}

void CenteredInput::convert(const uint8_t* tensor, int64_t first, int64_t count, int16_t* out) const {
  if (wide_) {
    const auto* from = reinterpret_cast<const int16_t*>(tensor) + first;
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int16_t>(from[i] - zero_);
  } else {
    const uint8_t* from = tensor + first;
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int16_t>(from[i] - zero_);
  }
}

void CenteredInput::repeat(const uint8_t* tensor, int64_t first, int64_t count, int64_t times, int16_t* out) const {
  if (times == 1) return convert(tensor, first, count, out);
  for (int64_t i = 0; i < count; ++i) {
    int16_t value;
    convert(tensor, first + i, 1, &value);
    for (int64_t t = 0; t < times; ++t) *out++ = value;
  }
}

CenteredWeights::CenteredWeights(const Operand& weights, int64_t zero_point)
    : type_(weights.type), elements_(weights.elements) {
  const Range range = range_of(weights.type);
  require(weights.dense() && std::abs(zero_point) <= kLargest16, "the weights' zero point is out of range");
  zero_ = static_cast<int32_t>(zero_point) + flip_of(weights.type);
  largest_ = 0;
  if (weights.constant != nullptr) {
    for (const int64_t w : weights.integers()) {
      largest_ = std::max(largest_, std::abs(w - zero_point));
      values_.push_back(static_cast<int16_t>(w - zero_point));
    }
  } else {
    largest_ = std::max(std::abs(range.high - zero_point), std::abs(range.low - zero_point));
  }
  // -2^15 itself is allowed for 16-bit weights: they have no zero point then.
  require(largest_ <= kLargest16 || (zero_point == 0 && largest_ == kLargest16 + 1),
          "weights without their zero point do not fit 16 bits");
}

Bias::Bias(const Step& step, size_t input, int64_t columns) {
  if (!step.has_input(input)) return;
  const Operand& bias = step.input(input);
  require(bias.elements == columns && bias.dense() && (bias.type == Type::s32 || bias.type == Type::s64),
          "one bias of 32 or 64 bits per column is needed");
  type_ = bias.type;
  constant_ = bias.constant != nullptr;
  if (constant_) values_ = bias.integers();
}

template <class Out>
Finish::Store Finish::choose(const rules::Requantize& r) {
  const bool clamps_first = r.store == StoreRule::clamp_then_zero_point;
  const auto either = [&](Store plain, Store clamp_first) { return clamps_first ? clamp_first : plain; };
#define BITTRUE_RULE(rule)                                                                  \
  case RescaleRule::rule:                                                                   \
    return either(store_row<Out, RescaleRule::rule, StoreRule::zero_point_then_clamp>,      \
                  store_row<Out, RescaleRule::rule, StoreRule::clamp_then_zero_point>)
  switch (r.rescale) {
    BITTRUE_RULE(q31_two_step_up_away);
    BITTRUE_RULE(q31_two_step_up_up);
    BITTRUE_RULE(q31_one_step_up);
    BITTRUE_RULE(q15_one_step_up);
    BITTRUE_RULE(binary64_multiply_away);
    BITTRUE_RULE(binary32_multiply_even);
  }
#undef BITTRUE_RULE
  throw NoKernel("no native rescale rule");
}

Finish::Finish(const Step& step, int64_t columns) : requantize_(step.requantize(columns)) {
  const std::string& rule = step.rule("accumulate");
  require(rule == "s32_wrap" || rule == "s64", "no native accumulate rule");
  // Where the plan proved that 32 bits are enough this changes nothing.
  wrap_ = rule == "s32_wrap";
  require(step.output().dense(), "the output must be dense");
  bytes_ = type_bytes(step.output().type);
  switch (step.output().type) {
    case Type::s8:
    case Type::u8: store_ = choose<uint8_t>(requantize_); break;
    case Type::s16: store_ = choose<int16_t>(requantize_); break;
    case Type::s32: store_ = choose<int32_t>(requantize_); break;
    default: throw NoKernel("no native kernel for this output type");
  }
}

void Finish::run(const int64_t* sums, const Bias& bias, const uint8_t* stored_bias, int64_t first, int64_t count,
                 uint8_t* out) const {
  constexpr int64_t kTogether = 64;
  int64_t acc[kTogether];
  for (int64_t i = 0; i < count; i += kTogether) {
    const int64_t some = std::min(kTogether, count - i);
    for (int64_t j = 0; j < some; ++j) {
      const uint64_t total =
          static_cast<uint64_t>(sums[i + j]) + static_cast<uint64_t>(bias.at(stored_bias, first + i + j));
      acc[j] = wrap_ ? int64_t{static_cast<int32_t>(static_cast<uint32_t>(total))} : static_cast<int64_t>(total);
    }
    store_(requantize_, acc, first + i, some, out + i * bytes_);
  }
}

}  // namespace bittrue

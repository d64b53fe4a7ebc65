#include "operators/layers/general_layer.h"

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
    case Type::s2: return {-2, 1};
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
  // Copies, because bytes that are stored might be these otherwise.
  const rules::Multiplier* multiplier = &r.at(static_cast<size_t>(first));
  const int64_t step = r.multipliers.size() == 1 ? 0 : 1;
  const int64_t zero_point = r.zero_point, low = r.low, high = r.high, flip = r.flip;
  for (int64_t i = 0; i < count; ++i, multiplier += step) {
    const int64_t rescaled = rules::apply(kRule, acc[i], *multiplier);
    const int64_t stored = kStore == StoreRule::zero_point_then_clamp
                               ? rules::zero_point_then_clamp(rescaled, zero_point, low, high)
                               : rules::clamp_then_zero_point(rescaled, zero_point, low, high);
    const Out value = static_cast<Out>(stored + flip);
    std::memcpy(out + i * static_cast<int64_t>(sizeof(Out)), &value, sizeof(Out));
  }
}

// The rules that are rarely met.
template <class Out>
void store_each(const rules::Requantize& r, const int64_t* acc, int64_t first, int64_t count, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    const Out value = static_cast<Out>(rules::requantize(r, acc[i], static_cast<size_t>(first + i)));
    std::memcpy(out + i * static_cast<int64_t>(sizeof(Out)), &value, sizeof(Out));
  }
}

}  // namespace

CenteredInput::CenteredInput(const Step& step, size_t input) {
  const Operand& in = step.input(input);
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
  constexpr int64_t kTogether = 256;
  int16_t values[kTogether];
  for (int64_t i = 0; i < count; i += kTogether) {
    const int64_t some = std::min(kTogether, count - i);
    convert(tensor, first + i, some, values);
    for (int64_t j = 0; j < some; ++j) {
      for (int64_t t = 0; t < times; ++t) *out++ = values[j];
    }
  }
}

CenteredWeights::CenteredWeights(const Operand& weights, int64_t zero_point)
    : type_(weights.type), elements_(weights.elements) {
  const Range range = range_of(weights.type);
  require(weights.dense() && zero_point >= -32768 && zero_point <= 32767, "the weights' zero point is out of range");
  zero_ = static_cast<int32_t>(zero_point) + flip_of(weights.type);
  largest_ = 0;
  if (weights.constant != nullptr) {
    for (const int64_t w : weights.integers()) {
      largest_ = std::max(largest_, std::abs(w - zero_point));
      values_.push_back(static_cast<int32_t>(w - zero_point));
    }
  } else {
    largest_ = std::max(std::abs(range.high - zero_point), std::abs(range.low - zero_point));
  }
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

void Bias::add(const int64_t* sums, const uint8_t* stored, int64_t first, int64_t count, int64_t* out) const {
  // Unsigned, because a plan's bias may be anything.
  const auto each = [&](const auto* bias) {
    for (int64_t i = 0; i < count; ++i) {
      const auto addend = static_cast<uint64_t>(static_cast<int64_t>(bias[i]));
      out[i] = static_cast<int64_t>(static_cast<uint64_t>(sums[i]) + addend);
    }
  };
  if (!values_.empty()) {
    each(values_.data() + first);
  } else if (stored == nullptr) {
    std::memcpy(out, sums, static_cast<size_t>(count) * sizeof(int64_t));
  } else if (type_ == Type::s64) {
    each(reinterpret_cast<const int64_t*>(stored) + first);
  } else {
    each(reinterpret_cast<const int32_t*>(stored) + first);
  }
}

template <class Out>
Finish::Store Finish::choose(const rules::Requantize& r) {
  const bool clamps_first = r.store == StoreRule::clamp_then_zero_point;
  const auto either = [&](Store plain, Store clamp_first) { return clamps_first ? clamp_first : plain; };
#define BITTRUE_RULE(rule)                                                             \
  case RescaleRule::rule:                                                              \
    return either(store_row<Out, RescaleRule::rule, StoreRule::zero_point_then_clamp>, \
                  store_row<Out, RescaleRule::rule, StoreRule::clamp_then_zero_point>)
  switch (r.rescale) {
    BITTRUE_RULE(q31_two_step_up_away);
    BITTRUE_RULE(q31_two_step_up_up);
    BITTRUE_RULE(q31_one_step_up);
    BITTRUE_RULE(q15_one_step_up);
    BITTRUE_RULE(q8_one_step_up);
    BITTRUE_RULE(binary64_multiply_away);
    BITTRUE_RULE(binary32_multiply_even);
    BITTRUE_RULE(binary64_multiply_even);
    BITTRUE_RULE(binary32_multiply_even_wide);
    BITTRUE_RULE(binary64_two_step_away_away);
    BITTRUE_RULE(binary32_two_step_away_away);
    BITTRUE_RULE(binary64_product_binary32_away);
    BITTRUE_RULE(q15_one_step_even);
    BITTRUE_RULE(q30_floor_plus_one);
    BITTRUE_RULE(binary32_multiply_even_overflow_lowest);
    BITTRUE_RULE(binary32_add_multiply_even);
    BITTRUE_RULE(binary32_add_multiply_twice_even);
    case RescaleRule::q31_one_step_up_wrap:
    case RescaleRule::q31_shift_or_one_step_up:
    case RescaleRule::q31_one_step_away:
    case RescaleRule::binary32_multiply:
    case RescaleRule::binary64_multiply: return store_each<Out>;
  }
#undef BITTRUE_RULE
  throw NoKernel("no native rescale rule");
}

Finish::Finish(const Step& step, int64_t columns) : requantize_(step.requantize(columns)) {
  const std::string& rule = step.rule("accumulate");
  const bool proven = rule == "binary32" && step.bounded && !step.wraps;
  require(rule == "s32_wrap" || rule == "s64" || proven, "no native accumulate rule");
  // Where the plan proved that 32 bits are enough this changes nothing.
  wrap_ = rule == "s32_wrap";
  require(step.output().dense(), "the output must be dense");
  bytes_ = type_bytes(step.output().type);
  if (step.has_array("fused_table")) {
    const Array& array = step.array("fused_table");
    require(bytes_ == 1 && array.type == Type::u8 && array.count == 256, "a table has 256 bytes, for an 8-bit layer");
    const auto* results = static_cast<const uint8_t*>(array.data);
    table_.assign(results, results + array.count);
  }
  store_ = choose(step.output().type, requantize_);
  body_ = columns;
  tail_store_ = store_;
  if (step.rules.count("rescale_tail") == 0) return;
  body_ = step.integer("body", 0, columns);
  rules::Requantize tail = requantize_;
  tail.rescale = step.rescale_rule("rescale_tail");
  require(!rules::is_real(tail.rescale) && !rules::is_real(tail.store), "no native rule for this slot");
  for (const rules::Multiplier& m : tail.multipliers) {
    require(rules::takes(tail.rescale, m), "the multiplier does not suit the rule of the tail");
  }
  tail_store_ = choose(step.output().type, tail);
}

Finish::Store Finish::choose(Type type, const rules::Requantize& r) {
  switch (type) {
    case Type::s8:
    case Type::u8: return choose<uint8_t>(r);
    case Type::s16: return choose<int16_t>(r);
    case Type::s32: return choose<int32_t>(r);
    default: throw NoKernel("no native kernel for this output type");
  }
}

void Finish::run(const int64_t* sums, const Bias& bias, const uint8_t* stored_bias, int64_t first, int64_t count,
                 uint8_t* out) const {
  constexpr int64_t kTogether = 64;
  int64_t acc[kTogether];
  for (int64_t i = 0; i < count; i += kTogether) {
    const int64_t some = std::min(kTogether, count - i);
    bias.add(sums + i, stored_bias, first + i, some, acc);
    if (wrap_) {
      for (int64_t j = 0; j < some; ++j) acc[j] = static_cast<int32_t>(static_cast<uint32_t>(acc[j]));
    }
    const int64_t column = first + i, inside = std::min(some, std::max<int64_t>(0, body_ - column));
    if (inside > 0) store_(requantize_, acc, column, inside, out + i * bytes_);
    if (inside == some) continue;
    tail_store_(requantize_, acc + inside, column + inside, some - inside, out + (i + inside) * bytes_);
  }
  if (table_.empty()) return;
  for (int64_t i = 0; i < count; ++i) out[i] = table_[out[i]];
}

}  // namespace bittrue

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

// In place: accumulators of columns from `first` on become integers in the scale of the output.
template <rules::RescaleFunction kRescale>
void rescale_row(const rules::Requantize& r, int64_t* __restrict acc, int64_t first, int64_t count) {
  const rules::Multiplier* multiplier = &r.at(static_cast<size_t>(first));
  const int64_t step = r.multipliers.size() == 1 ? 0 : 1;
  for (int64_t i = 0; i < count; ++i, multiplier += step) acc[i] = kRescale(acc[i], *multiplier);
}

// Rules with real results: what the store rule makes of these.
void finish_row(const rules::Requantize& r, int64_t* acc, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    acc[i] = rules::requantize_real(r, acc[i], static_cast<size_t>(first + i));
  }
}

template <class Out>
void store_row(const rules::Requantize& r, const int64_t* values, int64_t count, uint8_t* out) {
  // Copies, because bytes that are stored might be these otherwise.
  const int64_t zero_point = r.zero_point, low = r.low, high = r.high, flip = r.flip;
  const auto each = [&](const auto& stored) {
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<Out>(stored(values[i]) + flip);
      std::memcpy(out + i * static_cast<int64_t>(sizeof(Out)), &value, sizeof(Out));
    }
  };
  if (rules::is_real(r.store)) {
    each([](int64_t value) { return value; });
  } else if (r.store == StoreRule::zero_point_then_clamp) {
    each([=](int64_t value) { return rules::zero_point_then_clamp(value, zero_point, low, high); });
  } else {
    each([=](int64_t value) { return rules::clamp_then_zero_point(value, zero_point, low, high); });
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

Finish::Rescale Finish::rescale_of(RescaleRule rule) {
  switch (rule) {
#define BITTRUE_INTEGER(name, ...) \
  case RescaleRule::name: return rescale_row<rules::name>;
#define BITTRUE_REAL(name, ...) \
  case RescaleRule::name: return finish_row;
    // NOLINTNEXTLINE(bugprone-branch-clone): rules of real numbers have one row for all.
    BITTRUE_RESCALE_RULES(BITTRUE_INTEGER, BITTRUE_REAL)
#undef BITTRUE_INTEGER
#undef BITTRUE_REAL
  }
  throw NoKernel("no native rescale rule");
}

Finish::Store Finish::store_of(Type type) {
  switch (type) {
    case Type::s8:
    case Type::u8: return store_row<uint8_t>;
    case Type::s16: return store_row<int16_t>;
    case Type::s32: return store_row<int32_t>;
    default: throw NoKernel("no native kernel for this output type");
  }
}

Finish::Finish(const Step& step, const CoreSet& cores, int64_t columns)
    : requantize_(step.requantize(columns)), table_(step, cores) {
  const std::string& rule = step.rule("accumulate");
  const bool proven = rule == "binary32" && step.bounded && !step.wraps;
  require(rule == "s32_wrap" || rule == "s64" || proven, "no native accumulate rule");
  // Where the plan proved that 32 bits are enough this changes nothing.
  wrap_ = rule == "s32_wrap";
  require(step.output().dense(), "the output must be dense");
  bytes_ = type_bytes(step.output().type);
  require(bytes_ == 1 || !step.has_array("fused_table"), "tables are for 8-bit layers");
  store_ = store_of(step.output().type);
  rescale_ = tail_rescale_ = rescale_of(requantize_.rescale);
  body_ = columns;
  if (step.rules.count("rescale_tail") == 0) return;
  body_ = step.integer("body", 0, columns);
  const RescaleRule tail = step.rescale_rule("rescale_tail");
  require(!rules::is_real(tail) && !rules::is_real(requantize_.store), "no native rule for this slot");
  for (const rules::Multiplier& m : requantize_.multipliers) {
    require(rules::takes(tail, m), "the multiplier does not suit the rule of the tail");
  }
  tail_rescale_ = rescale_of(tail);
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
    if (inside > 0) rescale_(requantize_, acc, column, inside);
    if (inside < some) tail_rescale_(requantize_, acc + inside, column + inside, some - inside);
    store_(requantize_, acc, some, out + i * bytes_);
  }
  table_.apply(out, count, 1, count);
}

}  // namespace bittrue

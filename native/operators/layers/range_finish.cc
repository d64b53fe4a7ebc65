// finish_sums: what becomes of the sums of layers over tensors with ranges, in binary32.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "core/kernel.h"
#include "operators/core/blocks.h"
#include "operators/core/registry.h"
#include "operators/layers/range_numbers.h"
#include "operators/quantization/ranges.h"

namespace bittrue {
namespace {

// Elements of a constant operand, which must be real.
std::vector<float> reals(const Step& step, size_t input) {
  const Operand& operand = step.input(input);
  require(operand.constant != nullptr && operand.type == Type::f32, "ranges are known while running only");
  // Constants may lie anywhere.
  std::vector<float> found(static_cast<size_t>(operand.elements));
  if (!found.empty()) std::memcpy(found.data(), operand.constant, found.size() * sizeof(float));
  return found;
}

// max(|low|, |high|) of the range that two operands hold.
float reach(const Step& step, size_t input) {
  const std::vector<float> low = reals(step, input), high = reals(step, input + 1);
  require(low.size() == 1 && high.size() == 1, "the end of a range is one number");
  return std::max(std::fabs(low[0]), std::fabs(high[0]));
}

// Sums [N, C, ...] or [..., C] with something per channel: Function: void operator()(row, element, channel).
class ByChannel : public Kernel {
 public:
  explicit ByChannel(const Step& step) {
    const Operand &acc = step.input(0), &out = step.output();
    require(acc.type == Type::s32 && acc.rank() >= 2 && acc.dense() && out.dense() && acc.shape == out.shape,
            "no native kernel for these operands");
    last_ = step.integer("channels_last", 0, 1) != 0;
    channels_ = last_ ? acc.shape.back() : acc.shape[1];
    rows_ = last_ ? (channels_ == 0 ? 0 : acc.elements / channels_) : acc.shape[0] * channels_;
    length_ = rows_ == 0 ? 0 : acc.elements / rows_;
  }

 protected:
  // Empty where the layer makes them while running.
  std::vector<int32_t> late_bias(const Step& step, size_t input, Type type = Type::s32) const {
    const Operand& operand = step.input(input);
    if (operand.constant != nullptr) return bias(step, input);
    require(operand.type == type && operand.dense() && operand.elements == channels_, "one bias per channel is needed");
    return {};
  }

  std::vector<int32_t> bias(const Step& step, size_t input) const {
    require(step.input(input).constant != nullptr, "ranges are known while running only");
    std::vector<int32_t> found;
    for (const int64_t value : step.input(input).integers()) found.push_back(static_cast<int32_t>(value));
    require(static_cast<int64_t>(found.size()) == channels_, "one bias per channel is needed");
    return found;
  }

  // Scales of the weights, one per channel.
  std::vector<float> scales(const Step& step, size_t input) const {
    std::vector<float> found = reals(step, input);
    if (found.size() == 1) found.assign(static_cast<size_t>(channels_), found[0]);
    require(static_cast<int64_t>(found.size()) == channels_, "one scale per channel is needed");
    return found;
  }

  template <class Function>
  void each(const Run& run, const Function& function) const {
    const auto row = [&](int64_t number, int) {
      const int64_t first = number * length_;
      if (last_) {
        for (int64_t i = 0; i < length_; ++i) function(first + i, i);
      } else {
        const int64_t channel = number % channels_;
        for (int64_t i = 0; i < length_; ++i) function(first + i, channel);
      }
    };
    if (rows_ * length_ < Blocks::kParallel) {
      for (int64_t number = 0; number < rows_; ++number) row(number, 0);
    } else {
      run.pool.parallel(rows_, row);
    }
  }

  bool last_;
  int64_t channels_ = 0, rows_ = 0, length_ = 0;
};

class AddBias final : public ByChannel {
 public:
  explicit AddBias(const Step& step)
      : ByChannel(step),
        bytes_(step.input(1).type == Type::s8),
        bias_(late_bias(step, 1, bytes_ ? Type::s8 : Type::s32)) {
    require(step.rule("add_bias") == "binary32_sum" && step.output().type == Type::s32, "no native rule for this slot");
    relu_ = step.integer("relu_last", 0, 1) != 0;
  }

  void run(const Run& run) const override {
    const auto* acc = reinterpret_cast<const int32_t*>(run.inputs[0]);
    const auto* bias = bias_.empty() ? reinterpret_cast<const int32_t*>(run.inputs[1]) : bias_.data();
    const uint8_t* bytes = bytes_ && bias_.empty() ? run.inputs[1] : nullptr;
    auto* out = reinterpret_cast<int32_t*>(run.outputs[0]);
    each(run, [&](int64_t i, int64_t channel) {
      const int32_t addend = bytes != nullptr ? bytes[channel] - 128 : bias[channel];
      const int32_t sum = saturate_s32(static_cast<float>(acc[i]) + static_cast<float>(addend));
      out[i] = relu_ ? std::max(sum, 0) : sum;
    });
  }

 private:
  bool bytes_;
  std::vector<int32_t> bias_;
  bool relu_;
};

// Bias, ranges and scales may be those of the run.
class ToReal final : public ByChannel {
 public:
  explicit ToReal(const Step& step)
      : ByChannel(step), bias_(late_bias(step, 1)), level_(level(named(step, "data_type"))) {
    require(step.output().type == Type::f32, "no native kernel for these types");
    const Operand& scales = step.input(5);
    require(scales.type == Type::f32 && scales.dense() && (scales.elements == 1 || scales.elements == channels_),
            "one scale, or one per channel, is needed");
    several_ = scales.elements > 1;
    for (size_t i : {3, 4}) require_end(step.input(i));
    relu_ = step.integer("relu_last", 0, 1) != 0;
  }

  void run(const Run& run) const override {
    const auto* acc = reinterpret_cast<const int32_t*>(run.inputs[0]);
    const auto* bias = bias_.empty() ? reinterpret_cast<const int32_t*>(run.inputs[1]) : bias_.data();
    const auto* scales = reinterpret_cast<const float*>(run.inputs[5]);
    const float inverse = 1.0f / (level_ / bittrue::reach(run, 3));
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    each(run, [&](int64_t i, int64_t channel) {
      const float sum = static_cast<float>(acc[i]) + static_cast<float>(bias[channel]);
      const float real = sum * (inverse / scales[several_ ? channel : 0]);
      out[i] = relu_ && !(real > 0.0f) ? 0.0f : real;
    });
  }

 private:
  std::vector<int32_t> bias_;
  float level_;
  bool relu_, several_;
};

class LayerSum final : public ByChannel {
 public:
  explicit LayerSum(const Step& step)
      : ByChannel(step), bias_(bias(step, 1)), factors_(scales(step, 5)), saturate_(named(step, "other")) {
    const Operand& other = step.input(2);
    require(step.rule("layer_sum") == "fused_multiply_even", "no native rule for this slot");
    require(other.type == named(step, "other") && other.dense() && other.shape == step.output().shape &&
                is_8bit(step.output().type),
            "no native kernel for these types");
    const float data = level(named(step, "data_type")) / reach(step, 3);
    const float result = level(step.output().type) / reach(step, 6);
    for (float& factor : factors_) {
      factor = (result / data) / factor;
      require(std::isfinite(factor), "a factor is not finite");
    }
    factor_ = result / (level(other.type) / reach(step, 8));
    require(std::isfinite(factor_), "a factor is not finite");
    flip_ = flip_of(other.type);
    // Codes keep their bits when the result is of the other type; stored s8 numbers have their sign bit turned.
    turn_ = step.output().type == Type::s8 ? 0x80 : 0;
    relu_first_ = step.integer("relu_first", 0, 1) != 0;
    relu_last_ = step.integer("relu_last", 0, 1) != 0;
  }

  void run(const Run& run) const override {
    const auto* acc = reinterpret_cast<const int32_t*>(run.inputs[0]);
    const uint8_t* other = run.inputs[2];
    uint8_t* out = run.outputs[0];
    if (!last_) {
      each(run,
           [&](int64_t i, int64_t channel) { out[i] = stored(acc[i], bias_[channel], factors_[channel], other[i]); });
      return;
    }
    const auto row = [&](int64_t number, int) {
      const int64_t first = number * length_;
      for (int64_t i = 0; i < length_; i += kBlock) {
        block(acc + first + i, bias_.data() + i, factors_.data() + i, other + first + i,
              static_cast<int32_t>(std::min<int64_t>(kBlock, length_ - i)), out + first + i);
      }
    };
    if (rows_ * length_ < Blocks::kParallel) {
      for (int64_t number = 0; number < rows_; ++number) row(number, 0);
    } else {
      run.pool.parallel(rows_, row);
    }
  }

 private:
  static constexpr int32_t kBlock = 64;

  float scaled(int32_t acc, int32_t bias, float factor) const {
    const float value = (static_cast<float>(acc) + static_cast<float>(bias)) * factor;
    return relu_first_ ? std::max(value, 0.0f) : value;
  }

  uint8_t stored(int32_t acc, int32_t bias, float factor, uint8_t other) const {
    const float value = scaled(acc, bias, factor);
    int32_t found = saturate_(std::fma(static_cast<float>(other - flip_), factor_, value));
    if (relu_last_) found = std::max(found, 0);
    return static_cast<uint8_t>(static_cast<uint32_t>(found) ^ turn_);
  }

  // The product is exact in binary64, the sum nearly: rounding it once more to binary32 is one rounding of the real sum
  // unless it was not exact and lies in the middle between two binary32 numbers. Blocks with such a sum are done again.
  // Where binary32 numbers are subnormal or infinite, both ways lead to 0 and to the ends.
  void block(const int32_t* __restrict acc, const int32_t* __restrict bias, const float* __restrict factors,
             const uint8_t* __restrict other, int32_t count, uint8_t* __restrict out) const {
    const double factor = factor_;
    const int32_t flip = flip_, least = relu_last_ ? 0 : -128;
    const uint32_t turn = turn_;
    const float low = saturate_.low, high = saturate_.high;
    const float start = relu_first_ ? 0.0f : -std::numeric_limits<float>::infinity();
    uint64_t doubtful = 0;
    float sums[kBlock];
    for (int32_t i = 0; i < count; ++i) {
      const float real = (static_cast<float>(acc[i]) + static_cast<float>(bias[i])) * factors[i];
      const float value = real > start ? real : start;
      const double product = static_cast<double>(other[i] - flip) * factor, addend = value;
      const double sum = product + addend, second = sum - product;
      const double lost = (product - (sum - second)) + (addend - second);
      uint64_t bits, missing;
      std::memcpy(&bits, &sum, sizeof bits);
      std::memcpy(&missing, &lost, sizeof missing);
      // The highest bit is set when the 29 bits that binary32 drops are 1 followed by zeros, and something was lost.
      const uint64_t apart = (bits & 0x1FFFFFFF) ^ 0x10000000;
      doubtful |= (apart - 1) & (0 - (missing & 0x7FFFFFFFFFFFFFFF));
      sums[i] = static_cast<float>(sum);
    }
    if ((doubtful >> 63) != 0) {
      for (int32_t i = 0; i < count; ++i) out[i] = stored(acc[i], bias[i], factors[i], other[i]);
      return;
    }
    for (int32_t i = 0; i < count; ++i) {
      const float above = sums[i] > low ? sums[i] : low;
      const float moved = (above < high ? above : high) + 12582912.0f;
      int32_t bits;
      std::memcpy(&bits, &moved, sizeof bits);
      const int32_t code = bits - 0x4B400000;
      out[i] = static_cast<uint8_t>(static_cast<uint32_t>(code > least ? code : least) ^ turn);
    }
  }

  std::vector<int32_t> bias_;
  std::vector<float> factors_;
  Saturate saturate_;
  float factor_ = 0;
  int32_t flip_ = 0;
  uint32_t turn_ = 0;
  bool relu_first_ = false, relu_last_ = false;
};

// To sums in their own unit, with ranges and scales of the run.
class WideSum final : public ByChannel {
 public:
  explicit WideSum(const Step& step)
      : ByChannel(step),
        bias_(late_bias(step, 1)),
        level_(level(named(step, "data_type"))),
        other_level_(level(named(step, "other"))),
        flip_(flip_of(step.input(2).type)) {
    const Operand &other = step.input(2), &scales = step.input(5);
    require(step.rule("layer_sum") == "fused_multiply_even", "no native rule for this slot");
    require(other.type == named(step, "other") && other.dense() && other.shape == step.output().shape,
            "no native kernel for these types");
    require(scales.type == Type::f32 && scales.dense() && (scales.elements == 1 || scales.elements == channels_),
            "one scale, or one per channel, is needed");
    several_ = scales.elements > 1;
    for (size_t i : {3, 4, 8, 9}) require_end(step.input(i));
    relu_first_ = step.integer("relu_first", 0, 1) != 0;
    relu_last_ = step.integer("relu_last", 0, 1) != 0;
  }

  void run(const Run& run) const override {
    const auto* acc = reinterpret_cast<const int32_t*>(run.inputs[0]);
    const auto* bias = bias_.empty() ? reinterpret_cast<const int32_t*>(run.inputs[1]) : bias_.data();
    const auto* scales = reinterpret_cast<const float*>(run.inputs[5]);
    const float data = level_ / bittrue::reach(run, 3), others = other_level_ / bittrue::reach(run, 8);
    auto* out = reinterpret_cast<int32_t*>(run.outputs[0]);
    each(run, [&](int64_t i, int64_t channel) {
      const float total = static_cast<float>(acc[i]) + static_cast<float>(bias[channel]);
      const float factor = data * scales[several_ ? channel : 0] / others;
      const float value = relu_first_ ? std::max(total, 0.0f) : total;
      const int32_t sum = saturate_s32(std::fma(static_cast<float>(run.inputs[2][i] - flip_), factor, value));
      out[i] = relu_last_ ? std::max(sum, 0) : sum;
    });
  }

 private:
  std::vector<int32_t> bias_;
  float level_, other_level_;
  int32_t flip_;
  bool several_, relu_first_, relu_last_;
};

std::unique_ptr<Kernel> make_finish_sums(const Step& step, const CoreSet&) {
  if (step.rules.count("add_bias")) return std::make_unique<AddBias>(step);
  if (step.rules.count("layer_sum")) {
    if (step.output().type == Type::s32) return std::make_unique<WideSum>(step);
    return std::make_unique<LayerSum>(step);
  }
  return std::make_unique<ToReal>(step);
}

BITTRUE_OPERATOR(finish_sums, make_finish_sums)

}  // namespace
}  // namespace bittrue

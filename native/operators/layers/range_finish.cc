// finish_sums: what becomes of the sums of layers over tensors with ranges, in binary32.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "arithmetic/fixed_point.h"
#include "core/kernel.h"
#include "operators/core/blocks.h"
#include "operators/core/registry.h"
#include "operators/layers/layer_sum.h"
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

// A constant bias, one per channel.
std::vector<float> bias(const Step& step, size_t input, int64_t channels) {
  std::vector<float> found;
  if (step.input(input).type == Type::f32) {
    found = reals(step, input);
  } else {
    for (const int64_t value : step.input(input).integers()) found.push_back(static_cast<float>(value));
  }
  require(static_cast<int64_t>(found.size()) == channels, "one bias per channel is needed");
  return found;
}

// What doubled results are multiplied by.
float doubled(const std::string& rule, const char* plain, const char* twice) {
  require(rule == plain || rule == twice, "no native rule for this slot");
  return rule == twice ? 2.0f : 1.0f;
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
  std::vector<float> late_bias(const Step& step, size_t input, Type type = Type::f32) const {
    const Operand& operand = step.input(input);
    if (operand.constant != nullptr) return bias(step, input, channels_);
    require(operand.type == type && operand.dense() && operand.elements == channels_, "one bias per channel is needed");
    return {};
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
        bias_(late_bias(step, 1, bytes_ ? Type::s8 : Type::f32)),
        exact_(step.rule("add_bias") == "s32_sum"),
        unit_(exact_ ? 1.0f : doubled(step.rule("add_bias"), "binary32_sum", "binary32_doubled_sum")) {
    require(step.output().type == Type::s32, "no native kernel for these types");
    relu_ = step.integer("relu_last", 0, 1) != 0;
  }

  void run(const Run& run) const override {
    const auto* acc = reinterpret_cast<const int32_t*>(run.inputs[0]);
    const auto* bias = bias_.empty() ? reinterpret_cast<const float*>(run.inputs[1]) : bias_.data();
    const uint8_t* bytes = bytes_ && bias_.empty() ? run.inputs[1] : nullptr;
    auto* out = reinterpret_cast<int32_t*>(run.outputs[0]);
    each(run, [&](int64_t i, int64_t channel) {
      const float addend = bytes != nullptr ? static_cast<float>(bytes[channel] - 128) : bias[channel];
      const int32_t sum = exact_ ? static_cast<int32_t>(arithmetic::wrap_s32(acc[i] + static_cast<int64_t>(addend)))
                                 : saturate_s32((static_cast<float>(acc[i]) + addend) * unit_);
      out[i] = relu_ ? std::max(sum, 0) : sum;
    });
  }

 private:
  bool bytes_;
  std::vector<float> bias_;
  bool exact_;
  float unit_;
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
    const auto* bias = bias_.empty() ? reinterpret_cast<const float*>(run.inputs[1]) : bias_.data();
    const auto* scales = reinterpret_cast<const float*>(run.inputs[5]);
    const float inverse = 1.0f / (level_ / bittrue::reach(run, 3));
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    each(run, [&](int64_t i, int64_t channel) {
      const float sum = static_cast<float>(acc[i]) + bias[channel];
      const float real = sum * (inverse / scales[several_ ? channel : 0]);
      out[i] = relu_ && !(real > 0.0f) ? 0.0f : real;
    });
  }

 private:
  std::vector<float> bias_;
  float level_;
  bool relu_, several_;
};

class ByteSum final : public ByChannel {
 public:
  ByteSum(const Step& step, const CoreSet& cores) : ByChannel(step), sum_(step, cores, channels_) {
    require(step.input(2).dense(), "no native kernel for these operands");
  }

  void run(const Run& run) const override {
    const auto* acc = reinterpret_cast<const int32_t*>(run.inputs[0]);
    const uint8_t* other = run.inputs[2];
    uint8_t* out = run.outputs[0];
    const auto row = [&](int64_t number, int) {
      const int64_t first = number * length_;
      if (last_) {
        sum_.row(acc + first, other + first, out + first, 0, length_);
      } else {
        sum_.channel(acc + first, other + first, out + first, number % channels_, length_);
      }
    };
    if (rows_ * length_ < Blocks::kParallel) {
      for (int64_t number = 0; number < rows_; ++number) row(number, 0);
    } else {
      run.pool.parallel(rows_, row);
    }
  }

 private:
  LayerSum sum_;
};

// To sums in their own unit, with ranges and scales of the run.
class WideSum final : public ByChannel {
 public:
  explicit WideSum(const Step& step)
      : ByChannel(step),
        bias_(late_bias(step, 1)),
        level_(level(named(step, "data_type"))),
        other_level_(level(named(step, "other"))),
        unit_(doubled(step.rule("layer_sum"), "fused_multiply_even", "fused_multiply_doubled_even")),
        flip_(flip_of(step.input(2).type)) {
    const Operand &other = step.input(2), &scales = step.input(5);
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
    const auto* bias = bias_.empty() ? reinterpret_cast<const float*>(run.inputs[1]) : bias_.data();
    const auto* scales = reinterpret_cast<const float*>(run.inputs[5]);
    const float data = level_ / bittrue::reach(run, 3), others = other_level_ / bittrue::reach(run, 8);
    auto* out = reinterpret_cast<int32_t*>(run.outputs[0]);
    each(run, [&](int64_t i, int64_t channel) {
      const float total = static_cast<float>(acc[i]) + bias[channel];
      const float factor = data * scales[several_ ? channel : 0] / others;
      const float value = relu_first_ ? std::max(total, 0.0f) : total;
      const float real = std::fma(static_cast<float>(run.inputs[2][i] - flip_), factor, value);
      const int32_t sum = saturate_s32(real * unit_);
      out[i] = relu_last_ ? std::max(sum, 0) : sum;
    });
  }

 private:
  std::vector<float> bias_;
  float level_, other_level_, unit_;
  int32_t flip_;
  bool several_, relu_first_, relu_last_;
};

std::unique_ptr<Kernel> make_finish_sums(const Step& step, const CoreSet& cores) {
  if (step.rules.count("add_bias")) return std::make_unique<AddBias>(step);
  if (step.rules.count("layer_sum")) {
    if (step.output().type == Type::s32) return std::make_unique<WideSum>(step);
    return std::make_unique<ByteSum>(step, cores);
  }
  return std::make_unique<ToReal>(step);
}

BITTRUE_OPERATOR(finish_sums, make_finish_sums)

}  // namespace

LayerSum::LayerSum(const Step& step, const CoreSet& cores, int64_t channels)
    : bias_(bias(step, 1, channels)), factors_(reals(step, 5)) {
  const Operand& other = step.input(2);
  const Saturate saturate(named(step, "other"));
  require(step.rule("layer_sum") == "fused_multiply_even", "no native rule for this slot");
  require(other.type == named(step, "other") && other.shape == step.output().shape && is_8bit(step.output().type),
          "no native kernel for these types");
  if (factors_.size() == 1) factors_.assign(static_cast<size_t>(channels), factors_[0]);
  require(static_cast<int64_t>(factors_.size()) == channels, "one scale per channel is needed");
  const float data = level(named(step, "data_type")) / reach(step, 3);
  const float result = level(step.output().type) / reach(step, 6);
  for (float& factor : factors_) {
    factor = (result / data) / factor;
    require(std::isfinite(factor), "a factor is not finite");
  }
  spec_.factor = result / (level(other.type) / reach(step, 8));
  require(std::isfinite(spec_.factor), "a factor is not finite");
  spec_.other_flip = flip_of(other.type);
  // Codes keep their bits when the result is of the other type.
  spec_.out_flip = flip_of(step.output().type);
  spec_.start = step.integer("relu_first", 0, 1) != 0 ? 0.0f : -std::numeric_limits<float>::infinity();
  spec_.low = step.integer("relu_last", 0, 1) != 0 ? 0.0f : saturate.low;
  spec_.high = saturate.high;
  core_ = cores.layer_sums();
}

void LayerSum::channel(const int32_t* acc, const uint8_t* other, uint8_t* out, int64_t channel, int64_t count) const {
  constexpr int64_t kBlock = 64;
  float bias[kBlock], factors[kBlock];
  std::fill_n(bias, kBlock, bias_[channel]);
  std::fill_n(factors, kBlock, factors_[channel]);
  for (int64_t i = 0; i < count; i += kBlock) {
    core_(spec_, acc + i, bias, factors, other + i, out + i, std::min(kBlock, count - i));
  }
}

}  // namespace bittrue

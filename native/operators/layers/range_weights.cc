// range_weights: quantized weights and bias of layers over tensors with ranges, made while running.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "operators/core/registry.h"
#include "operators/layers/range_numbers.h"
#include "operators/quantization/ranges.h"

namespace bittrue {
namespace {

constexpr float kTwo31 = 2147483648.0f;

// What the outputs are, and the type of the data.
class RangeWeights : public Kernel {
 public:
  RangeWeights(const Step& step, Type type, int64_t scales) : data_level_(level(named(step, "data_type"))) {
    const Operand& w = step.input(0);
    require(step.outputs.size() == 3 && w.type == type && w.dense() && w.rank() >= 2 && w.elements > 0,
            "no native kernel for these operands");
    channels_ = w.shape[0], depth_ = w.elements / channels_;
    const auto holds = [&](const Operand& operand, Type wanted, int64_t count) {
      require(operand.type == wanted && operand.dense() && operand.elements == count,
              "no native kernel for these operands");
    };
    holds(step.output(0), Type::s8, w.elements);
    holds(step.output(1), Type::f32, channels_);
    holds(step.output(2), Type::f32, scales == 0 ? channels_ : scales);
    if (step.has_input(1)) holds(step.input(1), type, channels_);
    biased_ = step.has_input(1);
    for (size_t i : {2, 3}) require_end(step.input(i));
  }

 protected:
  float data_scale(const Run& run) const { return data_level_ / reach(run, 2); }

  float data_level_;
  int64_t channels_ = 0, depth_ = 0;
  bool biased_ = false;
};

// Of real numbers: s = 127.5 / max |w|, of a channel or of all of them; all of it may be halved.
class RealRangeWeights final : public RangeWeights {
 public:
  explicit RealRangeWeights(const Step& step)
      : RangeWeights(step, Type::f32, step.integer("per_channel", 0, 1) != 0 ? 0 : 1),
        several_(step.integer("per_channel") != 0) {
    const std::string& rule = step.rule("quantized_weights");
    require(rule == "binary32_half_levels" || rule == "binary32_half_levels_halved", "no native rule for this slot");
    unit_ = rule == "binary32_half_levels" ? 1.0f : 0.5f;
  }

  void run(const Run& run) const override {
    const auto* w = reinterpret_cast<const float*>(run.inputs[0]);
    const auto* bias = biased_ ? reinterpret_cast<const float*>(run.inputs[1]) : nullptr;
    auto* wide = reinterpret_cast<float*>(run.outputs[1]);
    auto* scales = reinterpret_cast<float*>(run.outputs[2]);
    const float data = data_scale(run);
    const Saturate saturate(Type::s8);
    float whole = 0;
    for (int64_t c = 0; c < (several_ ? 0 : channels_); ++c) whole = std::max(whole, largest(w + c * depth_));
    for (int64_t c = 0; c < channels_; ++c) {
      const float addend = bias == nullptr ? 0.0f : bias[c];
      float scale = 127.5f / (several_ ? largest(w + c * depth_) : whole);
      if (several_) {
        const float most = (addend > 0 ? kTwo31 : -kTwo31) / 2.0f / addend / data;
        if (addend != 0 && most < scale) scale = most;
      }
      for (int64_t k = c * depth_; k < (c + 1) * depth_; ++k) {
        run.outputs[0][k] = static_cast<uint8_t>(saturate(w[k] * scale * unit_) + 128);
      }
      wide[c] = static_cast<float>(saturate_s32(addend * (scale * data))) * unit_;
      if (several_ || c == 0) scales[c] = scale * unit_;
      if ((c & 63) == 63) run.check();
    }
  }

 private:
  // What is no number is the reference's to tell.
  float largest(const float* w) const {
    float found = 0;
    for (int64_t k = 0; k < depth_; ++k) {
      if (!std::isfinite(w[k])) throw Undefined();
      found = std::max(found, std::fabs(w[k]));
    }
    return found;
  }

  bool several_;
  float unit_;
};

// Of integers that have ranges of their own: the bias goes to units of the products.
class WholeRangeWeights final : public RangeWeights {
 public:
  explicit WholeRangeWeights(const Step& step) : RangeWeights(step, Type::s8, 1) {
    for (size_t i = 4; i < (biased_ ? 8u : 6u); ++i) require_end(step.input(i));
    if (!biased_) return;
    const std::string& rule = step.rule("quantized_bias");
    away_ = rule == "binary32_rescale_away";
    require(away_ || rule == "binary32_rescale_trunc", "no native rule for this slot");
  }

  void run(const Run& run) const override {
    auto* wide = reinterpret_cast<float*>(run.outputs[1]);
    float scale = 127.5f / reach(run, 4);
    std::memcpy(run.outputs[0], run.inputs[0], static_cast<size_t>(channels_ * depth_));
    if (!biased_) {
      std::fill_n(wide, channels_, 0.0f);
    } else {
      const float data = data_scale(run);
      float factor = away_ ? data * scale / (127.5f / reach(run, 6)) : data * scale * reach(run, 6) / 127.5f;
      if (away_) {
        const float own = 127.5f / reach(run, 6), most = 1073741824.0f / reach(run, 6) / own;
        if (factor > most) {
          factor = most;
          const float ratio = factor * own / data / scale;
          if (!std::isfinite(ratio)) throw Undefined();
          for (int64_t k = 0; k < channels_ * depth_; ++k) {
            run.outputs[0][k] = static_cast<uint8_t>(
                static_cast<int>(std::round(static_cast<float>(run.inputs[0][k] - 128) * ratio)) + 128);
          }
          scale = scale * ratio;
        }
      }
      if (!std::isfinite(factor)) throw Undefined();
      for (int64_t c = 0; c < channels_; ++c) {
        const float product = static_cast<float>(run.inputs[1][c] - 128) * factor;
        if (!(std::fabs(product) < kTwo31 / 2)) throw Undefined();
        wide[c] = away_ ? std::round(product) : std::trunc(product);
      }
    }
    std::memcpy(run.outputs[2], &scale, sizeof scale);
  }

 private:
  bool away_ = false;
};

std::unique_ptr<Kernel> make_range_weights(const Step& step, const CoreSet&) {
  if (step.rules.count("quantized_weights") != 0) return std::make_unique<RealRangeWeights>(step);
  return std::make_unique<WholeRangeWeights>(step);
}

BITTRUE_OPERATOR(range_weights, make_range_weights)

}  // namespace
}  // namespace bittrue

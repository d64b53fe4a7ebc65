// svdf: 8-bit integers, real numbers, and real numbers with 8-bit weights. The formulas stand in
// src/bittrue/operators/recurrent/svdf.py.
#include <algorithm>
#include <cstring>

#include "core/kernel.h"
#include "operators/core/finite.h"
#include "operators/core/registry.h"
#include "operators/core/rescaling.h"
#include "operators/layers/real_weights.h"
#include "operators/layers/weights.h"

namespace bittrue {
namespace {

constexpr size_t kFeatures = 1, kTime = 2, kFilterBias = 3, kState = 4;

struct Shape {
  int64_t batch = 0, features = 0, filters = 0, memory = 0, rank = 0, units = 0;

  explicit Shape(const Step& step) {
    const Operand &in = step.input(0), &weights = step.input(kFeatures), &time = step.input(kTime);
    require(in.rank() == 2 && weights.rank() == 2 && time.rank() == 2 && in.dense() && step.output().dense() &&
                step.input(kState).dense(),
            "operands must be dense matrices");
    batch = in.shape[0], features = in.shape[1], filters = weights.shape[0], memory = time.shape[1];
    rank = step.integer("rank", 1, std::max<int64_t>(filters, 1));
    units = filters / rank;
    require(weights.shape[1] == features && time.shape[0] == filters && filters % rank == 0 && memory >= 1 &&
                step.input(kState).elements == batch * memory * filters && step.output().elements == batch * units &&
                step.input(kState).type == (in.type == Type::s8 ? Type::s16 : Type::f32) &&
                step.output().type == in.type,
            "operands do not fit");
  }
};

// Every filter forgets its oldest value; what stands at its end is the caller's to fill.
template <class T>
void forget(T* state, const Shape& s) {
  for (int64_t i = 0; i < s.batch * s.filters; ++i) {
    T* filter = state + i * s.memory;
    std::memmove(filter, filter + 1, static_cast<size_t>(s.memory - 1) * sizeof(T));
  }
}

class IntegerFilter final : public Kernel {
 public:
  explicit IntegerFilter(const Step& step) : s_(step), inner_(rescaling(step, "inner_")), outer_(rescaling(step)) {
    require(step.rule("accumulate") == "s32_wrap", "no native rule");
    store_ = storing(step);
    const int64_t zero_point = step.integer("input_zero_point", -kLargestZeroPoint, kLargestZeroPoint);
    const Operand &weights = step.input(kFeatures), &time = step.input(kTime);
    require(weights.type == Type::s8 && time.type == Type::s16 && step.output().type == Type::s8, "other types");
    for (const int64_t w : weights.integers()) weights_.push_back(static_cast<int16_t>(w));
    for (const int64_t w : time.integers()) time_.push_back(static_cast<int16_t>(w));
    const auto* stored = static_cast<const int8_t*>(weights.constant);
    for (int64_t f = 0; f < s_.filters; ++f) {
      const uint32_t factor = zero_point_factor(s_.features, 0, sum_of(stored + f * s_.features, s_.features));
      first_.push_back(static_cast<uint32_t>(folded_bias(0, zero_point, factor)));
    }
    require(!step.has_input(kFilterBias) || step.input(kFilterBias).type == Type::s32, "the bias does not fit");
    for (const int64_t value : biases(step, kFilterBias, s_.units)) bias_.push_back(static_cast<uint32_t>(value));
  }

  void run(const Run& run) const override {
    auto* state = reinterpret_cast<int16_t*>(run.inputs[kState]);
    auto* x = reinterpret_cast<int16_t*>(run.scratch);
    forget(state, s_);
    for (int64_t b = 0; b < s_.batch; ++b) {
      for (int64_t i = 0; i < s_.features; ++i) {
        x[i] = static_cast<int16_t>(run.inputs[0][b * s_.features + i] - 128);
      }
      int16_t* memory = state + b * s_.filters * s_.memory;
      for (int64_t f = 0; f < s_.filters; ++f) {
        run.check();
        const uint32_t acc = first_[f] + product(weights_.data() + f * s_.features, x, s_.features);
        const int64_t fresh = inner_(static_cast<int32_t>(acc));
        memory[f * s_.memory + s_.memory - 1] =
            static_cast<int16_t>(std::min<int64_t>(std::max<int64_t>(fresh, INT16_MIN), INT16_MAX));
      }
      for (int64_t u = 0; u < s_.units; ++u) {
        uint32_t total = bias_[u];
        // Neighbouring filters lie one after the other, and so do their weights.
        const int64_t first = u * s_.rank * s_.memory;
        total += product(time_.data() + first, memory + first, s_.rank * s_.memory);
        run.outputs[0][b * s_.units + u] = static_cast<uint8_t>(store_(outer_(static_cast<int32_t>(total))) + 128);
      }
    }
  }
  int64_t scratch_bytes(int) const override { return s_.features * 2 + 64; }
  bool packs(size_t input) const override { return input != 0 && input != kState; }
  std::string note() const override { return "row by row"; }

 private:
  static uint32_t product(const int16_t* a, const int16_t* b, int64_t count) {
    uint32_t sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += static_cast<uint32_t>(int32_t{a[i]} * b[i]);
    return sum;
  }

  Shape s_;
  Rescaling inner_, outer_;
  Storing store_;
  std::vector<int16_t> weights_, time_;
  std::vector<uint32_t> first_, bias_;
};

class RealFilter final : public Kernel {
 public:
  explicit RealFilter(const Step& step)
      : s_(step), dot_(rules::find_dot(step.rule("dot"))), activation_(activation_of(step, true)) {
    require(dot_ != rules::DotRule::unknown && step.output().type == Type::f32, "no native dot rule");
    features_ = RealMatrix(step, step.input(kFeatures), "scale", s_.filters, s_.features);
    const int64_t count = s_.filters * s_.memory;
    time_ = features_.quantized() ? real_array(step, "time", count) : real_constant(step.input(kTime), count);
    if (features_.quantized()) asymmetric_ = step.integer("asymmetric", 0, 1) != 0;
    if (step.has_input(kFilterBias)) bias_ = real_constant(step.input(kFilterBias), s_.units);
  }

  void run(const Run& run) const override {
    const auto* x = reinterpret_cast<const float*>(run.inputs[0]);
    auto* state = reinterpret_cast<float*>(run.inputs[kState]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    auto* fresh = reinterpret_cast<float*>(run.scratch + Rows::bytes(s_.batch, s_.features));
    std::fill(fresh, fresh + s_.batch * s_.filters, 0.0f);
    const Rows rows(x, s_.batch, s_.features, run.scratch);
    if (features_.quantized()) {
      if (!all_zero(x, s_.batch * s_.features)) {
        if (!rows.quantize(asymmetric_)) throw Undefined();
        features_.add(rows, fresh);
      }
    } else {
      features_.add(rows, fresh);
    }
    // Signs and payloads of NaN are the reference's to tell where sums are fused; the state is as it was.
    const bool fused = dot_ == rules::DotRule::fused_lanes_4_in_pairs;
    if (fused && !(all_finite(fresh, s_.batch * s_.filters) && all_finite(state, s_.batch * s_.filters * s_.memory))) {
      throw Undefined();
    }
    forget(state, s_);
    float* each = fresh + s_.batch * s_.filters;
    for (int64_t b = 0; b < s_.batch; ++b) {
      for (int64_t f = 0; f < s_.filters; ++f) {
        run.check();
        float* memory = state + (b * s_.filters + f) * s_.memory;
        memory[s_.memory - 1] = fresh[b * s_.filters + f];
        each[f] = rules::dot(dot_, time_.data() + f * s_.memory, memory, s_.memory, 0.0f, s_.filters + 1);
      }
      for (int64_t u = 0; u < s_.units; ++u) {
        float total = rules::sum(dot_, each + u * s_.rank, s_.rank);
        if (!bias_.empty()) total += bias_[u];
        out[b * s_.units + u] = rules::activate(activation_, total);
      }
    }
  }
  int64_t scratch_bytes(int) const override {
    return Rows::bytes(s_.batch, s_.features) + (s_.batch + 1) * s_.filters * 4 + 64;
  }
  bool packs(size_t input) const override { return input != 0 && input != kState; }
  std::string note() const override { return features_.quantized() ? "8-bit rows" : "row by row"; }

 private:
  Shape s_;
  rules::DotRule dot_;
  rules::Activation activation_;
  bool asymmetric_ = false;
  RealMatrix features_;
  std::vector<float> time_, bias_;
};

std::unique_ptr<Kernel> make_svdf(const Step& step, const CoreSet&) {
  if (step.input(0).type == Type::s8) return std::make_unique<IntegerFilter>(step);
  return std::make_unique<RealFilter>(step);
}

BITTRUE_OPERATOR(svdf, make_svdf)

}  // namespace
}  // namespace bittrue

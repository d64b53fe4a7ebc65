// Long short-term memory with 8-bit input and output, 16-bit cell and 32-bit bias. The formulas stand in
// src/bittrue/operators/recurrent/lstm_integer.py. A normalized gate that leaves 32 bits is the reference's to
// report, with the states as they were.
#include <algorithm>
#include <atomic>
#include <string>

#include "core/kernel.h"
#include "operators/core/rescaling.h"
#include "operators/recurrent/lstm.h"
#include "rules/gate.h"
#include "rules/layer_norm.h"

namespace bittrue {
namespace {

constexpr const char* kNames[kGates] = {"input", "forget", "cell", "output"};
// Sums of this many products of two 8-bit numbers stay inside 32 bits.
constexpr int64_t kLongestRow = 100000;

int64_t clamp_s16(int64_t x) { return std::min<int64_t>(std::max<int64_t>(x, INT16_MIN), INT16_MAX); }

// A matrix, its prepared bias and its multiplier: rescale(W x + bias), the accumulator wraps to 32 bits.
struct IntegerMatrix {
  std::vector<int16_t> weights;  // [rows][columns]
  std::vector<uint32_t> bias;
  Rescaling rescale;
  int64_t columns = 0;

  IntegerMatrix() = default;
  IntegerMatrix(const Step& step, size_t position, const std::string& name, int64_t rows, int64_t columns_)
      : columns(columns_) {
    const Operand& operand = step.input(position);
    require(operand.type == Type::s8 && operand.rank() == 2 && operand.shape[0] == rows &&
                operand.shape[1] == columns && columns <= kLongestRow,
            "a weight matrix has another shape");
    for (const int64_t weight : operand.integers()) weights.push_back(static_cast<int16_t>(weight));
    const Array& array = step.array(name + "_bias");
    require(array.count == rows, "a bias has another length");
    for (int64_t i = 0; i < rows; ++i) bias.push_back(static_cast<uint32_t>(array.integer(i)));
    rescale = rescaling(step, name + "_");
  }

  int64_t row(int64_t index, const int16_t* x) const {
    const int16_t* w = weights.data() + index * columns;
    int32_t sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += static_cast<int32_t>(w[i]) * x[i];
    return rescale(static_cast<int32_t>(static_cast<uint32_t>(sum) + bias[index]));
  }
};

struct IntegerGate {
  bool present = false;
  IntegerMatrix in, back;
  std::vector<int16_t> peephole;
  Rescaling peephole_rescale;
  // Layer normalization: the bias is added there.
  std::vector<int16_t> norm_weights;
  std::vector<int32_t> norm_bias;
  Rescaling norm_rescale;
  int64_t guard = 1;

  // Every cell before its activation function. False when a normalized one has no defined value.
  bool open(const int16_t* x, const int16_t* h, const int16_t* c, int64_t cells, int16_t* values) const {
    for (int64_t n = 0; n < cells; ++n) {
      int64_t value = clamp_s16(in.row(n, x));
      value = clamp_s16(arithmetic::wrap_s32(back.row(n, h) + value));
      if (!peephole.empty()) {
        value = clamp_s16(arithmetic::wrap_s32(peephole_rescale(int64_t{peephole[n]} * c[n]) + value));
      }
      values[n] = static_cast<int16_t>(value);
    }
    bool defined = true;
    if (!norm_weights.empty()) {
      const rules::LayerNorm normalize(values, cells, guard);
      for (int64_t n = 0; n < cells; ++n) {
        const int64_t normal = normalize(values[n], norm_weights[n], norm_bias[n], &defined);
        values[n] = static_cast<int16_t>(clamp_s16(norm_rescale(normal)));
      }
    }
    return defined;
  }
};

class Lstm final : public Kernel {
 public:
  explicit Lstm(const Step& step)
      : hidden_(rescaling(step, "hidden_")), logistic_(rules::logistic_table()), tanh_gate_(rules::tanh_table(3)) {
    require(step.rule("gate") == "s16_polynomial_newton" && step.rule("accumulate") == "s32_wrap", "no native rule");
    // Both store rules clamp alike where the zero point is 0.
    store_then_clamp_ = step.rule("store") == "zero_point_then_clamp";
    require(store_then_clamp_ || step.rule("store") == "clamp_then_zero_point", "no native store rule");
    read_shapes(step);
    for (int gate = 0; gate < kGates; ++gate) read_gate(step, gate);
    require(gates_[kForgetGate].present && gates_[kCellGate].present && gates_[kOutputGate].present,
            "a gate is missing");
    exponent_ = static_cast<int>(step.integer("cell_exponent", -15, rules::kMostTanhBits - 15));
    tanh_cell_ = &rules::tanh_table(15 + exponent_);
    cell_clip_ = step.integer("cell_clip", 0, 32767);
    hidden_zero_point_ = step.integer("hidden_zero_point", -kLargestZeroPoint, kLargestZeroPoint);
    output_zero_point_ = step.integer("output_zero_point", -kLargestZeroPoint, kLargestZeroPoint);
    projected_ = step.has_array("projection_multiplier") || step.has_array("projection_factor");
    if (projected_) {
      projection_ = IntegerMatrix(step, kProjection, "projection", outputs_, cells_);
      projection_clip_ = step.integer("projection_clip", 0, 127);
    } else {
      require(outputs_ == cells_, "cells and outputs must be equally many without a projection");
    }
    per_worker_ = ((features_ + outputs_ + (2 + kGates) * cells_) * 2 + 63) / 64 * 64;
    states_ = (batch_ * (outputs_ + cells_) * 2 + 63) / 64 * 64;
  }

  void run(const Run& run) const override {
    std::atomic<bool> defined{true};
    const auto one = [&](int64_t b, int worker) {
      uint8_t* scratch = run.scratch + states_ + worker * per_worker_;
      if (!sequence(run, b, worker, scratch)) defined.store(false, std::memory_order_relaxed);
    };
    run.pool.parallel(batch_, batch_ * time_ * cells_ * (features_ + outputs_) < 20000 ? 1 : run.pool.threads(), one);
    if (!defined.load(std::memory_order_relaxed)) throw Undefined();
    const auto* fresh = reinterpret_cast<const int16_t*>(run.scratch);
    auto* cells = reinterpret_cast<int16_t*>(run.inputs[kCellState]);
    for (int64_t i = 0; i < batch_ * outputs_; ++i) run.inputs[kOutputState][i] = static_cast<uint8_t>(fresh[i] + 128);
    std::copy(fresh + batch_ * outputs_, fresh + batch_ * (outputs_ + cells_), cells);
  }
  int64_t scratch_bytes(int threads) const override { return states_ + threads * per_worker_; }
  // Everything but the data and the states.
  bool packs(size_t input) const override { return input != 0 && input != kOutputState && input != kCellState; }
  std::string note() const override { return "row by row"; }

 private:
  void read_shapes(const Step& step) {
    const LstmShape shape(step);
    require(step.input(0).type == Type::s8 && step.input(kCellState).type == Type::s16, "other types");
    time_major_ = shape.time_major;
    batch_ = shape.batch, time_ = shape.time, features_ = shape.features;
    outputs_ = shape.outputs, cells_ = shape.cells;
  }

  void read_gate(const Step& step, int index) {
    IntegerGate& gate = gates_[index];
    const std::string name = kNames[index];
    gate.present = step.has_array(name + "_in_bias");
    if (!gate.present) return;
    gate.in = IntegerMatrix(step, kInputWeights + index, name + "_in", cells_, features_);
    gate.back = IntegerMatrix(step, kRecurrentWeights + index, name + "_back", cells_, outputs_);
    const bool normalized = step.has_array(name + "_norm_multiplier") || step.has_array(name + "_norm_factor");
    if (normalized) read_norm(step, index, &gate);
    if (index == kCellGate || !(step.has_array(name + "_peep_multiplier") || step.has_array(name + "_peep_factor")))
      return;
    const Operand& peephole = step.input(kPeepholes[index]);
    require(peephole.type == Type::s16 && peephole.elements == cells_, "peephole weights do not fit");
    for (const int64_t weight : peephole.integers()) gate.peephole.push_back(static_cast<int16_t>(weight));
    gate.peephole_rescale = rescaling(step, name + "_peep_");
  }

  void read_norm(const Step& step, int index, IntegerGate* gate) const {
    require(step.rule("layer_norm") == "s32_newton_inverse_root" && cells_ >= 1, "no native rule");
    const Operand &weights = step.input(kNorms + index), &bias = step.input(kBiases + index);
    require(
        weights.type == Type::s16 && weights.elements == cells_ && bias.type == Type::s32 && bias.elements == cells_,
        "the coefficients of a normalization do not fit");
    for (const int64_t weight : weights.integers()) gate->norm_weights.push_back(static_cast<int16_t>(weight));
    for (const int64_t value : bias.integers()) gate->norm_bias.push_back(static_cast<int32_t>(value));
    const std::string name = kNames[index];
    gate->norm_rescale = rescaling(step, name + "_norm_");
    gate->guard = step.integer((name + "_guard").c_str(), 1, INT32_MAX);
  }

  int64_t store(int64_t rescaled, int64_t zero_point) const {
    return store_then_clamp_ ? rules::zero_point_then_clamp(rescaled, zero_point, INT8_MIN, INT8_MAX)
                             : rules::clamp_then_zero_point(rescaled, zero_point, INT8_MIN, INT8_MAX);
  }

  // All time steps of one batch; the states after them go to the beginning of the scratch memory.
  bool sequence(const Run& run, int64_t b, int worker, uint8_t* scratch) const {
    auto* x = reinterpret_cast<int16_t*>(scratch);
    int16_t *h = x + features_, *c = h + outputs_, *hidden = c + cells_, *gates = hidden + cells_;
    const uint8_t* state = run.inputs[kOutputState] + b * outputs_;
    const auto* cells = reinterpret_cast<const int16_t*>(run.inputs[kCellState]) + b * cells_;
    for (int64_t i = 0; i < outputs_; ++i) h[i] = static_cast<int16_t>(state[i] - 128);
    std::copy(cells, cells + cells_, c);
    for (int64_t t = 0; t < time_; ++t) {
      run.check(worker);
      const int64_t place = time_major_ ? t * batch_ + b : b * time_ + t;
      const uint8_t* source = run.inputs[0] + place * features_;
      for (int64_t i = 0; i < features_; ++i) x[i] = static_cast<int16_t>(source[i] - 128);
      if (!advance(x, h, c, gates, hidden)) return false;
      if (projected_) {
        for (int64_t i = 0; i < outputs_; ++i) h[i] = static_cast<int16_t>(project(i, hidden));
      } else {
        std::copy(hidden, hidden + cells_, h);
      }
      uint8_t* target = run.outputs[0] + place * outputs_;
      for (int64_t i = 0; i < outputs_; ++i) target[i] = static_cast<uint8_t>(h[i] + 128);
    }
    auto* states = reinterpret_cast<int16_t*>(run.scratch);
    std::copy(h, h + outputs_, states + b * outputs_);
    std::copy(c, c + cells_, states + batch_ * outputs_ + b * cells_);
    return true;
  }

  // One step of time: new cells and hidden values. False when they have no defined value.
  bool advance(const int16_t* x, const int16_t* h, int16_t* c, int16_t* gates, int16_t* hidden) const {
    int16_t *take = gates, *forget = gates + cells_, *update = gates + 2 * cells_, *output = gates + 3 * cells_;
    const bool with_input = gates_[kInputGate].present;
    if (!gates_[kForgetGate].open(x, h, c, cells_, forget) || !gates_[kCellGate].open(x, h, c, cells_, update) ||
        (with_input && !gates_[kInputGate].open(x, h, c, cells_, take))) {
      return false;
    }
    for (int64_t n = 0; n < cells_; ++n) {
      const int64_t f = logistic_.at(forget[n]), i = with_input ? logistic_.at(take[n]) : 32767 - f;
      const int64_t added = arithmetic::divide_by_power_of_two_away(i * tanh_gate_.at(update[n]), 30 + exponent_);
      int64_t value = arithmetic::saturating_add_s16(arithmetic::divide_by_power_of_two_away(f * c[n], 15), added);
      if (cell_clip_ > 0) value = std::min(std::max(value, -cell_clip_), cell_clip_);
      c[n] = static_cast<int16_t>(value);
    }
    // Its peephole sees the new cells.
    if (!gates_[kOutputGate].open(x, h, c, cells_, output)) return false;
    for (int64_t n = 0; n < cells_; ++n) {
      hidden[n] =
          static_cast<int16_t>(store(hidden_(logistic_.at(output[n]) * tanh_cell_->at(c[n])), hidden_zero_point_));
    }
    return true;
  }

  int64_t project(int64_t i, const int16_t* hidden) const {
    const int64_t value = store(projection_.row(i, hidden), output_zero_point_);
    return projection_clip_ > 0 ? std::min(std::max(value, -projection_clip_), projection_clip_) : value;
  }

  IntegerGate gates_[kGates];
  IntegerMatrix projection_;
  Rescaling hidden_;
  const rules::GateTable &logistic_, &tanh_gate_;
  const rules::GateTable* tanh_cell_ = nullptr;
  bool time_major_ = false, projected_ = false, store_then_clamp_ = true;
  int exponent_ = 0;
  int64_t batch_ = 0, time_ = 0, features_ = 0, cells_ = 0, outputs_ = 0;
  int64_t cell_clip_ = 0, projection_clip_ = 0, hidden_zero_point_ = 0, output_zero_point_ = 0;
  int64_t per_worker_ = 0, states_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_integer_lstm(const Step& step) { return std::make_unique<Lstm>(step); }

}  // namespace bittrue

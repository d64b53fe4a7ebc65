// unidirectional_sequence_lstm: 8-bit input and output, 16-bit cell, 32-bit bias. The formulas stand in
// src/bittrue/operators/unidirectional_sequence_lstm.py. Layer normalization is left to the reference, which can say
// when its sum has no defined value.
#include <algorithm>
#include <cstring>
#include <string>

#include "core/kernel.h"
#include "operators/rescaling.h"
#include "rules/gate.h"

namespace bittrue {
namespace {

constexpr int kGates = 4;
constexpr const char* kNames[kGates] = {"input", "forget", "cell", "output"};
constexpr int kInput = 0, kForget = 1, kCell = 2, kOutput = 3;
// Positions of the first of four tensors, and of the others.
constexpr size_t kInputWeights = 1, kRecurrentWeights = 5, kProjection = 16, kOutputState = 18, kCellState = 19, kNorms = 20;
// There is no peephole of the cell gate.
constexpr size_t kPeepholes[kGates] = {9, 10, 0, 11};
// Sums of this many products of two 8-bit numbers stay inside 32 bits.
constexpr int64_t kLongestRow = 100000;

int64_t clamp_s16(int64_t x) { return std::min<int64_t>(std::max<int64_t>(x, INT16_MIN), INT16_MAX); }

// A matrix, its prepared bias and its multiplier: rescale(W x + bias), the accumulator wraps to 32 bits.
struct Matrix {
  std::vector<int16_t> weights;  // [rows][columns]
  std::vector<uint32_t> bias;
  Rescaling rescale;
  int64_t columns = 0;

  Matrix() = default;
  Matrix(const Step& step, size_t position, const std::string& name, int64_t rows, int64_t columns_) : columns(columns_) {
    const Operand& operand = step.input(position);
    require(operand.type == Type::s8 && operand.rank() == 2 && operand.shape[0] == rows && operand.shape[1] == columns &&
                columns <= kLongestRow,
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

struct Gate {
  bool present = false;
  Matrix in, back;
  std::vector<int16_t> peephole;
  Rescaling peephole_rescale;

  // Before its activation function.
  int64_t open(int64_t cell, const int16_t* x, const int16_t* h, int64_t c) const {
    int64_t value = clamp_s16(in.row(cell, x));
    value = clamp_s16(arithmetic::wrap_s32(back.row(cell, h) + value));
    if (!peephole.empty()) value = clamp_s16(arithmetic::wrap_s32(peephole_rescale(peephole[cell] * c) + value));
    return value;
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
    for (int gate = 0; gate < kGates; ++gate) {
      require(!step.has_input(kNorms + gate), "layer normalization");
    }
    read_shapes(step);
    for (int gate = 0; gate < kGates; ++gate) read_gate(step, gate);
    require(gates_[kForget].present && gates_[kCell].present && gates_[kOutput].present, "a gate is missing");
    exponent_ = static_cast<int>(step.integer("cell_exponent", -15, rules::kMostTanhBits - 15));
    tanh_cell_ = &rules::tanh_table(15 + exponent_);
    cell_clip_ = step.integer("cell_clip", 0, 32767);
    hidden_zero_point_ = step.integer("hidden_zero_point", -kLargestZeroPoint, kLargestZeroPoint);
    output_zero_point_ = step.integer("output_zero_point", -kLargestZeroPoint, kLargestZeroPoint);
    projected_ = step.has_array("projection_multiplier") || step.has_array("projection_factor");
    if (projected_) {
      projection_ = Matrix(step, kProjection, "projection", outputs_, cells_);
      projection_clip_ = step.integer("projection_clip", 0, 127);
    } else {
      require(outputs_ == cells_, "cells and outputs must be equally many without a projection");
    }
    per_worker_ = ((features_ + outputs_ + cells_) * 2 + 63) / 64 * 64;
  }

  void run(const Run& run) const override {
    if (batch_ * time_ * cells_ * (features_ + outputs_) < 20000) {
      for (int64_t b = 0; b < batch_; ++b) sequence(run, b, 0);
    } else {
      run.pool.parallel(batch_, [&](int64_t b, int worker) { sequence(run, b, worker); });
    }
  }
  int64_t scratch_bytes(int threads) const override { return threads * per_worker_; }
  // Everything but the data and the states.
  bool packs(size_t input) const override { return input != 0 && input != kOutputState && input != kCellState; }
  std::string note() const override { return "row by row"; }

 private:
  void read_shapes(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == Type::s8 && out.type == Type::s8 && in.rank() == 3 && out.rank() == 3 && in.dense() && out.dense(),
            "input and output must be dense 8-bit sequences");
    time_major_ = step.integer("time_major", 0, 1) != 0;
    batch_ = in.shape[time_major_ ? 1 : 0];
    time_ = in.shape[time_major_ ? 0 : 1];
    features_ = in.shape[2];
    outputs_ = out.shape[2];
    require(out.shape[0] == in.shape[0] && out.shape[1] == in.shape[1], "the output has another shape");
    const Operand& weights = step.input(kInputWeights + kOutput);
    require(weights.rank() == 2, "weights must be a matrix");
    cells_ = weights.shape[0];
    const Operand &state = step.input(kOutputState), &cell = step.input(kCellState);
    require(state.type == Type::s8 && state.elements == batch_ * outputs_ && state.dense() &&
                cell.type == Type::s16 && cell.elements == batch_ * cells_ && cell.dense(),
            "a state does not fit");
  }

  void read_gate(const Step& step, int index) {
    Gate& gate = gates_[index];
    const std::string name = kNames[index];
    gate.present = step.has_array(name + "_in_bias");
    if (!gate.present) return;
    gate.in = Matrix(step, kInputWeights + index, name + "_in", cells_, features_);
    gate.back = Matrix(step, kRecurrentWeights + index, name + "_back", cells_, outputs_);
    require(!step.has_array(name + "_norm_multiplier") && !step.has_array(name + "_norm_factor"), "layer normalization");
    if (index == kCell || !(step.has_array(name + "_peep_multiplier") || step.has_array(name + "_peep_factor"))) return;
    const Operand& peephole = step.input(kPeepholes[index]);
    require(peephole.type == Type::s16 && peephole.elements == cells_, "peephole weights do not fit");
    for (const int64_t weight : peephole.integers()) gate.peephole.push_back(static_cast<int16_t>(weight));
    gate.peephole_rescale = rescaling(step, name + "_peep_");
  }

  int64_t store(int64_t rescaled, int64_t zero_point) const {
    return store_then_clamp_ ? rules::zero_point_then_clamp(rescaled, zero_point, INT8_MIN, INT8_MAX)
                             : rules::clamp_then_zero_point(rescaled, zero_point, INT8_MIN, INT8_MAX);
  }

  // All time steps of one batch.
  void sequence(const Run& run, int64_t b, int worker) const {
    auto* x = reinterpret_cast<int16_t*>(run.scratch + worker * per_worker_);
    int16_t *h = x + features_, *fresh = h + outputs_;
    uint8_t* state = run.inputs[kOutputState] + b * outputs_;
    auto* cells = reinterpret_cast<int16_t*>(run.inputs[kCellState]) + b * cells_;
    for (int64_t i = 0; i < outputs_; ++i) h[i] = static_cast<int16_t>(state[i] - 128);
    for (int64_t t = 0; t < time_; ++t) {
      const int64_t place = time_major_ ? t * batch_ + b : b * time_ + t;
      const uint8_t* source = run.inputs[0] + place * features_;
      for (int64_t i = 0; i < features_; ++i) x[i] = static_cast<int16_t>(source[i] - 128);
      for (int64_t n = 0; n < cells_; ++n) fresh[n] = static_cast<int16_t>(advance(n, x, h, cells + n));
      if (projected_) {
        for (int64_t i = 0; i < outputs_; ++i) h[i] = static_cast<int16_t>(project(i, fresh));
      } else {
        std::copy(fresh, fresh + cells_, h);
      }
      uint8_t* target = run.outputs[0] + place * outputs_;
      for (int64_t i = 0; i < outputs_; ++i) target[i] = static_cast<uint8_t>(h[i] + 128);
    }
    for (int64_t i = 0; i < outputs_; ++i) state[i] = static_cast<uint8_t>(h[i] + 128);
  }

  // One cell, one step of time: the cell's new content, and its hidden value.
  int64_t advance(int64_t n, const int16_t* x, const int16_t* h, int16_t* cell) const {
    const int64_t before = *cell;
    const int64_t forget = logistic_.at(gates_[kForget].open(n, x, h, before));
    const int64_t take = gates_[kInput].present ? logistic_.at(gates_[kInput].open(n, x, h, before)) : 32767 - forget;
    const int64_t update = tanh_gate_.at(gates_[kCell].open(n, x, h, before));
    int64_t c = arithmetic::saturating_add_s16(arithmetic::divide_by_power_of_two_away(forget * before, 15),
                                               arithmetic::divide_by_power_of_two_away(take * update, 30 + exponent_));
    if (cell_clip_ > 0) c = std::min(std::max(c, -cell_clip_), cell_clip_);
    *cell = static_cast<int16_t>(c);
    const int64_t output = logistic_.at(gates_[kOutput].open(n, x, h, c));
    return store(hidden_(output * tanh_cell_->at(c)), hidden_zero_point_);
  }

  int64_t project(int64_t i, const int16_t* hidden) const {
    const int64_t value = store(projection_.row(i, hidden), output_zero_point_);
    return projection_clip_ > 0 ? std::min(std::max(value, -projection_clip_), projection_clip_) : value;
  }

  Gate gates_[kGates];
  Matrix projection_;
  Rescaling hidden_;
  const rules::GateTable &logistic_, &tanh_gate_;
  const rules::GateTable* tanh_cell_ = nullptr;
  bool time_major_ = false, projected_ = false, store_then_clamp_ = true;
  int exponent_ = 0;
  int64_t batch_ = 0, time_ = 0, features_ = 0, cells_ = 0, outputs_ = 0;
  int64_t cell_clip_ = 0, projection_clip_ = 0, hidden_zero_point_ = 0, output_zero_point_ = 0, per_worker_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_unidirectional_sequence_lstm(const Step& step, const CoreSet&) {
  return std::make_unique<Lstm>(step);
}

}  // namespace bittrue

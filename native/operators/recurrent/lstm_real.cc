// Long short-term memory on real numbers, with real or with 8-bit weights. The formulas stand in
// src/bittrue/operators/recurrent/lstm_real.py. Numbers whose conversion to 8 bits is undefined are the reference's to report, with
// the states as they were.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "operators/layers/real_weights.h"
#include "operators/recurrent/lstm.h"

namespace bittrue {
namespace {

constexpr const char* kPeepholeArrays[kGates] = {"peephole_9", "peephole_10", "", "peephole_11"};

float within(float x) {
  constexpr float largest = std::numeric_limits<float>::max();
  return x > largest ? largest : (x < -largest ? -largest : x);
}

// [-limit, limit] unless limit is 0; NaN becomes limit.
float clipped(float x, float limit) {
  if (!(limit > 0)) return x;
  const float below = x < limit ? x : limit;
  return below < -limit ? -limit : below;
}

struct RealGate {
  bool present = false;
  RealMatrix in, back;
  std::vector<float> diagonal, peephole, bias, norm;
};

// A sum from the first element to the last; or by binary32_fused_16_lanes: of whole sixteens in lanes, of which the first four
// get those 12 and 4 behind, and those 8 behind. `add(total, x)` gives a total with one more.
template <class Add>
float add_up(const float* x, size_t count, bool in_lanes, const Add& add) {
  const size_t whole = in_lanes ? count / 16 * 16 : 0;
  float total = 0;
  if (in_lanes) {
    float lanes[16] = {}, four[4];
    for (size_t i = 0; i < whole; ++i) lanes[i % 16] = add(lanes[i % 16], x[i]);
    for (int l = 0; l < 4; ++l) four[l] = (lanes[12 + l] + lanes[4 + l]) + (lanes[8 + l] + lanes[l]);
    total = rules::in_pairs(four);
  }
  for (size_t i = whole; i < count; ++i) total = add(total, x[i]);
  return total;
}

// (x - mean) / sqrt(variance + 1e-8) * weights + bias of one row; squares are joined with their sums in lanes.
void normalize(float* x, const RealGate& gate, bool in_lanes) {
  const size_t size = gate.norm.size();
  const auto count = static_cast<float>(size);
  const float mean = add_up(x, size, in_lanes, [](float total, float value) { return total + value; }) / count;
  for (size_t i = 0; i < size; ++i) x[i] = x[i] - mean;
  const float squares = add_up(x, size, in_lanes, [in_lanes](float total, float value) {
    return in_lanes ? std::fma(value, value, total) : total + value * value;
  });
  const float inverse = 1.0f / std::sqrt(squares / count + 1e-8f);
  for (size_t i = 0; i < gate.norm.size(); ++i) x[i] = (x[i] * inverse) * gate.norm[i] + gate.bias[i];
}

class RealLstm final : public Kernel {
 public:
  explicit RealLstm(const Step& step, bool backward = false)
      : s_(step), activation_(activation_of(step, false)), backward_(backward) {
    require(step.input(0).type == Type::f32 && step.input(kCellState).type == Type::f32, "other types");
    joined_ = step.rule("multiply_add") == "rounded_once";
    in_lanes_ = step.rule("gate_normalization") == "binary32_fused_16_lanes";
    fused_ = step.rule("activation") == "binary32_fused_rational_lanes_4";
    require((joined_ || step.rule("multiply_add") == "rounded_twice") &&
                (in_lanes_ || step.rule("gate_normalization") == "binary32_in_order") &&
                rules::find_dot(step.rule("dot")) != rules::DotRule::unknown,
            "no native rule for these slots");
    cell_clip_ = static_cast<float>(step.real("cell_clip"));
    projection_clip_ = static_cast<float>(step.real("projection_clip"));
    quantized_ = step.input(kInputWeights + kOutputGate).type != Type::f32;
    if (quantized_) asymmetric_ = step.integer("asymmetric", 0, 1) != 0;
    for (int gate = 0; gate < kGates; ++gate) read_gate(step, gate);
    projected_ = step.has_input(kProjection);
    if (projected_) {
      projection_ = matrix(step, kProjection, s_.outputs, s_.cells);
      if (step.has_input(kProjectionBias)) {
        projection_bias_ = real_constant(step.input(kProjectionBias), s_.outputs);
      }
    } else {
      require(s_.outputs == s_.cells, "cells and outputs must be equally many without a projection");
    }
    // All batches at once in time-major layers, else one after the other.
    group_ = s_.time_major ? s_.batch : 1;
    widest_ = std::max(s_.features, std::max(s_.cells, s_.outputs));
  }

  void run(const Run& run) const override {
    if (!compute(run, s_.outputs)) throw Undefined();
    keep_states(run);
  }
  // The outputs, whose rows are `apart` numbers; false where a number has no defined value.
  bool compute(const Run& run, int64_t apart) const {
    const auto* source = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    Memory memory(*this, run.scratch);
    std::copy_n(reinterpret_cast<const float*>(run.inputs[kOutputState]), s_.batch * s_.outputs, memory.h);
    std::copy_n(reinterpret_cast<const float*>(run.inputs[kCellState]), s_.batch * s_.cells, memory.c);
    for (int64_t b = 0; b < s_.batch; b += group_) {
      for (int64_t step = 0; step < s_.time; ++step) {
        run.check();
        const int64_t place = s_.place(backward_ ? s_.time - 1 - step : step, b);
        float* h = memory.h + b * s_.outputs;
        if (!advance(source + place * s_.features, h, memory.c + b * s_.cells, b, memory)) return false;
        for (int64_t row = 0; row < group_; ++row) {
          const float* from = h + row * s_.outputs;
          std::copy_n(from, s_.outputs, out + (place + row) * apart);
          // Signs and payloads of NaN are the reference's to tell.
          for (int64_t i = 0; i < s_.outputs && fused_; ++i) {
            if (from[i] != from[i]) return false;
          }
        }
      }
    }
    return true;
  }
  void keep_states(const Run& run) const {
    const Memory memory(*this, run.scratch);
    std::copy_n(memory.h, s_.batch * s_.outputs, reinterpret_cast<float*>(run.inputs[kOutputState]));
    std::copy_n(memory.c, s_.batch * s_.cells, reinterpret_cast<float*>(run.inputs[kCellState]));
  }
  int64_t outputs() const { return s_.outputs; }
  int64_t scratch_bytes(int) const override { return Memory(*this, nullptr).bytes; }
  bool packs(size_t input) const override { return input != 0 && input != kOutputState && input != kCellState; }
  std::string note() const override { return quantized_ ? "8-bit rows" : "row by row"; }

 private:
  // The run's temporaries, one after the other; without memory, their size alone.
  struct Memory {
    Memory(const RealLstm& layer, uint8_t* memory) {
      const LstmShape& s = layer.s_;
      const auto take = [&](int64_t size) {
        uint8_t* start = memory == nullptr ? nullptr : memory + bytes;
        bytes += (size + 63) / 64 * 64;
        return start;
      };
      const auto floats = [&](int64_t count) { return reinterpret_cast<float*>(take(count * 4)); };
      h = floats(s.batch * s.outputs);
      c = floats(s.batch * s.cells);
      for (float*& gate : gates) gate = floats(layer.group_ * s.cells);
      hidden = floats(layer.group_ * s.cells);
      x = take(Rows::bytes(layer.group_, layer.widest_));
      back = take(Rows::bytes(layer.group_, layer.widest_));
    }
    float *h, *c, *gates[kGates], *hidden;
    uint8_t *x, *back;
    int64_t bytes = 0;
  };

  static RealMatrix matrix(const Step& step, size_t position, int64_t rows, int64_t columns) {
    return RealMatrix(step, step.input(position), "scale_" + std::to_string(position), rows, columns);
  }

  void read_gate(const Step& step, int index) {
    RealGate& gate = gates_[index];
    gate.present = index != kInputGate || step.has_input(kInputWeights);
    if (!gate.present) return;
    gate.in = matrix(step, kInputWeights + index, s_.cells, s_.features);
    require(gate.in.quantized() == quantized_, "weights of several types");
    const Operand& recurrent = step.input(kRecurrentWeights + index);
    if (recurrent.rank() == 1) {
      require(s_.cells == s_.outputs, "a diagonal does not fit");
      gate.diagonal = real_constant(recurrent, s_.cells);
    } else {
      gate.back = matrix(step, kRecurrentWeights + index, s_.cells, s_.outputs);
      require(gate.back.quantized() == quantized_, "weights of several types");
      with_matrix_ = true;
    }
    gate.bias = real_constant(step.input(kBiases + index), s_.cells);
    if (step.has_input(kNorms + index)) gate.norm = real_constant(step.input(kNorms + index), s_.cells);
    if (index == kCellGate || !step.has_input(kPeepholes[index])) return;
    gate.peephole = quantized_ ? real_array(step, kPeepholeArrays[index], s_.cells)
                               : real_constant(step.input(kPeepholes[index]), s_.cells);
  }

  // Rows that meet matrices: whether they are all zeros (then they are skipped), and false when they are undefined.
  bool ready(const Rows& rows, bool* zero, bool skip) const {
    *zero = skip && all_zero(rows.x, rows.count * rows.n);
    return *zero || !quantized_ || rows.quantize(asymmetric_);
  }

  // Every cell of a gate before its activation function.
  void open(const RealGate& gate, const Rows* x, const Rows* back, const float* h, const float* c,
            float* values) const {
    for (int64_t b = 0; b < group_; ++b) {
      for (int64_t n = 0; n < s_.cells; ++n) values[b * s_.cells + n] = gate.norm.empty() ? gate.bias[n] : 0.0f;
    }
    const int64_t count = group_ * s_.cells;
    if (x != nullptr) multiply(gate.in, *x, values, count);
    if (back != nullptr) {
      if (gate.diagonal.empty()) {
        multiply(gate.back, *back, values, count);
      } else {
        for (int64_t i = 0; i < count; ++i) values[i] = add(gate.diagonal[i % s_.cells], h[i], values[i]);
      }
    }
    if (!gate.peephole.empty()) {
      for (int64_t i = 0; i < count; ++i) values[i] = add(gate.peephole[i % s_.cells], c[i], values[i]);
    }
    if (!gate.norm.empty()) {
      for (int64_t b = 0; b < group_; ++b) normalize(values + b * s_.cells, gate, in_lanes_);
    }
  }

  float add(float a, float b, float total) const { return joined_ ? std::fma(a, b, total) : total + a * b; }
  void logistic(float* values, int64_t count, int64_t begin) const {
    (fused_ ? rules::logistic_lanes_4<true> : rules::logistic_lanes_4<false>)(values, count, begin);
  }

  void multiply(const RealMatrix& matrix, const Rows& rows, float* values, int64_t count) const {
    matrix.add(rows, values);
    if (quantized_) return;
    for (int64_t i = 0; i < count; ++i) values[i] = within(values[i]);
  }

  // One time step of the group that begins with batch `first`. False when it has no defined value.
  bool advance(const float* source, float* h, float* c, int64_t first, const Memory& memory) const {
    const Rows x(source, group_, s_.features, memory.x), back(h, group_, s_.outputs, memory.back);
    bool no_input = false, no_state = false;
    if (!ready(x, &no_input, true)) return false;
    if (with_matrix_ ? !ready(back, &no_state, quantized_) : false) return false;
    if (!with_matrix_ && quantized_) no_state = all_zero(h, group_ * s_.outputs);
    const Rows *with_x = no_input ? nullptr : &x, *with_back = no_state ? nullptr : &back;
    const bool with_input = gates_[kInputGate].present;
    const int64_t count = group_ * s_.cells;
    float *take = memory.gates[kInputGate], *forget = memory.gates[kForgetGate];
    float *update = memory.gates[kCellGate], *output = memory.gates[kOutputGate];
    for (const int gate : {kInputGate, kForgetGate, kCellGate}) {
      if (gates_[gate].present) open(gates_[gate], with_x, with_back, h, c, memory.gates[gate]);
    }
    if (with_input) logistic(take, count, start(kInputGate, first));
    logistic(forget, count, start(kForgetGate, first));
    for (int64_t i = 0; i < count; ++i) {
      const float j = rules::activate(activation_, update[i]), amount = with_input ? take[i] : 1.0f - forget[i];
      const float kept = forget[i] * c[i];
      c[i] = clipped(add(j, amount, kept), cell_clip_);
    }
    // Its peephole sees the new cells.
    open(gates_[kOutputGate], with_x, with_back, h, c, output);
    logistic(output, count, start(kOutputGate, first));
    if (!projected_) {
      for (int64_t i = 0; i < count; ++i) h[i] = output[i] * rules::activate(activation_, c[i]);
      return true;
    }
    for (int64_t i = 0; i < count; ++i) memory.hidden[i] = output[i] * rules::activate(activation_, c[i]);
    const Rows hidden(memory.hidden, group_, s_.cells, memory.x);
    bool nothing = false;
    if (!ready(hidden, &nothing, quantized_)) return false;
    for (int64_t i = 0; i < group_ * s_.outputs; ++i) {
      h[i] = projection_bias_.empty() ? 0.0f : 0.0f + projection_bias_[i % s_.outputs];
    }
    if (!nothing) multiply(projection_, hidden, h, group_ * s_.outputs);
    for (int64_t i = 0; i < group_ * s_.outputs; ++i) h[i] = clipped(h[i], projection_clip_);
    return true;
  }

  // Where the buffer of a gate begins: the order of gates in memory is input (if any), cell, forget, output.
  int64_t start(int gate, int64_t first) const {
    constexpr int order[kGates] = {0, 2, 1, 3};
    const int place = order[gate] - (gates_[kInputGate].present ? 0 : 1);
    return place * s_.batch * s_.cells + first * s_.cells;
  }

  LstmShape s_;
  rules::Activation activation_;
  bool backward_;
  float cell_clip_ = 0, projection_clip_ = 0;
  bool quantized_ = false, asymmetric_ = false, projected_ = false, with_matrix_ = false;
  bool joined_ = false, in_lanes_ = false, fused_ = false;
  int64_t group_ = 1, widest_ = 0;
  RealGate gates_[kGates];
  RealMatrix projection_;
  std::vector<float> projection_bias_;
};

// Two cells along time, one forward and one backward, whose outputs may lie side by side. Places among the inputs of each
// cell's weights, of its states, and of its weights of an auxiliary input.
class RealLstmBothWays final : public Kernel {
 public:
  explicit RealLstmBothWays(const Step& step) : merged_(step.integer("merge_outputs", 0, 1) != 0) {
    const bool weighted = step.has_input(kAuxiliaryWeights) || step.has_input(kAuxiliaryWeights + 1);
    require(!weighted, "an auxiliary input has weights of its own");
    require(step.outputs.size() == (merged_ ? 1u : 2u), "there is another number of outputs");
    for (const bool backward : {false, true}) {
      std::vector<size_t>& places = places_[backward ? 1 : 0];
      places = {backward && step.has_input(kAuxiliary) ? kAuxiliary : 0};
      for (size_t i = 0; i < kStates - kInputWeights; ++i) places.push_back((backward ? 18 : kInputWeights) + i);
      for (size_t i = 0; i < 2; ++i) places.push_back((backward ? 37 : 35) + i);
      Step cell = step;
      Operand out = step.output(backward && !merged_ ? 1 : 0);
      require(!out.shape.empty(), "an output is a scalar");
      if (merged_) {
        require(out.shape.back() % 2 == 0, "an output does not fit");
        out.shape.back() /= 2, out.elements /= 2, out.row_stride /= 2;
      }
      cell.inputs.clear(), cell.outputs = {&out};
      for (const size_t place : places) cell.inputs.push_back(step.has_input(place) ? step.inputs[place] : nullptr);
      const std::string prefix = backward ? "backward_" : "forward_";
      for (const auto& [name, array] : step.arrays) {
        if (name.compare(0, prefix.size(), prefix) == 0) cell.arrays[name.substr(prefix.size())] = array;
      }
      cells_.push_back(std::make_unique<RealLstm>(cell, backward));
    }
  }
  int64_t scratch_bytes(int threads) const override {
    return cells_[0]->scratch_bytes(threads) + cells_[1]->scratch_bytes(threads);
  }
  bool packs(size_t input) const override {
    return input != 0 && input != kAuxiliary && (input < 35 || input > 38) && input < kAuxiliary;
  }
  std::string note() const override { return cells_[0]->note() + ", both ways"; }

  void run(const Run& run) const override {
    std::array<std::array<uint8_t*, kStates + 2>, 2> inputs;
    std::array<uint8_t*, 2> outputs, scratch = {run.scratch, run.scratch + cells_[0]->scratch_bytes(1)};
    const int64_t wide = cells_[0]->outputs();
    const auto part = [&](size_t i) { return Run{inputs[i].data(), &outputs[i], scratch[i], run.pool}; };
    for (size_t i = 0; i < 2; ++i) {
      for (size_t k = 0; k < places_[i].size(); ++k) inputs[i][k] = run.inputs[places_[i][k]];
      outputs[i] = merged_ ? run.outputs[0] + static_cast<int64_t>(i) * wide * 4 : run.outputs[i];
      if (!cells_[i]->compute(part(i), merged_ ? 2 * wide : wide)) throw Undefined();
    }
    for (size_t i = 0; i < 2; ++i) cells_[i]->keep_states(part(i));
  }

 private:
  static constexpr size_t kStates = 18, kAuxiliary = 39, kAuxiliaryWeights = 40;

  bool merged_;
  std::vector<size_t> places_[2];
  std::vector<std::unique_ptr<RealLstm>> cells_;
};

}  // namespace

std::unique_ptr<Kernel> make_real_lstm_both_ways(const Step& step) { return std::make_unique<RealLstmBothWays>(step); }

std::unique_ptr<Kernel> make_real_lstm(const Step& step) { return std::make_unique<RealLstm>(step); }

}  // namespace bittrue

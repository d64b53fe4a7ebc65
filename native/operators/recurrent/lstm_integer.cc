// Long short-term memory with 8-bit input and output, 16-bit cell and 32-bit bias. The formulas stand in
// src/bittrue/operators/recurrent/lstm_integer.py. A normalized gate that leaves 32 bits is the reference's to
// report, with the states as they were.
#include <algorithm>
#include <atomic>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/core_set.h"
#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/rescaling.h"
#include "operators/recurrent/lstm.h"
#include "rules/gate.h"
#include "rules/layer_norm.h"

namespace bittrue {
namespace {

constexpr const char* kNames[kGates] = {"input", "forget", "cell", "output"};
// Time steps whose products with the inputs are made together.
constexpr int64_t kSteps = 24;

int64_t clamp_s16(int64_t x) { return std::min<int64_t>(std::max<int64_t>(x, INT16_MIN), INT16_MAX); }

// Matrices that meet the same rows, side by side: W x + bias modulo 2^32, for bytes x + 128.
class Products {
 public:
  // Appends a matrix and its prepared bias; gives its first column.
  int64_t add(const Step& step, size_t position, const std::string& name, int64_t rows, int64_t depth) {
    const Operand& operand = step.input(position);
    require(operand.type == Type::s8 && operand.rank() == 2 && operand.shape[0] == rows && operand.shape[1] == depth,
            "a weight matrix has another shape");
    const Array& array = step.array(name + "_bias");
    require(array.count == rows && depth >= 1, "a bias has another length");
    depth_ = depth;
    const int64_t first = columns();
    const std::vector<int64_t> weights = operand.integers();
    weights_.resize(static_cast<size_t>((first + rows) * padded()));
    for (int64_t n = 0; n < rows; ++n) {
      uint32_t sum = 0;
      for (int64_t i = 0; i < depth; ++i) {
        const int64_t weight = weights[static_cast<size_t>(n * depth + i)];
        weights_[static_cast<size_t>((first + n) * padded() + i)] = static_cast<int8_t>(weight);
        sum += static_cast<uint32_t>(weight);
      }
      bias_.push_back(static_cast<int32_t>(static_cast<uint32_t>(array.integer(n)) - 128 * sum));
    }
    return first;
  }
  void pack(const CoreSet& cores) {
    MatmulSpec spec;
    spec.columns = columns();
    spec.depth = padded();
    spec.weights = weights_.data();
    spec.bias = bias_.data();
    spec.sums = true;
    core_ = cores.matmul(spec);
    weights_ = {};
  }

  int64_t columns() const { return static_cast<int64_t>(bias_.size()); }
  int64_t padded() const { return round_up(depth_, 4); }
  // Rows of `padded` bytes; those behind the depth meet weights of zero.
  void run(const uint8_t* const* rows, int64_t count, int32_t* sums) const {
    MatmulRows part;
    part.rows = rows;
    part.capacity = part.count = count;
    part.out = reinterpret_cast<uint8_t*>(sums);
    part.out_stride = columns() * 4;
    core_->run(part, 0, core_->panels());
  }

 private:
  int64_t depth_ = 0;
  std::vector<int8_t> weights_;
  std::vector<int32_t> bias_;
  std::unique_ptr<Matmul> core_;
};

struct IntegerGate {
  bool present = false;
  int64_t first = 0;   // column of both products
  Rescaling in, back;  // as the core takes them
  std::vector<int16_t> peephole;
  Rescaling peephole_rescale;
  // Layer normalization: the bias is added there.
  std::vector<int16_t> norm_weights;
  std::vector<int32_t> norm_bias;
  Rescaling norm_rescale;
  int64_t guard = 1;

  // Every cell before its activation function, given the products' sums. False when a normalized one has no defined value.
  bool open(GateSums core, const int32_t* x, const int32_t* h, const int16_t* c, int64_t cells, int16_t* values) const {
    core(in.multiplier, back.multiplier, x + first, h + first, values, cells);
    for (size_t n = 0; n < peephole.size(); ++n) {
      const int64_t value = values[n] + peephole_rescale(int64_t{peephole[n]} * c[n]);
      values[n] = static_cast<int16_t>(clamp_s16(arithmetic::wrap_s32(value)));
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

// What one worker holds of a sequence.
struct Memory {
  const uint8_t** rows;  // [kSteps]
  uint8_t *x, *h;        // bytes less -128: rows of the input where theirs need filling, and the output state
  uint8_t* hidden;
  int32_t *in, *back, *projected;  // sums
  int16_t *c, *gates;
};

class Lstm final : public Kernel {
 public:
  Lstm(const Step& step, const CoreSet& cores)
      : gate_sums_(cores.gate_sums()),
        hidden_(rescaling(step, "hidden_")),
        logistic_(rules::logistic_table()),
        tanh_gate_(rules::tanh_table(3)) {
    require(step.rule("gate") == "s16_polynomial_newton" && step.rule("accumulate") == "s32_wrap", "no native rule");
    // Both store rules clamp alike where the zero point is 0.
    store_then_clamp_ = step.rule("store") == "zero_point_then_clamp";
    require(store_then_clamp_ || step.rule("store") == "clamp_then_zero_point", "no native store rule");
    read_shapes(step);
    for (int gate = 0; gate < kGates; ++gate) read_gate(step, gate);
    require(gates_[kForgetGate].present && gates_[kCellGate].present && gates_[kOutputGate].present,
            "a gate is missing");
    in_.pack(cores);
    back_.pack(cores);
    exponent_ = static_cast<int>(step.integer("cell_exponent", -15, rules::kMostTanhBits - 15));
    tanh_cell_ = &rules::tanh_table(15 + exponent_);
    const auto clip = static_cast<int32_t>(step.integer("cell_clip", 0, 32767));
    cell_low_ = clip > 0 ? -clip : INT16_MIN, cell_high_ = clip > 0 ? clip : INT16_MAX;
    hidden_zero_point_ = step.integer("hidden_zero_point", -kLargestZeroPoint, kLargestZeroPoint);
    output_zero_point_ = step.integer("output_zero_point", -kLargestZeroPoint, kLargestZeroPoint);
    projected_ = step.has_array("projection_multiplier") || step.has_array("projection_factor");
    if (projected_) {
      projection_.add(step, kProjection, "projection", outputs_, cells_);
      projection_.pack(cores);
      projection_rescale_ = rescaling(step, "projection_");
      projection_clip_ = step.integer("projection_clip", 0, 127);
    } else {
      require(outputs_ == cells_, "cells and outputs must be equally many without a projection");
    }
    per_worker_ = parts(nullptr).second;
    states_ = round_up(batch_ * (outputs_ + 2 * cells_), 64);
  }

  void run(const Run& run) const override {
    std::atomic<bool> defined{true};
    const auto one = [&](int64_t b, int worker) {
      uint8_t* scratch = run.scratch + states_ + worker * per_worker_;
      if (!sequence(run, b, worker, scratch)) defined.store(false, std::memory_order_relaxed);
    };
    run.pool.parallel(batch_, batch_ * time_ * cells_ * (features_ + outputs_) < 20000 ? 1 : run.pool.threads(), one);
    if (!defined.load(std::memory_order_relaxed)) throw Undefined();
    // Cells first: they are aligned.
    std::copy_n(run.scratch, batch_ * cells_ * 2, run.inputs[kCellState]);
    std::copy_n(run.scratch + batch_ * cells_ * 2, batch_ * outputs_, run.inputs[kOutputState]);
  }
  int64_t scratch_bytes(int threads) const override { return states_ + threads * per_worker_; }
  // Everything but the data and the states.
  bool packs(size_t input) const override { return input != 0 && input != kOutputState && input != kCellState; }
  std::string note() const override { return "products of all steps with the inputs first"; }

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
    gate.first = in_.add(step, kInputWeights + index, name + "_in", cells_, features_);
    back_.add(step, kRecurrentWeights + index, name + "_back", cells_, outputs_);
    gate.in = rescaling(step, name + "_in_");
    gate.back = rescaling(step, name + "_back_");
    for (const Rescaling& each : {gate.in, gate.back}) {
      const rules::Multiplier& by = each.multiplier;
      require(each.rule == rules::RescaleRule::q31_two_step_up_away && by.multiplier >= 0 &&
                  by.multiplier <= INT32_MAX && by.exponent >= -31 && by.exponent <= 31,
              "no native rescale rule");
    }
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

  // The parts of a worker's memory, and how many bytes they are.
  std::pair<Memory, int64_t> parts(uint8_t* memory) const {
    Memory m{};
    int64_t taken = 0;
    const auto take = [&](auto*& part, int64_t count) {
      if (memory != nullptr) part = reinterpret_cast<std::remove_reference_t<decltype(part)>>(memory + taken);
      taken += round_up(count * static_cast<int64_t>(sizeof(*part)), 64);
    };
    take(m.rows, kSteps);
    take(m.x, filled() ? kSteps * in_.padded() : 0);
    take(m.h, back_.padded());
    take(m.hidden, projected_ ? projection_.padded() : 0);
    take(m.in, kSteps * in_.columns());
    take(m.back, back_.columns());
    take(m.projected, projected_ ? outputs_ : 0);
    take(m.c, cells_);
    take(m.gates, kGates * cells_);
    return {m, taken};
  }
  // Whether rows of the input need bytes behind them.
  bool filled() const { return in_.padded() != features_; }

  // All time steps of one batch; the states after them go to the beginning of the scratch memory.
  bool sequence(const Run& run, int64_t b, int worker, uint8_t* scratch) const {
    const Memory m = parts(scratch).first;
    const auto place = [&](int64_t t) { return time_major_ ? t * batch_ + b : b * time_ + t; };
    std::fill_n(m.h, back_.padded(), uint8_t{0});
    std::copy_n(run.inputs[kOutputState] + b * outputs_, outputs_, m.h);
    std::copy_n(reinterpret_cast<const int16_t*>(run.inputs[kCellState]) + b * cells_, cells_, m.c);
    if (projected_) std::fill_n(m.hidden, projection_.padded(), uint8_t{0});
    if (filled()) std::fill_n(m.x, kSteps * in_.padded(), uint8_t{0});
    for (int64_t first = 0; first < time_; first += kSteps) {
      const int64_t steps = std::min(kSteps, time_ - first);
      for (int64_t i = 0; i < steps; ++i) {
        m.rows[i] = run.inputs[0] + place(first + i) * features_;
        if (!filled()) continue;
        std::copy_n(m.rows[i], features_, m.x + i * in_.padded());
        m.rows[i] = m.x + i * in_.padded();
      }
      in_.run(m.rows, steps, m.in);
      for (int64_t i = 0; i < steps; ++i) {
        run.check(worker);
        if (!advance(m, m.in + i * in_.columns())) return false;
        std::copy_n(m.h, outputs_, run.outputs[0] + place(first + i) * outputs_);
      }
    }
    std::copy_n(m.c, cells_, reinterpret_cast<int16_t*>(run.scratch) + b * cells_);
    std::copy_n(m.h, outputs_, run.scratch + batch_ * cells_ * 2 + b * outputs_);
    return true;
  }

  // One step of time, given the sums of its input: new cells and output state. False when they have no defined value.
  bool advance(const Memory& m, const int32_t* in) const {
    const uint8_t* const state = m.h;
    back_.run(&state, 1, m.back);
    int16_t *c = m.c, *take = m.gates, *forget = take + cells_, *update = take + 2 * cells_,
            *output = take + 3 * cells_;
    const bool with_input = gates_[kInputGate].present;
    const auto open = [&](int gate, int16_t* values) {
      return gates_[gate].open(gate_sums_, in, m.back, c, cells_, values);
    };
    if (!open(kForgetGate, forget) || !open(kCellGate, update) || (with_input && !open(kInputGate, take))) return false;
    logistic_.apply(forget, cells_);
    tanh_gate_.apply(update, cells_);
    if (with_input) {
      logistic_.apply(take, cells_);
    } else {
      for (int64_t n = 0; n < cells_; ++n) take[n] = static_cast<int16_t>(32767 - forget[n]);
    }
    // In 32 bits, for vectors: products of 16-bit numbers are at most 2^30, and `down` at most 21.
    const auto away = [](int32_t x, int down) { return (x + (1 << (down - 1)) - (x < 0 ? 1 : 0)) >> down; };
    const int down = 30 + exponent_;
    const int32_t low = cell_low_, high = cell_high_;
    for (int64_t n = 0; n < cells_; ++n) {
      const int32_t sum = away(forget[n] * c[n], 15) + away(take[n] * update[n], down);
      c[n] = static_cast<int16_t>(std::min(std::max(sum, low), high));
    }
    // Its peephole sees the new cells.
    if (!open(kOutputGate, output)) return false;
    logistic_.apply(output, cells_);
    uint8_t* hidden = projected_ ? m.hidden : m.h;
    for (int64_t n = 0; n < cells_; ++n) {
      const int64_t value = hidden_(output[n] * tanh_cell_->at(c[n]));
      hidden[n] = static_cast<uint8_t>(store(value, hidden_zero_point_) + 128);
    }
    if (projected_) project(m);
    return true;
  }

  void project(const Memory& m) const {
    const uint8_t* const hidden = m.hidden;
    projection_.run(&hidden, 1, m.projected);
    for (int64_t i = 0; i < outputs_; ++i) {
      int64_t value = store(projection_rescale_(m.projected[i]), output_zero_point_);
      if (projection_clip_ > 0) value = std::min(std::max(value, -projection_clip_), projection_clip_);
      m.h[i] = static_cast<uint8_t>(value + 128);
    }
  }

  IntegerGate gates_[kGates];
  Products in_, back_, projection_;
  GateSums gate_sums_;
  Rescaling hidden_, projection_rescale_;
  const rules::GateTable &logistic_, &tanh_gate_;
  const rules::GateTable* tanh_cell_ = nullptr;
  bool time_major_ = false, projected_ = false, store_then_clamp_ = true;
  int exponent_ = 0;
  int64_t batch_ = 0, time_ = 0, features_ = 0, cells_ = 0, outputs_ = 0;
  int32_t cell_low_ = INT16_MIN, cell_high_ = INT16_MAX;
  int64_t projection_clip_ = 0, hidden_zero_point_ = 0, output_zero_point_ = 0;
  int64_t per_worker_ = 0, states_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_integer_lstm(const Step& step, const CoreSet& cores) {
  return std::make_unique<Lstm>(step, cores);
}

}  // namespace bittrue

#include "operators/recurrent/sequences.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/share.h"

namespace bittrue {

// Where a run's scratch memory is used for what, in bytes.
struct SequenceLayer::Memory {
  int64_t shared[3] = {}, rows = 0, first = 0, bias = 0, states = 0, gates = 0, column = 0, worker = 0, total = 0;
};

SequenceLayer::SequenceLayer(const Step& step, int64_t gates, bool cells) : cells_(cells) {
  const Operand &x = step.input(0), &r = step.input(2);
  require(x.type == Type::f32 && x.rank() == 3 && x.dense() && r.rank() == 3, "no native kernel for these types");
  const std::string& direction = step.text("direction");
  batch_first_ = step.integer("batch_first", 0, 1) != 0;
  steps_ = x.shape[batch_first_ ? 1 : 0];
  batch_ = x.shape[batch_first_ ? 0 : 1];
  inputs_ = x.shape[2];
  directions_ = direction == "bidirectional" ? 2 : 1;
  first_backwards_ = direction == "reverse";
  require(directions_ == 2 || first_backwards_ || direction == "forward", "no direction of this name");
  require(r.shape[0] == directions_, "the weights have another form");
  const bool turned = r.shape[1] != gates * r.shape[2];
  hidden_ = r.shape[turned ? 1 : 2];
  columns_ = gates * hidden_;
  require(steps_ > 0 && batch_ > 0 && inputs_ > 0 && hidden_ > 0, "there is nothing to do");
  const Operand& w = step.input(1);
  require(w.rank() == 3 && w.dense() && r.dense() && w.elements == directions_ * columns_ * inputs_ &&
              r.elements == directions_ * columns_ * hidden_,
          "the weights have another form");
  const auto real = [&](size_t input, int64_t elements) {
    if (!step.has_input(input)) return false;
    const Operand& operand = step.input(input);
    require(operand.type == Type::f32 && operand.dense() && operand.elements == elements,
            "an operand has another form");
    return true;
  };
  bias_ = real(3, directions_ * 2 * columns_);
  lengths_ = step.has_input(4);
  require(!lengths_ || (step.input(4).type == Type::s32 && step.input(4).elements == batch_ && step.input(4).dense()),
          "an operand has another form");
  const int64_t state = directions_ * batch_ * hidden_;
  initial_[0] = real(5, state);
  initial_[1] = cells && real(6, state);
  outputs_ = step.outputs.size();
  require(outputs_ >= 1 && outputs_ <= (cells ? 3u : 2u), "there are other results");
  for (size_t i = 0; i < outputs_; ++i) {
    const Operand& out = step.output(i);
    require(out.type == Type::f32 && out.dense() && out.elements == (i == 0 ? steps_ : 1) * state,
            "a result has another form");
  }
  threshold_ = static_cast<float>(step.real("clip"));
  if (threshold_ == 0.0f) threshold_ = std::numeric_limits<float>::max();
}

ProjectionPart SequenceLayer::part(size_t input, int64_t first, int64_t columns, int64_t depth) const {
  return {input, directions_, columns_, first, columns, depth, input == 1 ? steps_ * batch_ : batch_};
}

void SequenceLayer::add(std::unique_ptr<Projection> projection) { projections_.push_back(std::move(projection)); }

bool SequenceLayer::packs(size_t input) const {
  if (input != 1 && input != 2) return false;
  // All but the first one are of the hidden states.
  return projections_[input - 1]->packed();
}

SequenceLayer::Memory SequenceLayer::memory(int threads) const {
  Memory m;
  int64_t at = 0;
  const auto take = [&](int64_t bytes) {
    const int64_t begin = at;
    at += round_up(bytes, 64);
    return begin;
  };
  const int64_t rows = steps_ * batch_;
  for (size_t i = 0; i < projections_.size(); ++i) m.shared[i] = take(projections_[i]->shared_bytes());
  m.rows = take(rows * inputs_ * 4);
  m.first = take(rows * columns_ * 4);
  m.bias = take(columns_ * 4);
  m.states = take(4 * batch_ * hidden_ * 4);
  m.gates = take(batch_ * columns_ * 4);
  m.column = take(batch_ * hidden_ * 4);
  int64_t most = 0;
  for (size_t i = 0; i < projections_.size(); ++i) {
    most = std::max(most, projections_[i]->worker_bytes(i == 0 ? rows : batch_));
  }
  m.worker = take(most * threads);
  m.total = at;
  return m;
}

int64_t SequenceLayer::scratch_bytes(int threads) const { return memory(threads).total; }

int64_t SequenceLayer::length(const Run& run, int64_t sequence) const {
  return lengths_ ? reinterpret_cast<const int32_t*>(run.inputs[4])[sequence] : steps_;
}

int64_t SequenceLayer::state_place(int64_t direction, int64_t sequence) const {
  return (batch_first_ ? sequence * directions_ + direction : direction * batch_ + sequence) * hidden_;
}

bool SequenceLayer::product(const Advance& at, size_t which, const float* rows, const Addend& addend,
                            float* out) const {
  const Memory m = memory(at.run->pool.threads());
  return projections_[which]->multiply(*at.run, at.direction, rows, batch_, addend, out,
                                       at.run->scratch + m.shared[which], at.scratch);
}

void SequenceLayer::enter(float* x, const float* bias) const {
  const float high = threshold_, low = -threshold_;
  if (bias == nullptr) {
    for (int64_t i = 0; i < hidden_; ++i) {
      const float below = x[i] > high ? high : x[i];
      x[i] = below < low ? low : below;
    }
  } else {
    for (int64_t i = 0; i < hidden_; ++i) {
      const float value = x[i] + bias[i], below = value < high ? value : high;
      x[i] = below < low ? low : below;
    }
  }
}

// x as [steps][batch][inputs], every sequence reversed within its length where it is walked backwards.
const float* SequenceLayer::rows_of(const Run& run, const Memory& memory, bool backwards) const {
  const auto* x = reinterpret_cast<const float*>(run.inputs[0]);
  if (!backwards && (!batch_first_ || batch_ == 1 || steps_ == 1)) return x;
  auto* rows = reinterpret_cast<float*>(run.scratch + memory.rows);
  const int64_t by_step = batch_first_ ? 1 : batch_, by_sequence = batch_first_ ? steps_ : 1;
  for (int64_t t = 0; t < steps_; ++t) {
    for (int64_t b = 0; b < batch_; ++b) {
      const int64_t from = time(t, length(run, b), backwards);
      std::memcpy(rows + (t * batch_ + b) * inputs_, x + (from * by_step + b * by_sequence) * inputs_,
                  static_cast<size_t>(inputs_) * 4);
    }
  }
  return rows;
}

void SequenceLayer::keep_results(const Run& run, const Advance& at, int64_t t, float* states[2]) const {
  const bool backwards = first_backwards_ || at.direction == 1;
  const size_t bytes = static_cast<size_t>(hidden_) * 4;
  auto* y = reinterpret_cast<float*>(run.outputs[0]);
  for (int64_t b = 0; b < batch_; ++b) {
    const int64_t own = length(run, b), when = time(t, own, backwards);
    float* target = y + ((batch_first_ ? b * steps_ + when : when) * directions_ * (batch_first_ ? 1 : batch_) +
                         (batch_first_ ? at.direction : at.direction * batch_ + b)) *
                            hidden_;
    if (t >= own) {
      std::memset(target, 0, bytes);
      if (!keep_) std::memset(states[0] + b * hidden_, 0, bytes);
      continue;
    }
    std::memcpy(target, at.new_hidden + b * hidden_, bytes);
    std::memcpy(states[0] + b * hidden_, at.new_hidden + b * hidden_, bytes);
    if (cells_) std::memcpy(states[1] + b * hidden_, at.new_cells + b * hidden_, bytes);
    for (size_t i = 1; t + 1 == own && i < outputs_; ++i) {
      std::memcpy(reinterpret_cast<float*>(run.outputs[i]) + state_place(at.direction, b), states[i - 1] + b * hidden_,
                  bytes);
    }
  }
}

bool SequenceLayer::run_direction(const Run& run, const Memory& memory, int64_t direction) const {
  int64_t longest = 0;
  for (int64_t b = 0; b < batch_; ++b) longest = std::max(longest, length(run, b));
  const auto floats = [&](int64_t offset) { return reinterpret_cast<float*>(run.scratch + offset); };
  float *first = floats(memory.first), *bias = floats(memory.bias), *now = floats(memory.states);
  const int64_t state = batch_ * hidden_;
  float* states[2] = {now, now + state};
  for (int i = 0; i < 2; ++i) {
    for (int64_t b = 0; b < batch_; ++b) {
      float* to = states[i] + b * hidden_;
      if (initial_[i]) {
        std::memcpy(to, reinterpret_cast<const float*>(run.inputs[5 + i]) + state_place(direction, b),
                    static_cast<size_t>(hidden_) * 4);
      } else {
        std::fill_n(to, hidden_, 0.0f);
      }
    }
  }
  const float* biases = bias_ ? reinterpret_cast<const float*>(run.inputs[3]) + direction * 2 * columns_ : nullptr;
  for (int64_t n = 0; n < columns_; ++n) bias[n] = biases == nullptr ? 0.0f : biases[n] + biases[columns_ + n];
  const int64_t rows = (bias_first_ ? steps_ : longest) * batch_;
  uint8_t* scratch = run.scratch + memory.worker;
  Addend begin;
  if (bias_first_) begin.from = bias;
  if (rows > 0 && !projections_[0]->multiply(run, direction, rows_of(run, memory, first_backwards_ || direction == 1),
                                             rows, begin, first, run.scratch + memory.shared[0], scratch)) {
    return false;
  }
  Advance at{&run,
             direction,
             first,
             bias_ ? bias : nullptr,
             biases,
             states[0],
             states[1],
             now + 2 * state,
             now + 3 * state,
             floats(memory.gates),
             floats(memory.column),
             scratch};
  for (int64_t t = 0; t < steps_; ++t) {
    if (t < longest) {
      run.check();
      at.first = first + t * batch_ * columns_;
      if (!advance(at)) return false;
    }
    keep_results(run, at, t, states);
  }
  return true;
}

void SequenceLayer::run(const Run& run) const {
  for (int64_t b = 0; b < batch_; ++b) {
    const int64_t own = length(run, b);
    // What the reference says of such sequences.
    if (own < 0 || own > steps_ || (own == 0 && (bias_first_ || keep_))) throw Undefined();
  }
  const Memory m = memory(run.pool.threads());
  for (size_t i = 0; i < projections_.size(); ++i) {
    projections_[i]->prepare(run, i == 0 ? steps_ * batch_ : batch_, run.scratch + m.shared[i]);
  }
  for (size_t i = 1; i < outputs_; ++i) {
    std::memset(run.outputs[i], 0, static_cast<size_t>(directions_ * batch_ * hidden_) * 4);
  }
  for (int64_t d = 0; d < directions_; ++d) {
    // Signs and payloads of NaN are the reference's to tell.
    if (!run_direction(run, m, d)) throw Undefined();
  }
}

}  // namespace bittrue

#include "operators/recurrent/lstm.h"
#include "operators/core/registry.h"
#include "operators/recurrent/sequences.h"

namespace bittrue {

LstmShape::LstmShape(const Step& step) {
  const Operand &in = step.input(0), &out = step.output();
  require(
      in.type == out.type && (in.rank() == 2 || in.rank() == 3) && out.rank() == in.rank() && in.dense() && out.dense(),
      "input and output must be dense");
  time_major = in.rank() == 2 || step.integer("time_major", 0, 1) != 0;
  if (in.rank() == 2) {
    batch = in.shape[0];
  } else {
    batch = in.shape[time_major ? 1 : 0];
    time = in.shape[time_major ? 0 : 1];
  }
  features = in.shape.back();
  outputs = out.shape.back();
  for (int axis = 0; axis + 1 < in.rank(); ++axis) {
    require(out.shape[axis] == in.shape[axis], "the output has another shape");
  }
  const Operand& weights = step.input(kInputWeights + kOutputGate);
  require(weights.rank() == 2, "weights must be a matrix");
  cells = weights.shape[0];
  const Operand &state = step.input(kOutputState), &cell = step.input(kCellState);
  require(state.type == in.type && state.elements == batch * outputs && state.dense() &&
              cell.elements == batch * cells && cell.dense(),
          "a state does not fit");
}

static std::unique_ptr<Kernel> make_lstm(const Step& step, const CoreSet& cores) {
  if (step.rules.count("recurrence") != 0) return make_lstm_of_sequences(step, cores);
  require(step.inputs.size() >= kCellState + 1, "a basic cell has no native twin");
  if (step.inputs.size() > kNorms + kGates) return make_real_lstm_both_ways(step);
  return step.input(0).type == Type::f32 ? make_real_lstm(step) : make_integer_lstm(step, cores);
}

BITTRUE_OPERATOR(lstm, make_lstm)

}  // namespace bittrue

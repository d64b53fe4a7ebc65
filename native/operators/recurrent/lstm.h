// Long short-term memory: the kernels of 8-bit integers and of real numbers.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

// Places among the inputs: the first of four tensors, and single ones.
constexpr int kGates = 4, kInputGate = 0, kForgetGate = 1, kCellGate = 2, kOutputGate = 3;
constexpr size_t kInputWeights = 1, kRecurrentWeights = 5, kBiases = 12, kNorms = 20;
constexpr size_t kProjection = 16, kProjectionBias = 17, kOutputState = 18, kCellState = 19;
// There is no peephole of the cell gate.
constexpr size_t kPeepholes[kGates] = {9, 10, 0, 11};

// The dimensions of a layer; an input of two axes is one time step.
struct LstmShape {
  bool time_major = true;
  int64_t batch = 0, time = 1, features = 0, outputs = 0, cells = 0;

  explicit LstmShape(const Step& step);
  // Which row of the input and of the output belongs to a time step of a batch.
  int64_t place(int64_t t, int64_t b) const { return time_major ? t * batch + b : b * time + t; }
};

std::unique_ptr<Kernel> make_integer_lstm(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_real_lstm(const Step& step);
std::unique_ptr<Kernel> make_real_lstm_both_ways(const Step& step);

}  // namespace bittrue

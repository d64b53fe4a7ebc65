// Recurrent layers over whole sequences: shapes, lengths, directions and results; twins of operators/recurrent/sequences.py.
#pragma once

#include <vector>

#include "operators/recurrent/gate_function.h"
#include "operators/recurrent/projection.h"

namespace bittrue {

// One step of all sequences of a direction.
struct Advance {
  const Run* run;
  int64_t direction;
  const float* first;   // [batch][columns]: what x adds to the gates
  const float* bias;    // both biases' sum [columns], or null
  const float* biases;  // both of them [2][columns], or null
  const float* hidden;  // [batch][neurons]
  const float* cells;   // the same, of layers that have cells
  float* new_hidden;    // where the next states go
  float* new_cells;
  float* gates;   // [batch][columns]
  float* column;  // [batch][neurons]
  uint8_t* scratch;
};

class SequenceLayer : public Kernel {
 public:
  int64_t scratch_bytes(int threads) const final;
  bool packs(size_t input) const final;
  std::string note() const final { return "step by step, products of all steps with the inputs first"; }
  void run(const Run& run) const final;

 protected:
  // Operands are x, w, r, bias, lengths, hidden states and cells, as far as there are any; the first of `projections`
  // is that of x.
  SequenceLayer(const Step& step, int64_t gates, bool cells);

  void add(std::unique_ptr<Projection> projection);
  // A product with projection `which` that goes to `out`.
  bool product(const Advance& at, size_t which, const float* rows, const Addend& addend, float* out) const;
  // Limits x + bias (bias may be null) to the threshold.
  void enter(float* x, const float* bias) const;
  // False where a result is no finite number.
  virtual bool advance(const Advance& at) const = 0;

  ProjectionPart part(size_t input, int64_t first, int64_t columns, int64_t depth) const;

  bool bias_ = false;
  int64_t steps_ = 0, batch_ = 0, inputs_ = 0, directions_ = 1, hidden_ = 0, columns_ = 0;
  bool keep_ = false;        // hidden states of sequences that have ended
  bool bias_first_ = false;  // the products with x begin with the bias, and are made for all steps

 private:
  struct Memory;

  Memory memory(int threads) const;
  bool run_direction(const Run& run, const Memory& memory, int64_t direction) const;
  const float* rows_of(const Run& run, const Memory& memory, bool backwards) const;
  void keep_results(const Run& run, const Advance& at, int64_t t, float* states[2]) const;
  int64_t state_place(int64_t direction, int64_t sequence) const;
  int64_t length(const Run& run, int64_t sequence) const;
  int64_t time(int64_t t, int64_t length, bool backwards) const { return backwards && t < length ? length - 1 - t : t; }

  bool cells_, batch_first_ = false, first_backwards_ = false, lengths_ = false;
  bool initial_[2] = {false, false};
  size_t outputs_ = 1;
  float threshold_ = 0;
  std::vector<std::unique_ptr<Projection>> projections_;
  std::vector<size_t> sources_;  // input of each projection
};

std::unique_ptr<Kernel> make_lstm_of_sequences(const Step& step, const CoreSet& cores);

}  // namespace bittrue

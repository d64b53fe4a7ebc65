// A whole plan, ready to run: kernels made, weights packed, every buffer placed. One caller at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/kernel.h"

namespace bittrue {

// Where a tensor lives.
enum class Home : uint8_t { arena, constant, variable, none };

struct TensorSpec {
  Operand operand;
  Home home = Home::none;
  int64_t offset = 0;  // in the arena, for Home::arena
};

// Memory in one piece, 64-byte aligned, with room after the end so that a vector may be read across it.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(int64_t size);
  uint8_t* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(uint8_t* p) const;
  };
  std::unique_ptr<uint8_t, Free> data_;
};

struct ProgramStep {
  Step step;
  std::vector<int> inputs;  // tensor indices, -1 where absent
  std::vector<int> outputs;
};

// Step `step` of a run met values without a defined result; the steps before it are done.
struct StepUndefined : std::runtime_error {
  explicit StepUndefined(int step) : std::runtime_error(std::to_string(step)) {}
};

class Program {
 public:
  // Tensors and steps are checked here: indices, sizes and offsets must fit, else std::invalid_argument. Constants and
  // prepared arrays are borrowed only until the constructor returns.
  Program(std::vector<TensorSpec> tensors, std::vector<ProgramStep> steps, int64_t arena, int threads,
          const std::string& isa);

  // Steps without a native kernel, with the reason. The caller must do them between two calls of `run`.
  const std::vector<std::pair<int, std::string>>& missing() const { return missing_; }
  std::string note(int step) const { return kernels_.at(step) ? kernels_[step]->note() : ""; }
  const char* isa() const { return cores_.isa(); }
  int64_t memory() const { return memory_; }

  // Runs steps [first, last); may throw StepUndefined. `seconds`, when given, receives the time of each of them.
  void run(int first, int last, double* seconds = nullptr);
  // Copies a tensor's value in or out, in the plan's own type and dense.
  void write(int tensor, const void* value);
  void read(int tensor, void* value) const;
  // Variables back to their first value.
  void reset();

  const Operand& operand(int tensor) const { return tensors_.at(tensor).operand; }

 private:
  void place(const std::vector<bool>& needed);
  void check_step(const ProgramStep& step) const;

  CoreSet cores_;
  ThreadPool pool_;
  std::vector<TensorSpec> tensors_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  struct Operands {
    std::vector<uint8_t*> inputs, outputs;
  };
  std::vector<Operands> operands_;
  std::vector<std::pair<int, std::string>> missing_;
  std::vector<uint8_t*> addresses_;
  AlignedBytes arena_, scratch_;
  std::vector<AlignedBytes> owned_;
  std::vector<std::pair<int, std::vector<uint8_t>>> first_values_;  // of variables
  int64_t memory_ = 0;
};

}  // namespace bittrue

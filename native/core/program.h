// A whole plan, ready to run: kernels made, weights packed, every buffer placed. One caller at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel.h"
#include "core/turn.h"

namespace bittrue {

// Where a tensor lives.
enum class Home : uint8_t { arena, constant, variable, none };

struct TensorSpec {
  Operand operand;
  Home home = Home::none;
  int64_t offset = 0;   // in the arena, for Home::arena
  int root = 0;         // the tensor whose memory this is, itself or one that holds it
  bool given = false;   // written before the first step
  bool wanted = false;  // read after the last one
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
  std::vector<int> then_inputs;  // of the step's `then`
};

// Step `step` of a run met values without a defined result; the steps before it are done.
struct StepUndefined : std::runtime_error {
  explicit StepUndefined(int step) : std::runtime_error(std::to_string(step)) {}
};

// A run ended in front of step `step` or inside of it.
struct StepStopped : std::runtime_error {
  StepStopped(int step, Stop::Reason reason)
      : std::runtime_error(std::to_string(step) + (reason == Stop::Reason::deadline ? " deadline" : " interrupt")),
        reason(reason) {}
  Stop::Reason reason;
};

class Program {
 public:
  // Tensors and steps are checked here: indices, sizes and offsets must fit, else std::invalid_argument. Constants and
  // prepared arrays are borrowed only until the constructor returns. Runs end when `interrupts` changes, unless null.
  // Throws Stopped when a signal comes meanwhile.
  Program(std::vector<TensorSpec> tensors, std::vector<ProgramStep> steps, int64_t arena, int threads,
          const std::string& isa, const int64_t* interrupts = nullptr);

  // Steps without a native kernel, with the reason. The caller must do them between two calls of `run`.
  const std::vector<std::pair<int, std::string>>& missing() const { return missing_; }
  std::string note(int step) const { return kernels_.at(step) ? kernels_[step]->note() : ""; }
  const char* isa() const { return cores_.isa(); }
  int64_t memory() const { return memory_; }

  // What follows ends when `deadline` (seconds of the steady clock) has come or the interrupts are others than `seen`
  // (-1: than now).
  void begin(double deadline, int64_t seen) { pool_.stop().begin(deadline, interrupts_, seen); }
  // Runs steps [first, last); may throw StepUndefined, and StepStopped. `seconds`, when given, receives the time of each
  // step.
  void run(int first, int last, double* seconds = nullptr);
  // Copies a tensor's value in or out, in the plan's own type and dense.
  void write(int tensor, const void* value);
  void read(int tensor, void* value) const;
  // Lets the steps of a run use the caller's memory for an input or an output, instead of a copy, until `undo`; `read`
  // knows of it. False, and nothing is done, where that cannot be: elements that are stored otherwise, memory that other
  // values share or that lies at an odd address.
  bool lend(int tensor, void* memory);
  // Variables back to their first value.
  void reset();
  // Remembers the variables at the beginning of a run; `undo` brings them back when it is not finished, `forget` says
  // that it is. Lent memory ends with `undo` in both cases.
  void keep();
  void undo();
  void forget() { kept_ = false; }
  // Whose turn it is to use the buffers. Everything above but the constructor is for its holder.
  Turn& turn() { return turn_; }
  const int64_t* interrupts() const { return interrupts_; }

  const Operand& operand(int tensor) const { return tensors_.at(tensor).operand; }

 private:
  using Values = std::vector<std::pair<int, std::vector<uint8_t>>>;

  void place(const std::vector<bool>& needed);
  void find_places(const std::vector<ProgramStep>& steps);
  void set(const Values& values);
  void check_step(const ProgramStep& step) const;
  void spoil(int step);

  CoreSet cores_;
  ThreadPool pool_;
  const int64_t* interrupts_;
  std::vector<TensorSpec> tensors_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  struct Operands {
    std::vector<uint8_t*> inputs, outputs;
  };
  std::vector<Operands> operands_;
  // The places that name a tensor's memory, with its address in the arena.
  using Places = std::vector<std::pair<uint8_t**, uint8_t*>>;
  std::map<int, Places> places_;  // of tensors whose memory may be the caller's
  // Tensors of a step in which a NaN means that the reference does it: its inputs, or its outputs.
  struct NanWatch {
    std::vector<int> before, after;
  };
  std::vector<NanWatch> watches_;
  std::vector<std::pair<int, std::string>> missing_;
  std::vector<uint8_t*> addresses_;
  AlignedBytes arena_, scratch_;
  int64_t scratch_size_ = 0;
  // For tests: the environment variable BITTRUE_DEBUG_FILL (0 to 255) is written over scratch memory and results before
  // every step, so that a kernel that reads or leaves what it has not written gives other results (-1: nothing).
  // "none" leaves new memory as it comes, for Valgrind.
  int fill_ = -1;
  std::vector<std::vector<int>> targets_;  // what to fill before each step
  std::vector<AlignedBytes> owned_;
  std::vector<int64_t> weights_;       // about how many nanoseconds each step takes
  Values first_values_, kept_values_;  // of variables
  bool kept_ = false;                  // `kept_values_` are whole and the run is not finished
  Turn turn_{[this] { undo(); }};
  int64_t memory_ = 0;
};

}  // namespace bittrue

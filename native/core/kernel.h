// What every native operator makes of a step: an object that runs it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/core_set.h"
#include "core/step.h"
#include "core/thread_pool.h"

namespace bittrue {

// The operands of one run, in the step's order; null where absent. 8-bit integers are stored unsigned (`flip_of`).
struct Run {
  uint8_t* const* inputs;
  uint8_t* const* outputs;
  uint8_t* scratch;  // scratch_bytes() of the kernel, 64-byte aligned, contents undefined
  ThreadPool& pool;

  // For loops of milliseconds and more; `worker` is the one of the task, 0 outside of tasks. See Stop::check.
  void check(int worker = 0) const { pool.stop().check(worker); }
};

// The values of this run have no defined result, as the reference says in detail: the caller shall ask it. Thrown by
// Kernel::run on the calling thread only, never inside of a task.
struct Undefined {};

// Immutable once made. `run` allocates nothing, throws nothing but Undefined and what `Run::check` throws, and touches
// only operands and scratch. Every loop that may take milliseconds checks whether the run shall end.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const Run& run) const = 0;
  virtual int64_t scratch_bytes(int threads) const {
    (void)threads;
    return 0;
  }
  // Inputs that were packed when the kernel was made: `run` does not read them, so no run-time copy is kept.
  virtual bool packs(size_t input) const {
    (void)input;
    return false;
  }
  // Whether `run` also does the step's `then`.
  virtual bool does_then() const { return false; }
  // Whether `run` throws Undefined where a result is NaN: then nobody looks for one again.
  virtual bool tells_nan() const { return false; }
  // Whether inputs may change while `run` reads them, since a caller may write into an array meanwhile: then results are
  // wrong, and nothing else happens. Not where values are looked at before they are used, as places and divisors are.
  virtual bool bears_changes() const { return false; }
  // How it runs, for people: "matmul, 1x1", "lookup table", ...
  virtual std::string note() const { return ""; }
};

// Null or NoKernel: this step has no native twin.
using Factory = std::unique_ptr<Kernel> (*)(const Step& step, const CoreSet& cores);

}  // namespace bittrue

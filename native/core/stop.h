// Ends a run before it is done: its time is up, another thread asks for it, or a signal has come.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace bittrue {

// Thrown by Stop::check; kernels let it pass.
struct Stopped {};

class Stop {
 public:
  enum class Reason : int { none, deadline, interrupt, signal };

  // The thread that runs calls it about ten times per second; true ends the run. Set once, before the first run.
  static bool (*signals)();

  // A run begins: it ends at `deadline` (seconds of the steady clock), and when other threads have written anything but
  // `seen` (-1: what is there now) to `interrupts`, which may be null.
  void begin(double deadline, const int64_t* interrupts, int64_t seen);
  // Throws Stopped when the run shall end. Kernels call it in every loop that may take milliseconds: it costs about a
  // nanosecond, since the clock is read only as often as it must be. `worker` is the one of the task, 0 outside of tasks.
  void check(int worker = 0) {
    if (worker == 0 ? poll() : asked()) throw_stopped();
  }
  // The same by the thread that runs, without throwing: whether the run shall end.
  bool poll() {
    if (--patience_ < 0) look();
    return asked();
  }
  bool asked() const { return asked_.load(std::memory_order_relaxed); }
  // A step of about this many nanoseconds comes next: looks at the clock when enough of them have passed.
  void spend(int64_t weight) {
    spent_ += weight;
    if (spent_ >= kLook) look_closely();
  }
  Reason reason() const { return reason_; }
  // Whether `signals` is being called for this run.
  bool in_signals() const { return in_signals_.load(std::memory_order_relaxed); }

 private:
  static constexpr int64_t kLook = 1 << 20;
  static constexpr int kMost = 256;  // checks between two looks at the clock

  [[noreturn]] static void throw_stopped();
  void look();
  void look_closely();
  void ask(Reason reason);

  std::atomic<bool> asked_{false};
  std::atomic<bool> in_signals_{false};
  // Of the thread that runs.
  int patience_ = 0, stride_ = 1;
  int64_t spent_ = 0;
  bool looked_ = false;
  int64_t last_ = 0, next_signals_ = 0;  // nanoseconds of the steady clock
  double deadline_ = std::numeric_limits<double>::infinity();
  const int64_t* interrupts_ = nullptr;
  int64_t seen_ = 0;
  Reason reason_ = Reason::none;
};

}  // namespace bittrue

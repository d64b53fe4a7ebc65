#include "core/stop.h"

#include <algorithm>
#include <chrono>

namespace bittrue {
namespace {

// Between two looks at the clock while checks come often, and between two questions for signals: the lock of the
// interpreter may have to be waited for. In nanoseconds.
constexpr int64_t kOften = 250'000, kSeldom = 2'000'000, kSignals = 100'000'000;

}  // namespace

bool (*Stop::signals)() = nullptr;

void Stop::throw_stopped() { throw Stopped(); }

void Stop::begin(double deadline, const int64_t* interrupts, int64_t seen) {
  deadline_ = deadline;
  interrupts_ = interrupts;
  seen_ = seen >= 0 || interrupts == nullptr ? seen : __atomic_load_n(interrupts, __ATOMIC_RELAXED);
  reason_ = Reason::none;
  spent_ = 0;
  looked_ = false;
  asked_.store(false, std::memory_order_relaxed);
}

void Stop::look_closely() {
  spent_ = 0;
  stride_ = 1;
  look();
}

void Stop::ask(Reason reason) {
  if (reason_ == Reason::none) reason_ = reason;
  asked_.store(true, std::memory_order_relaxed);
}

void Stop::look() {
  const int64_t now = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  // The first look of a run comes after little work: nothing is measured yet.
  if (!looked_) next_signals_ = now + kSignals;
  if (looked_ && now - last_ < kOften) stride_ = std::min(2 * stride_, kMost);
  if (looked_ && now - last_ > kSeldom) stride_ = 1;
  looked_ = true;
  last_ = now;
  patience_ = stride_;
  if (static_cast<double>(now) / 1e9 >= deadline_) ask(Reason::deadline);
  if (interrupts_ != nullptr && __atomic_load_n(interrupts_, __ATOMIC_RELAXED) != seen_) ask(Reason::interrupt);
  if (signals == nullptr || now < next_signals_ || asked()) return;
  next_signals_ = now + kSignals;
  in_signals_.store(true, std::memory_order_relaxed);
  const bool stop = signals();
  in_signals_.store(false, std::memory_order_relaxed);
  if (stop) ask(Reason::signal);
}

}  // namespace bittrue

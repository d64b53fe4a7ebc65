// Whose turn it is to use one set of buffers: a lock whose waiting ends with the run, that notices when its own thread
// comes again, and that does not stay closed in the child of a fork.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "core/forks.h"
#include "core/stop.h"

namespace bittrue {

// The thread whose turn it is asks for it again.
struct Reentered {};

class Turn {
 public:
  // `abandoned` is called when the thread whose turn it was is gone after a fork.
  explicit Turn(std::function<void()> abandoned = [] {}) : abandoned_(std::move(abandoned)), waiting_(new Waiting()) {}
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool try_take() {
    int nobody = 0;
    if (!holder_.compare_exchange_strong(nobody, process_forks() + 1)) return false;
    owner_.store(pthread_self(), std::memory_order_relaxed);
    return true;
  }
  // Waits; arguments as for Stop::begin. Why it was in vain, or Reason::none. Throws Reentered.
  Stop::Reason take(double deadline, const int64_t* interrupts, int64_t seen);
  void give();

 private:
  struct Waiting {
    const int forks = process_forks();
    std::mutex mutex;
    std::condition_variable given;
    std::atomic<int> count{0};
  };
  Waiting& waiting();
  bool take_from_the_gone();

  std::atomic<int> holder_{0};  // 0: nobody; else 1 + how many forks there had been
  std::atomic<pthread_t> owner_{};
  std::function<void()> abandoned_;
  std::atomic<Waiting*> waiting_;
};

}  // namespace bittrue

#include "core/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bittrue {
namespace {

inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// With fewer processors than threads a spinning worker would keep the one it waits for from running.
constexpr int kSpinsBeforeYield = 2000;
// About a tenth of a millisecond: callers that run again at once find the workers awake.
constexpr int64_t kSpinsBeforeSleep = 4000;

inline void relax(int& spins) {
  relax();
  if (++spins > kSpinsBeforeYield) {
    spins = 0;
    std::this_thread::yield();
  }
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  for (int worker = 1; worker < threads; ++worker) workers_.emplace_back([this, worker] { work(worker); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  awake_.notify_all();
  for (std::thread& thread : workers_) thread.join();
}

void ThreadPool::wake() {
  if (workers_.empty()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    hot_.store(true, std::memory_order_release);
  }
  awake_.notify_all();
}

void ThreadPool::rest() { hot_.store(false, std::memory_order_release); }

void ThreadPool::start(int64_t tasks, Call call, const void* function) {
  tasks_ = tasks;
  call_ = call;
  function_ = function;
  next_.store(0, std::memory_order_relaxed);
  joined_.store(0, std::memory_order_release);
  round_.fetch_add(1, std::memory_order_release);
  if (!hot_.load(std::memory_order_acquire)) {
    // Outside of wake/rest the workers may sleep.
    { const std::lock_guard<std::mutex> lock(mutex_); }
    awake_.notify_all();
  }
  drain(0);
  int nobody = 0;
  for (int spins = 0; !joined_.compare_exchange_weak(nobody, kClosed, std::memory_order_acq_rel); nobody = 0) relax(spins);
}

bool ThreadPool::join() {
  int joined = joined_.load(std::memory_order_acquire);
  while (joined != kClosed) {
    if (joined_.compare_exchange_weak(joined, joined + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void ThreadPool::drain(int worker) {
  for (;;) {
    const int64_t task = next_.fetch_add(1, std::memory_order_relaxed);
    if (task >= tasks_) return;
    call_(function_, task, worker);
  }
}

void ThreadPool::work(int worker) {
  uint64_t seen = 0;
  int64_t idle = 0;
  for (int spins = 0;;) {
    const uint64_t round = round_.load(std::memory_order_acquire);
    if (round != seen) {
      seen = round;
      idle = 0;
      if (join()) {
        drain(worker);
        joined_.fetch_sub(1, std::memory_order_acq_rel);
      }
      continue;
    }
    if (hot_.load(std::memory_order_acquire) || ++idle < kSpinsBeforeSleep) {
      relax(spins);
      continue;
    }
    idle = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    awake_.wait(lock, [&] { return stop_ || hot_.load() || round_.load() != seen; });
    if (stop_) return;
  }
}

}  // namespace bittrue

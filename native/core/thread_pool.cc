#include "core/thread_pool.h"

#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "core/forks.h"

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
// Runs that come in parts may share nothing in some of them.
constexpr int kMostInVain = 16;

inline void relax(int& spins) {
  relax();
  if (++spins > kSpinsBeforeYield) {
    spins = 0;
    std::this_thread::yield();
  }
}

}  // namespace

struct ThreadPool::Workers {
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::condition_variable awake;
  bool stop = false;  // guarded by `mutex`
  int in_vain = 0;    // how often they have been woken since something was shared
};

ThreadPool::ThreadPool(int threads) : threads_(threads) { launch(); }

ThreadPool::~ThreadPool() {
  if (forked()) {
    static_cast<void>(workers_.release());  // its threads cannot be joined here
    return;
  }
  if (workers_ == nullptr) return;
  {
    const std::lock_guard<std::mutex> lock(workers_->mutex);
    workers_->stop = true;
  }
  workers_->awake.notify_all();
  for (std::thread& thread : workers_->threads) thread.join();
}

void ThreadPool::launch() {
  if (threads_ > 1) workers_ = std::make_unique<Workers>();
  forks_ = process_forks();  // not before: a launch without memory is tried again
  if (workers_ == nullptr) return;
  try {
    workers_->threads.reserve(static_cast<size_t>(threads_) - 1);
    for (int worker = 1; worker < threads_; ++worker) {
      workers_->threads.emplace_back([this, &workers = *workers_, worker] { work(workers, worker); });
    }
  } catch (const std::system_error&) {
    // As many as the system gives.
  } catch (const std::bad_alloc&) {
    // Likewise; those that run already must not be lost.
  }
}

bool ThreadPool::forked() const { return forks_ != process_forks(); }

void ThreadPool::renew_after_fork() {
  static_cast<void>(workers_.release());
  hot_.store(false, std::memory_order_relaxed);
  joined_.store(kClosed, std::memory_order_relaxed);
  launch();
}

void ThreadPool::wake() {
  if (threads_ <= 1) return;
  if (forked()) renew_after_fork();
  // Where no step is worth sharing, workers that spin would only slow down the thread that works.
  if (workers_->in_vain == kMostInVain) return;
  ++workers_->in_vain;
  {
    const std::lock_guard<std::mutex> lock(workers_->mutex);
    hot_.store(true, std::memory_order_release);
  }
  workers_->awake.notify_all();
}

void ThreadPool::rest() { hot_.store(false, std::memory_order_release); }

void ThreadPool::share(int64_t tasks, int threads, Call call, const void* function) {
  if (threads_ <= 1 || tasks <= 1 || threads <= 1) {
    for (int64_t task = 0; task < tasks; ++task) {
      stop_.check();
      call(function, task, 0);
    }
    return;
  }
  if (forked()) renew_after_fork();
  workers_->in_vain = 0;
  tasks_ = tasks;
  call_ = call;
  function_ = function;
  next_.store(0, std::memory_order_relaxed);
  joined_.store(0, std::memory_order_release);
  round_.fetch_add(1, std::memory_order_release);
  if (!hot_.load(std::memory_order_acquire)) {
    // Workers that nobody keeps awake may sleep.
    {
      const std::lock_guard<std::mutex> lock(workers_->mutex);
    }
    workers_->awake.notify_all();
  }
  drain(0);
  int nobody = 0;
  for (int spins = 0; !joined_.compare_exchange_weak(nobody, kClosed, std::memory_order_acq_rel); nobody = 0) {
    relax(spins);
    // Workers with long tasks rely on this thread to look at the clock. A signal's handler may fork: the child has no
    // workers to wait for, and their tasks are lost.
    stop_.poll();
    if (forked()) throw Stopped();
  }
  if (stop_.asked()) stop_.check();
}

bool ThreadPool::join() {
  int joined = joined_.load(std::memory_order_acquire);
  while (joined != kClosed) {
    if (joined_.compare_exchange_weak(joined, joined + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void ThreadPool::drain(int worker) {
  try {
    for (;;) {
      const int64_t task = next_.fetch_add(1, std::memory_order_relaxed);
      if (task >= tasks_) return;
      stop_.check(worker);
      call_(function_, task, worker);
    }
  } catch (const Stopped&) {
    // `share` throws it again when nobody works any more.
  }
}

void ThreadPool::work(Workers& workers, int worker) {
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
    std::unique_lock<std::mutex> lock(workers.mutex);
    workers.awake.wait(lock, [&] { return workers.stop || hot_.load() || round_.load() != seen; });
    if (workers.stop) return;
  }
}

}  // namespace bittrue

#include "core/thread_pool.h"

#include <algorithm>
#include <array>
#include <chrono>
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
// Nanoseconds: how often it is looked how far the workers' processors are, and how long one that sleeps is waited for;
// round trips that take longer are far. On a virtual machine of Zen 5 they take 90 to 110 or 270 to 360, in turns of
// seconds; small networks take 0.8 of one thread's time in the one state, and twice as much in the other.
constexpr int64_t kProbeEvery = 20'000'000, kProbeMost = 100'000, kFarTrip = 200;

int64_t now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

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
  if (workers_->in_vain == kMostInVain && (!asked_ || now() < next_probe_)) return;
  ++workers_->in_vain;
  {
    const std::lock_guard<std::mutex> lock(workers_->mutex);
    hot_.store(true, std::memory_order_release);
  }
  workers_->awake.notify_all();
}

void ThreadPool::rest() {
  if (threads_ > 1 && asked_ && !forked()) probe();
  hot_.store(false, std::memory_order_release);
}

void ThreadPool::probe() {
  const int64_t began = now();
  if (began < next_probe_) return;
  next_probe_ = began + kProbeEvery;
  asked_ = false;
  // The first trip may wake somebody; without an answer nothing is known.
  if (trip() >= kProbeMost) return;
  std::array<int64_t, 9> trips;
  for (int64_t& one : trips) one = trip();
  const auto middle = trips.begin() + trips.size() / 2;
  std::nth_element(trips.begin(), middle, trips.end());
  worth_ = *middle > kFarTrip ? kWorthFar : kWorthNear;
}

int64_t ThreadPool::trip() {
  const auto workers = static_cast<int64_t>(workers_->threads.size());
  tasks_ = 0;
  next_.store(0, std::memory_order_relaxed);
  joined_.store(0, std::memory_order_release);
  const int64_t began = now();
  round_.fetch_add(1, std::memory_order_release);
  int64_t took = 0;
  while (next_.load(std::memory_order_acquire) < workers && took < kProbeMost) relax(), took = now() - began;
  for (int nobody = 0; !joined_.compare_exchange_weak(nobody, kClosed, std::memory_order_acq_rel) && !forked();) {
    nobody = 0;
    relax();
  }
  return took;
}

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

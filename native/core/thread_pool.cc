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
// A trial gives each choice some runs, the fastest of which counts.
constexpr int kTries = 5;
// How often, in nanoseconds; never so often that trials are more than a fiftieth of the time. The clock is read after
// some runs only, since the smallest networks take a microsecond.
constexpr int64_t kTryEvery = 20'000'000, kTryRarely = 50, kTryAtLeast = 10'000'000'000;
constexpr int kRunsBetween = 16;
// Nanoseconds that a worker which sleeps is waited for before a trial; a virtual processor may take a tenth of a
// millisecond to wake up.
constexpr int64_t kAnswerWithin = 250'000;

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
  // Steps are shared from so many nanoseconds of guessed work on.
  static constexpr std::array<int64_t, 4> kChoices = {400, 1'500, 6'000, kNever};
  std::array<int64_t, kChoices.size()> fastest{};
  int trial = -1;  // how many runs of a trial are done, or -1 outside of one
  int runs = 0;    // since the clock was read
  // Of the clock: this run of a trial (0: not yet), the trial, the next one.
  int64_t began = 0, trial_began = 0, next_trial = 0;
};

ThreadPool::ThreadPool(int threads) : threads_(threads), next_(few_.data()) {
  if (threads > static_cast<int>(few_.size())) {
    many_ = std::make_unique<std::atomic<int64_t>[]>(static_cast<size_t>(threads));
    next_ = many_.get();
  }
  launch();
}

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
  worth_ = kWorthLeast;
  launch();
}

void ThreadPool::wake() {
  if (threads_ <= 1) return;
  if (forked()) renew_after_fork();
  if (workers_->trial >= 0 && workers_->began == 0) workers_->began = now();
  // Where no step is worth sharing, workers that spin would only slow down the thread that works.
  if (worth_ == kNever || (workers_->in_vain == kMostInVain && !asked_)) return;
  workers_->in_vain = std::min(workers_->in_vain + 1, kMostInVain);
  {
    const std::lock_guard<std::mutex> lock(workers_->mutex);
    hot_.store(true, std::memory_order_release);
  }
  workers_->awake.notify_all();
}

void ThreadPool::rest() { hot_.store(false, std::memory_order_release); }

void ThreadPool::judge() {
  if (threads_ <= 1 || !asked_ || forked()) return;
  Workers& w = *workers_;
  if (w.trial < 0) {
    if (++w.runs < kRunsBetween) return;
    w.runs = 0;
    if (now() < w.next_trial) return;
    worth_ = Workers::kChoices[0];
    wake();
    if (answered()) {
      w.trial = 0;
      w.trial_began = now();
      w.fastest.fill(kNever);
    } else {
      // All processors are busy.
      worth_ = kNever;
      w.next_trial = now() + 2 * kTryEvery;
    }
    return;
  }
  const int64_t ended = now();
  int64_t& fastest = w.fastest[static_cast<size_t>(w.trial / kTries)];
  fastest = std::min(fastest, ended - w.began);
  w.began = 0;
  auto choice = static_cast<size_t>(++w.trial / kTries);
  if (choice == w.fastest.size()) {
    // Sharing must be worth a fiftieth.
    w.fastest.back() -= w.fastest.back() / 50;
    choice = static_cast<size_t>(std::min_element(w.fastest.begin(), w.fastest.end()) - w.fastest.begin());
    w.trial = -1;
    w.next_trial = ended + std::clamp(kTryRarely * (ended - w.trial_began), kTryEvery, kTryAtLeast);
  }
  worth_ = Workers::kChoices[choice];
}

// Whether all workers are awake, or woken in time.
bool ThreadPool::answered() {
  const auto workers = static_cast<int>(workers_->threads.size());
  open(0);
  joined_.store(0, std::memory_order_release);
  const int64_t began = now();
  round_.fetch_add(1, std::memory_order_release);
  int worker = 1;
  while (worker <= workers && now() - began < kAnswerWithin) {
    if (next_[worker].load(std::memory_order_acquire) > 0) {
      ++worker;
    } else {
      relax();
    }
  }
  for (int nobody = 0; !joined_.compare_exchange_weak(nobody, kClosed, std::memory_order_acq_rel) && !forked();) {
    nobody = 0;
    relax();
  }
  return worker > workers;
}

void ThreadPool::share(int64_t tasks, int threads, Call call, const void* function) {
  asked_ |= threads > 1 && tasks > 1;
  if (threads_ <= 1 || tasks <= 1 || threads <= 1 || worth_ == kNever) {
    for (int64_t task = 0; task < tasks; ++task) {
      stop_.check();
      call(function, task, 0);
    }
    return;
  }
  if (forked()) renew_after_fork();
  workers_->in_vain = 0;
  call_ = call;
  function_ = function;
  open(tasks);
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

void ThreadPool::open(int64_t tasks) {
  tasks_ = tasks;
  for (int i = 0; i < threads_; ++i) next_[i].store(tasks * i / threads_, std::memory_order_relaxed);
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
    for (int i = 0, owner = worker; i < threads_; ++i, owner = owner + 1 == threads_ ? 0 : owner + 1) {
      const int64_t last = tasks_ * (owner + 1) / threads_;
      for (;;) {
        const int64_t task = next_[owner].fetch_add(1, std::memory_order_relaxed);
        if (task >= last) break;
        stop_.check(worker);
        call_(function_, task, worker);
      }
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

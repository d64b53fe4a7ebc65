// A pool of threads that run the tasks of one step together with the calling thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>

#include "core/stop.h"

namespace bittrue {

class ThreadPool {
 public:
  // `threads` counts the calling thread: 1 starts no other. Where the system refuses threads, the others do their tasks.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  // How many threads are worth it for a step of about this many nanoseconds. One caller at a time.
  int threads_for(int64_t nanoseconds) {
    asked_ |= nanoseconds >= kWorthLeast;
    return nanoseconds < worth_ ? 1 : threads_;
  }
  // What ends a run early; `parallel` looks at it before each task.
  Stop& stop() { return stop_; }

  // function(task, worker) for every task in [0, tasks), worker in [0, threads()). Returns when all are done, or throws
  // Stopped when no task runs any more. Tasks may throw Stopped and nothing else.
  // Each thread has a share of its own, one after the other as the tasks are, so that what a thread has written in one
  // step is mostly what it reads in the next; in each share tasks begin in ascending order, so the first ones should be
  // the largest. Who has done his share takes from the others'. One caller at a time.
  template <class Function>
  void parallel(int64_t tasks, const Function& function) {
    parallel(tasks, threads(), function);
  }

  // The same by the calling thread alone when `threads` is 1.
  template <class Function>
  void parallel(int64_t tasks, int threads, const Function& function) {
    share(
        tasks, threads,
        [](const void* f, int64_t task, int worker) { (*static_cast<const Function*>(f))(task, worker); }, &function);
  }

  // While one of these lives, the workers wait by spinning, so that short steps start without a system call. A worker
  // that is still waking up is not waited for: the others do its tasks.
  class Awake {
   public:
    explicit Awake(ThreadPool& pool) : pool_(pool) { pool_.wake(); }
    // A run of a program ends here. It began with the first of these after the end of the one before.
    void finish() { pool_.judge(); }
    ~Awake() { pool_.rest(); }
    Awake(const Awake&) = delete;
    Awake& operator=(const Awake&) = delete;

   private:
    ThreadPool& pool_;
  };

 private:
  using Call = void (*)(const void* function, int64_t task, int worker);
  static constexpr int kClosed = -1;
  // Nanoseconds of work that are worth handing out, at the least, and where nothing is.
  static constexpr int64_t kWorthLeast = 800, kNever = std::numeric_limits<int64_t>::max();

  struct Workers;

  void wake();
  void rest();
  void launch();
  // Threads do not survive a fork, and locks may be held for ever in the child: it gets new ones.
  void renew_after_fork();
  bool forked() const;
  // What is worth handing out depends on how far the processors are from each other, which changes while a process runs
  // (under a hypervisor above all), and on the network: so whole runs are timed. Results never depend on it.
  void judge();
  bool answered();
  void share(int64_t tasks, int threads, Call call, const void* function);
  void work(Workers& workers, int worker);
  void open(int64_t tasks);
  void drain(int worker);
  bool join();

  const int threads_;
  int forks_ = 0;                     // of the process, when `workers_` were made
  std::unique_ptr<Workers> workers_;  // null when there are none
  Stop stop_;
  // Of the calling thread.
  int64_t worth_ = kWorthLeast;
  bool asked_ = false;  // whether a run may depend on `worth_`
  // What workers look at, in one line, which travels once; so do few threads' `next_`.
  alignas(64) std::atomic<bool> hot_{false};  // workers spin while it is set
  std::atomic<int> joined_{kClosed};          // workers inside the open round
  std::atomic<uint64_t> round_{0};            // one per `share`
  int64_t tasks_ = 0;
  Call call_ = nullptr;
  const void* function_ = nullptr;
  std::array<std::atomic<int64_t>, 3> few_{};
  std::unique_ptr<std::atomic<int64_t>[]> many_;  // where there are more threads
  std::atomic<int64_t>* next_;                    // the next task of each thread's share
};

}  // namespace bittrue

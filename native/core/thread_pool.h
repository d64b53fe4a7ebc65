// A pool of threads that run the tasks of one step together with the calling thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace bittrue {

class ThreadPool {
 public:
  // `threads` counts the calling thread: 1 starts no other.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // function(task, worker) for every task in [0, tasks), worker in [0, threads()). Returns when all are done.
  // Tasks are handed out in ascending order, so the first ones should be the largest. One caller at a time.
  template <class Function>
  void parallel(int64_t tasks, const Function& function) {
    parallel(tasks, threads(), function);
  }

  // The same by the calling thread alone when `threads` is 1.
  template <class Function>
  void parallel(int64_t tasks, int threads, const Function& function) {
    if (workers_.empty() || tasks <= 1 || threads <= 1) {
      for (int64_t task = 0; task < tasks; ++task) function(task, 0);
      return;
    }
    start(tasks, [](const void* f, int64_t task, int worker) { (*static_cast<const Function*>(f))(task, worker); },
          &function);
  }

  // Between `wake` and `rest` the workers wait by spinning, so that short steps start without a system call. A worker
  // that is still waking up is not waited for: the others do its tasks.
  void wake();
  void rest();

 private:
  using Call = void (*)(const void* function, int64_t task, int worker);
  static constexpr int kClosed = -1;

  void start(int64_t tasks, Call call, const void* function);
  void work(int worker);
  void drain(int worker);
  bool join();

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable awake_;
  bool stop_ = false;              // guarded by mutex_
  std::atomic<bool> hot_{false};   // workers spin while it is set
  std::atomic<uint64_t> round_{0};  // one per `start`
  std::atomic<int64_t> next_{0};
  std::atomic<int> joined_{kClosed};  // workers inside the open round
  int64_t tasks_ = 0;
  Call call_ = nullptr;
  const void* function_ = nullptr;
};

}  // namespace bittrue

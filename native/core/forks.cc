#include "core/forks.h"

#include <atomic>

namespace bittrue {
namespace {

std::atomic<int> forks{0};
std::atomic<pthread_t> survivor{};

void begin_child() {
  survivor.store(pthread_self(), std::memory_order_relaxed);
  forks.fetch_add(1, std::memory_order_relaxed);
}

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, &begin_child);

}  // namespace

int process_forks() { return forks.load(std::memory_order_relaxed); }

pthread_t fork_survivor() { return survivor.load(std::memory_order_relaxed); }

}  // namespace bittrue

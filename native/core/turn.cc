#include "core/turn.h"

#include <chrono>
#include <limits>

namespace bittrue {

Turn::~Turn() {
  Waiting* last = waiting_.load();
  if (last->forks == process_forks()) delete last;
}

// What threads wait on. That of an earlier process is left alone: its lock may be closed for ever.
Turn::Waiting& Turn::waiting() {
  Waiting* found = waiting_.load();
  if (found->forks == process_forks()) return *found;
  auto* fresh = new Waiting();
  if (waiting_.compare_exchange_strong(found, fresh)) return *fresh;
  delete fresh;
  return *found;
}

bool Turn::take_from_the_gone() {
  int holder = holder_.load();
  const int mine = process_forks() + 1;
  if (holder == 0 || holder == mine || pthread_equal(owner_.load(), fork_survivor()) != 0) return false;
  if (!holder_.compare_exchange_strong(holder, mine)) return false;
  owner_.store(pthread_self());
  abandoned_();
  return true;
}

Stop::Reason Turn::take(double deadline, const int64_t* interrupts, int64_t seen) {
  if (try_take() || take_from_the_gone()) return Stop::Reason::none;
  if (holder_.load() != 0 && pthread_equal(owner_.load(), pthread_self()) != 0) throw Reentered();
  Stop stop;
  stop.begin(deadline, interrupts, seen);
  Waiting& place = waiting();
  place.count.fetch_add(1);
  for (bool taken = false; !taken && !stop.asked();) {
    {
      std::unique_lock<std::mutex> lock(place.mutex);
      taken = place.given.wait_for(lock, std::chrono::milliseconds(20), [this] { return try_take(); });
    }
    if (!taken) stop.spend(std::numeric_limits<int64_t>::max() / 2);  // looks at the clock
  }
  place.count.fetch_sub(1);
  return stop.reason();
}

void Turn::give() {
  holder_.store(0);
  Waiting& place = waiting();
  if (place.count.load() == 0) return;
  {
    const std::lock_guard<std::mutex> lock(place.mutex);
  }
  place.given.notify_one();
}

}  // namespace bittrue

// Children of forks: of all threads only the one that forked goes on there, and locks that others held stay closed.
#pragma once

#include <pthread.h>

namespace bittrue {

// How often this process has become the child of a fork since the library was loaded.
int process_forks();
// The thread that forked last; it is the only one from before.
pthread_t fork_survivor();

}  // namespace bittrue

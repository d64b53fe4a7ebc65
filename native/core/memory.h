// Memory that lives as long as a program.
#pragma once

#include <cstddef>

namespace bittrue {

// `bytes` bytes at a multiple of 64, which std::free takes back; nothing is known of what is in them. What is large lies in
// large pages where the system has some: the first touch of ordinary ones takes longer than packing weights into them.
void* lasting_memory(size_t bytes);

}  // namespace bittrue

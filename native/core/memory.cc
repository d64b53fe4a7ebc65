#include "core/memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace bittrue {
namespace {

constexpr size_t kCacheLine = 64, kLargePage = size_t{2} << 20;

}  // namespace

void* lasting_memory(size_t bytes) {
  const size_t unit = bytes < 2 * kLargePage ? kCacheLine : kLargePage;
  void* const memory = std::aligned_alloc(unit, bytes / unit * unit + unit);
  if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  // Whole pages alone: the rest of the last one would be memory that nobody uses. Advice that is not taken changes nothing.
  if (unit == kLargePage) static_cast<void>(madvise(memory, bytes / kLargePage * kLargePage, MADV_HUGEPAGE));
#endif
  return memory;
}

}  // namespace bittrue

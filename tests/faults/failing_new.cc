// Preloaded by test_native_memory.py: one call of operator new or aligned_alloc fails, counted from `failing_new_begin`.
// NumPy and the interpreter allocate by other functions.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> calls{0}, failing{0};  // 0: none fails
std::atomic<long> alive{0};              // what operator new has given and nobody has deleted

bool fails() { return calls.fetch_add(1) + 1 == failing.load(); }

void* allocate(std::size_t size) {
  void* data = fails() ? nullptr : std::malloc(size != 0 ? size : 1);
  if (data == nullptr) throw std::bad_alloc();
  ++alive;
  return data;
}

void release(void* data) {
  if (data != nullptr) --alive;
  std::free(data);
}

}  // namespace

extern "C" {

// Call `which` fails, 0: none does.
void failing_new_begin(long which) {
  failing = which;
  calls = 0;
}

// How many calls there were.
long failing_new_end() {
  failing = 0;
  return calls;
}

long failing_new_alive() { return alive; }

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  static const auto real = reinterpret_cast<void* (*)(std::size_t, std::size_t)>(dlsym(RTLD_NEXT, "aligned_alloc"));
  return fails() ? nullptr : real(alignment, size);
}

}  // extern "C"

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* data) noexcept { release(data); }
void operator delete[](void* data) noexcept { release(data); }
void operator delete(void* data, std::size_t) noexcept { release(data); }
void operator delete[](void* data, std::size_t) noexcept { release(data); }

// The rate of 8-bit multiply-adds that plain C++ reaches on data in the first-level cache.
#include "isa/portable/cores.h"

namespace bittrue::portable {

int64_t peak_multiply_adds(int64_t rounds) {
  constexpr int kBytes = 1024;
  alignas(64) uint8_t a[kBytes];
  alignas(64) int8_t b[kBytes];
  for (int i = 0; i < kBytes; ++i) {
    a[i] = static_cast<uint8_t>(i);
    b[i] = static_cast<int8_t>(i);
  }
  volatile int32_t sink = 0;
  for (int64_t r = 0; r < rounds; ++r) {
    int32_t sum = 0;
    for (int i = 0; i < kBytes; ++i) sum += static_cast<int32_t>(a[i]) * b[i];
    sink = sum;
    a[r % kBytes] = static_cast<uint8_t>(sum);
  }
  (void)sink;
  return rounds * kBytes;
}

}  // namespace bittrue::portable

// The rate of a set's multiply-add instruction on registers: the ceiling of all its kernels.
#pragma once

#include <cstdint>
#include <cstring>

#include "isa/tools.h"

namespace bittrue::BITTRUE_ISA {

// `Chain` says how `add(sum, bytes)` multiplies kProducts pairs of bytes; kChains of them run side by side, more than
// latency times throughput.
template <class Chain>
int64_t run_chains(int64_t rounds) {
  typename Chain::Vector sums[Chain::kChains], bytes;
  std::memset(&sums, 3, sizeof sums);
  std::memset(&bytes, 5, sizeof bytes);
  for (int64_t r = 0; r < rounds; ++r) {
    unroll<Chain::kChains>([&](int i) __attribute__((always_inline)) { sums[i] = Chain::add(sums[i], bytes); });
  }
  volatile int32_t sink = 0;
  for (const typename Chain::Vector& sum : sums) {
    int32_t first;
    std::memcpy(&first, &sum, sizeof first);
    sink = first;
  }
  (void)sink;
  return rounds * Chain::kChains * Chain::kProducts;
}

}  // namespace bittrue::BITTRUE_ISA

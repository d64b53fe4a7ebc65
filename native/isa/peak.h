// The rate of a set's multiply-add instruction on registers: the ceiling of all its kernels.
#pragma once

#include <cstdint>
#include <cstring>

#include "isa/tools.h"

namespace bittrue::BITTRUE_ISA {

// `Chain` says how `add(sum, bytes)` multiplies kProducts pairs of bytes, and what a vector of one byte is; kChains of them
// run side by side, more than latency times throughput.
template <class Chain>
int64_t run_chains(int64_t rounds) {
  using Vector = typename Chain::Vector;
  Vector sums[Chain::kChains];
  const Vector bytes = Chain::filled(5);
  // Chains that begin alike would be compiled into one.
  unroll<Chain::kChains>([&](int i) __attribute__((always_inline)) { sums[i] = Chain::filled(6 + i); });
  for (int64_t r = 0; r < rounds; ++r) {
    unroll<Chain::kChains>([&](int i) __attribute__((always_inline)) { sums[i] = Chain::add(sums[i], bytes); });
  }
  volatile int32_t sink = 0;
  unroll<Chain::kChains>([&](int i) __attribute__((always_inline)) {
    const Vector sum = sums[i];
    int32_t first;
    std::memcpy(&first, &sum, sizeof first);
    sink = first;
  });
  (void)sink;
  return rounds * Chain::kChains * Chain::kProducts;
}

}  // namespace bittrue::BITTRUE_ISA

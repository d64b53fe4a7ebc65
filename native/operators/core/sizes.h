// How many elements given sizes make.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/step.h"

namespace bittrue {

// The product of sizes, none of them negative. NoKernel beyond 2^40, which nothing in memory has: a product that had wrapped
// could fit the operands.
inline int64_t elements_of(std::initializer_list<int64_t> sizes) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t product = 1;
  for (const int64_t size : sizes) {
    require(size == 0 || product <= kMost / size, "the operands are very large");
    product *= size;
  }
  return product;
}

}  // namespace bittrue

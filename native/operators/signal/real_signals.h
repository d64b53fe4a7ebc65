// Signals of binary32 numbers, two at a time as pairs of binary64 ones.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arithmetic/fourier.h"

namespace bittrue {

// The frequencies below length / 2 of two real signals of `length` numbers, of which `first` are given by
// number(which one, place); with the last one beside the first. `to` may be used for as many pairs as `from` has.
template <class Number>
const arithmetic::Pairs* frequencies_of_two(const arithmetic::Fourier& fourier, int64_t first, const Number& number,
                                            arithmetic::Pairs* from, arithmetic::Pairs* to) {
  for (int64_t i = 0; i < fourier.points(); ++i) {
    from[i] = arithmetic::Pairs{};
    for (int which = 0; which < 2; ++which) {
      if (2 * i < first) from[i].re[which] = number(which, 2 * i);
      if (2 * i + 1 < first) from[i].im[which] = number(which, 2 * i + 1);
    }
  }
  fourier.real_transform(from, to);
  return to;
}

}  // namespace bittrue

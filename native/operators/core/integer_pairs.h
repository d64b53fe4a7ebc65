// Functions of two integers of any type, with broadcasting.
#pragma once

#include "operators/core/blocks.h"

namespace bittrue {

// The numbers of two operands of one type, those of u64 modulo 2^64, become results, whose low bits are stored, in the place
// of the first ones. False where one is not defined, which leaves the whole step to the reference.
using IntegerPairs = HeldFunction<bool(int64_t* first, const int64_t* second, int64_t count)>;
[[gnu::cold]] std::unique_ptr<Kernel> make_integer_pairs(const Step& step, IntegerPairs function);

// The same of int64_t f(int64_t, int64_t, bool* defined).
template <class Function>
std::unique_ptr<Kernel> make_integer_zip(const Step& step, const Function& f) {
  return make_integer_pairs(step, IntegerPairs([f](int64_t* first, const int64_t* second, int64_t count) {
                              bool all = true;
                              for (int64_t i = 0; i < count; ++i) first[i] = f(first[i], second[i], &all);
                              return all;
                            }));
}

}  // namespace bittrue

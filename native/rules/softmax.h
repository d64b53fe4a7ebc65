// Scalar twins of src/bittrue/rules/softmax.py; tables are built in Python only.
#pragma once

#include <cstdint>

#include "arithmetic/fixed_point.h"
#include "arithmetic/tables.h"
#include "arithmetic/transcendental.h"
#include "rules/rescale.h"

namespace bittrue::rules {

inline constexpr int kSumBits = 12;

// An exponential in F0 as a summand in F12.
inline int64_t summand(int64_t exponential) { return arithmetic::divide_by_power_of_two_away(exponential, kSumBits); }

// The sum of a row's summands has no probability of `bits` bits, or leaves 32 bits, from here on.
inline int64_t exp_f5_sum_limit(int bits) { return int64_t{1} << (bits < 11 ? 20 + bits : 31); }

// One row's share of an exponential, in units of 2^-bits.
struct ExpF5Row {
  arithmetic::Reciprocal reciprocal;
  int bits;

  ExpF5Row(int64_t sum, int bits_) : reciprocal(arithmetic::reciprocal(sum, kSumBits)), bits(bits_) {}
  int64_t operator()(int64_t exponential) const {
    return arithmetic::divide_by_power_of_two_away(arithmetic::doubling_high_multiply_up(reciprocal.raw, exponential),
                                                   reciprocal.bits + 31 - bits);
  }
};

// The exponential of a difference to the row's largest value, from a table on [-10, 0].
inline int64_t tables_513_exponential(int64_t difference, const Multiplier& m, const int16_t* table) {
  const int64_t moved = arithmetic::wrap_s32(q31_two_step_up_away(difference, m) + 32767);
  return arithmetic::lookup_513(table, moved < -32768 ? -32768 : (moved > 32767 ? 32767 : moved));
}

// One row's share of such an exponential; the sum lies in [1, 2^31 - 1].
struct Tables513Row {
  int64_t factor;
  int right_shift;

  Tables513Row(int64_t sum, const int16_t* table) {
    const int headroom = arithmetic::count_leading_zeros_s32(sum);
    const int64_t normalised = ((sum << (headroom - 1)) + (1 << 13)) >> 14;
    const int64_t moved = normalised - 3 * (int64_t{1} << 15);
    factor = arithmetic::lookup_513(table, moved < -32768 ? -32768 : (moved > 32767 ? 32767 : moved));
    right_shift = 31 - headroom;
  }
  int64_t operator()(int64_t exponential) const {
    return arithmetic::divide_by_power_of_two_up(exponential * factor, right_shift);
  }
};

}  // namespace bittrue::rules

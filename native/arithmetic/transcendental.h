// Scalar twins of src/bittrue/arithmetic/transcendental.py: exponential, reciprocal, inverse square root, logarithm,
// logistic and tanh in fixed point. F(k) is a signed raw integer with k integer bits.
#pragma once

#include <cstdint>

#include "arithmetic/fixed_point.h"

namespace bittrue::arithmetic {

struct ExpFactor {
  int power;       // of two
  int64_t factor;  // exp(-2^power) in F0
};

inline constexpr ExpFactor kExpFactors[] = {{-2, 1672461947}, {-1, 1302514674}, {0, 790015084}, {1, 290630308},
                                            {2, 39332535},    {3, 720401},      {4, 242}};
inline constexpr int64_t kExpOfMinusEighth = 1895147668;             // F0
inline constexpr int64_t kOneThird = 715827883;                      // F0
inline constexpr int64_t kFortyEightSeventeenths = 1515870810;       // F2
inline constexpr int64_t kMinusThirtyTwoSeventeenths = -1010580540;  // F2
inline constexpr int64_t kLogOf2 = 1488522236;                       // F0, as are all below
inline constexpr int64_t kFourthRootOfHalf = 1805811301;
inline constexpr int64_t kRootOfHalf = 1518500250;
inline constexpr int64_t kLogNumerator = 117049297;
inline constexpr int64_t kLogDenominatorSquare = 127690142;
inline constexpr int64_t kLogDenominatorConstant = 1057819769;
inline constexpr int64_t kLogDenominatorLinear = 638450708;

namespace transcendental_detail {

template <int kBits>
inline int64_t multiply(int64_t a, int64_t b) {
  return kBits == 32 ? doubling_high_multiply_up(a, b) : doubling_high_multiply_up_s16(a, b);
}

// All constants are 32-bit ones; the 16-bit flavour divides them by 2^16, ties away.
template <int kBits>
inline int64_t constant(int64_t raw) {
  return divide_by_power_of_two_away(raw, 32 - kBits);
}

template <int kBits>
inline int64_t exp_on_minus_quarter_to_zero(int64_t raw) {
  const int64_t x = raw + (int64_t{1} << (kBits - 4));
  const int64_t x2 = multiply<kBits>(x, x), x3 = multiply<kBits>(x2, x), x4 = multiply<kBits>(x2, x2);
  const int64_t sum = divide_by_power_of_two_away(x4, 2) + x3;
  const int64_t tail = divide_by_power_of_two_away(multiply<kBits>(sum, constant<kBits>(kOneThird)) + x2, 1);
  const int64_t centre = constant<kBits>(kExpOfMinusEighth);
  const int64_t rest = multiply<kBits>(centre, x + tail);
  // exp(x) near 1 rounds up to 2^15 in 16 bits.
  return kBits == 32 ? centre + rest : saturating_add_s16(centre, rest);
}

// 0 <= integer_bits <= kBits - 3.
template <int kBits>
inline int64_t exp_on_negative(int64_t raw, int integer_bits) {
  const int fractional_bits = kBits - 1 - integer_bits;
  const int64_t quarter = int64_t{1} << (fractional_bits - 2);
  const int64_t modulo_quarter = (raw & (quarter - 1)) - quarter;
  int64_t result =
      exp_on_minus_quarter_to_zero<kBits>(saturating_multiply_by_power_of_two(modulo_quarter, integer_bits, kBits));
  const int64_t remainder = modulo_quarter - raw;
  for (const ExpFactor& row : kExpFactors) {
    if (integer_bits > row.power && (remainder & (int64_t{1} << (fractional_bits + row.power)))) {
      result = multiply<kBits>(result, constant<kBits>(row.factor));
    }
  }
  // The factors cover exponents above -32 only.
  if (integer_bits > 5 && raw < -(int64_t{1} << (fractional_bits + 5))) result = 0;
  return raw == 0 ? (int64_t{1} << (kBits - 1)) - 1 : result;
}

// 1 / ((1 + x) / 2) in F2 by three Newton steps from 48/17 - 32/17 * (1 + x) / 2.
template <int kBits>
inline int64_t newton_reciprocal_of_half_denominator(int64_t raw) {
  const int64_t half_denominator = half_sum_away(raw, (int64_t{1} << (kBits - 1)) - 1);
  int64_t x = constant<kBits>(kFortyEightSeventeenths) +
              multiply<kBits>(half_denominator, constant<kBits>(kMinusThirtyTwoSeventeenths));
  constexpr int64_t one = int64_t{1} << (kBits - 3);
  for (int i = 0; i < 3; ++i) {
    const int64_t residue = one - multiply<kBits>(half_denominator, x);
    x += saturating_multiply_by_power_of_two(multiply<kBits>(x, residue), 2, kBits);
  }
  return x;
}

template <int kBits>
inline int64_t reciprocal_of_one_plus(int64_t raw) {
  return saturating_multiply_by_power_of_two(newton_reciprocal_of_half_denominator<kBits>(raw), 1, kBits);
}

template <int kBits>
inline int64_t one_minus_x_over_one_plus_x(int64_t raw) {
  const int64_t newton = newton_reciprocal_of_half_denominator<kBits>(raw);
  return saturating_multiply_by_power_of_two(newton - (int64_t{1} << (kBits - 3)), 2, kBits);
}

}  // namespace transcendental_detail

// 1 / x ~ raw * 2^(-31 - bits).
struct Reciprocal {
  int64_t raw;
  int bits;
};

// Domain: x in [1, 2^31 - 1], in F(integer_bits).
inline Reciprocal reciprocal(int64_t x, int integer_bits) {
  const int zeros = count_leading_zeros_s32(x);
  return {transcendental_detail::reciprocal_of_one_plus<32>((x << zeros) - (int64_t{1} << 31)), integer_bits - zeros};
}

// 1 / sqrt(value) ~ multiplier * 2^(exponent - 31).
struct InverseRoot {
  int64_t multiplier;
  int exponent;
};

// Domain: [0, 2^31 - 1].
inline InverseRoot inverse_square_root(int64_t value) {
  if (value <= 1) return {INT32_MAX, 0};
  const bool large = value >= int64_t{1} << 29;  // once is enough: (2^31 - 1) div 4 < 2^29
  int64_t v = large ? value / 4 : value;
  const int pairs = (count_leading_zeros_s32(v) - 1) / 2 - 1;
  const int right_shift = 11 + (large ? 1 : 0) - pairs;
  v <<= 2 * pairs;
  const int64_t half_v = divide_by_power_of_two_away(v >> 1, 1);
  int64_t x = int64_t{1} << 28;
  for (int i = 0; i < 5; ++i) {
    const int64_t cube =
        saturating_multiply_by_power_of_two(doubling_high_multiply_up(doubling_high_multiply_up(x, x), x), 6);
    const int64_t next =
        doubling_high_multiply_up((int64_t{1} << 28) + (int64_t{1} << 27), x) - doubling_high_multiply_up(half_v, cube);
    x = saturating_multiply_by_power_of_two(wrap_s32(next), 3);
  }
  int64_t multiplier = doubling_high_multiply_up(x, kRootOfHalf);
  if (right_shift < 0) multiplier = wrap_s32(static_cast<int64_t>(static_cast<uint64_t>(multiplier) << -right_shift));
  return {multiplier, right_shift > 0 ? -right_shift : 0};
}

// ln(x), x in F12 and [1, 2^31 - 1], result in F5.
inline int64_t logarithm(int64_t raw) {
  const auto product = doubling_high_multiply_up;
  const auto move = [](int64_t x, int exponent) { return saturating_multiply_by_power_of_two(x, exponent); };
  const int64_t quarter = divide_by_power_of_two_away(int64_t{1} << 29, 6);  // 1/4 in F6
  const int zeros = count_leading_zeros_s32(raw);
  const int64_t ratio_a = move(product(move(raw, zeros - 1), kRootOfHalf), 1);
  const int64_t power_a = saturating_add_s32(move(12 - zeros, 25), quarter);
  const int headroom = count_leading_zeros_s32(product(raw, kRootOfHalf)) - 1;
  const int64_t ratio_b = move(raw, headroom);
  const int64_t power_b = saturating_add_s32(move(12 - headroom, 25), -quarter);
  const int64_t r = ratio_a < ratio_b ? ratio_a : ratio_b, power = power_a > power_b ? power_a : power_b;
  const int64_t p = half_sum_away(r, kFourthRootOfHalf), q = 2 * (r - kFourthRootOfHalf);
  const int64_t square = product(q, q);
  const int64_t numerator = product(q, r) + product(product(q, square), kLogNumerator);
  const int64_t inner = kLogDenominatorConstant + q + product(kLogDenominatorSquare, square);
  const int64_t denominator = product(p, inner) + product(kLogDenominatorLinear, q);
  const int64_t quotient = product(divide_by_power_of_two_away(numerator, 6),
                                   transcendental_detail::reciprocal_of_one_plus<32>(denominator));
  return move(product(power, kLogOf2) + quotient, 1);
}

// 1 / (1 + exp(-x)), 16-bit F3 to 16-bit F0.
inline int64_t logistic_s16(int64_t raw) {
  if (raw == 0) return 1 << 14;
  const int64_t magnitude = raw < 0 ? -raw : raw;
  const int64_t positive =
      transcendental_detail::reciprocal_of_one_plus<16>(transcendental_detail::exp_on_negative<16>(-magnitude, 3));
  return raw > 0 ? positive : INT16_MAX - positive;
}

// 16-bit F(integer_bits) to 16-bit F0; integer_bits in 0..12.
inline int64_t tanh_s16(int64_t raw, int integer_bits) {
  if (raw == 0) return 0;
  const int64_t magnitude = raw < 0 ? -raw : raw;
  const int64_t value = transcendental_detail::one_minus_x_over_one_plus_x<16>(
      transcendental_detail::exp_on_negative<16>(-magnitude, integer_bits + 1));
  return raw > 0 ? value : -value;
}

}  // namespace bittrue::arithmetic

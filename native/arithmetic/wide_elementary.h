// Scalar twins of src/bittrue/arithmetic/wide_elementary.py: elementary functions in binary64, pinned to the bit, with
// products joined to sums.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "arithmetic/hyperbolic.h"
#include "arithmetic/wide_tables.h"

namespace bittrue::arithmetic::wide {

inline uint64_t bits_of(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline double from_bits(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr uint64_t kSign = uint64_t{1} << 63, kInfiniteBits = uint64_t{0x7ff} << 52;
// The NaN that arises from numbers.
inline double without_value() { return from_bits(uint64_t{0x7ff8} << 48); }

// e^(x + rest), negated where `negative`.
inline double power_of_e(double x, double rest, bool negative) {
  const uint64_t sign = negative ? kSign : 0;
  const auto exponent = static_cast<int>((bits_of(x) >> 52) & 0x7ff);
  if (exponent < 0x3c9) return negative ? -1.0 - x : 1.0 + x;
  if (exponent >= 0x409) return from_bits(sign | (x < 0 ? 0 : kInfiniteBits));
  const double k = std::round(x * 0x1.71547652b82fep+7);
  const auto whole = static_cast<int64_t>(k);
  const double high = std::fma(k, -0x1.62e42fefa0000p-8, x);
  const double r = std::fma(k, -0x1.cf79abc9e3b3ap-47, high) + rest;
  const uint64_t* entry = kPowers[whole & 127];
  const uint64_t scale = entry[1] + (static_cast<uint64_t>(whole) << 45);
  const double square = r * r;
  const double low = std::fma(0x1.555555555543cp-3, r, 0x1.ffffffffffdbdp-2);
  const double upper = std::fma(0x1.1111167a4d017p-7, r, 0x1.55555cf172b91p-5);
  const double part = std::fma(square * square, upper, std::fma(low, square, r + from_bits(entry[0])));
  if (exponent < 0x408) {
    const double factor = from_bits(scale | sign);
    return std::fma(part, factor, factor);
  }
  if (whole >= 0) {
    const double factor = from_bits((scale - (uint64_t{1009} << 52)) | sign);
    return 0x1p1009 * std::fma(part, factor, factor);
  }
  // Below the smallest normal number it is rounded once.
  const double factor = from_bits((scale + (uint64_t{1022} << 52)) | sign), product = factor * part;
  double y = factor + product;
  if (std::fabs(y) < 1.0) {
    const double one = y < 0 ? -1.0 : 1.0, lost = factor - y + product, sum = one + y;
    y = (sum + (one - sum + y + lost)) - one;
    if (y == 0) y = from_bits(sign);
  }
  return 0x1p-1022 * y;
}

inline double exp(double x) { return x == x ? power_of_e(x, 0.0, false) : x + x; }

inline double log(double x) {
  constexpr double kNear[11] = {-0x1p-1,
                                0x1.5555555555577p-2,
                                -0x1.ffffffffffdcbp-3,
                                0x1.999999995dd0cp-3,
                                -0x1.55555556745a7p-3,
                                0x1.24924a344de30p-3,
                                -0x1.fffffa4423d65p-4,
                                0x1.c7184282ad6cap-4,
                                -0x1.999eb43b068ffp-4,
                                0x1.78182f7afd085p-4,
                                -0x1.5521375d145cdp-4};
  if (!(x > 0 && x < kInfinity)) return x == 0 ? -kInfinity : x < 0 ? without_value() : x + x;
  if (x >= 1 - 0x1p-4 && x < 1 + 0x1.09p-4) {
    if (x == 1) return 0.0;
    const double r = x - 1.0, square = r * r, cube = r * square;
    double sum = std::fma(kNear[10], cube, std::fma(kNear[9], square, std::fma(kNear[8], r, kNear[7])));
    sum = std::fma(sum, cube, std::fma(kNear[6], square, std::fma(kNear[5], r, kNear[4])));
    sum = std::fma(sum, cube, std::fma(kNear[3], square, std::fma(kNear[2], r, kNear[1])));
    // r in two parts, so that half of the first one's square is exact.
    const double upper = std::fma(-r, 0x1p27, std::fma(r, 0x1p27, r)), lower = r - upper, half = upper * upper;
    const double high = std::fma(half, kNear[0], r);
    double low = std::fma(half, kNear[0], r - high);
    low = std::fma(kNear[0] * lower, r + upper, low);
    return high + std::fma(sum, cube, low);
  }
  uint64_t bits = bits_of(x);
  if (x < 0x1p-1022) bits = bits_of(x * 0x1p52) - (uint64_t{52} << 52);
  const uint64_t distance = bits - 0x3fe6000000000000;
  const uint64_t* entry = kLogarithms[(distance >> 45) & 127];
  const auto k = static_cast<double>(static_cast<int64_t>(distance) >> 52);
  const double z = from_bits(bits - (distance & (uint64_t{0xfff} << 52)));
  const double r = std::fma(z, from_bits(entry[0]), -1.0), w = std::fma(k, 0x1.62e42fefa3800p-1, from_bits(entry[1]));
  const double high = r + w, square = r * r;
  const double low = std::fma(-0x1.0000000000001p-1, square, std::fma(k, 0x1.ef35793c76730p-45, w - high + r));
  const double sum = std::fma(std::fma(-0x1.55575e506c89fp-3, r, 0x1.999b324f10111p-3), square,
                              std::fma(-0x1.fffffffeb4590p-3, r, 0x1.555555551305bp-2));
  return std::fma(r * square, sum, low) + high;
}

// x^y
inline double power(double x, double y) {
  constexpr double kPolynomial[7] = {-0x1p-1,
                                     -0x1.5555555555560p-1,
                                     0x1.0000000000006p-1,
                                     0x1.999999959554ep-1,
                                     -0x1.555555529a47ap-1,
                                     -0x1.2495b9b4845e9p+0,
                                     0x1.0002b8b263fc3p+0};
  const auto signalling = [](double value) { return value != value && !(bits_of(value) >> 51 & 1); };
  if (y == 0) return signalling(x) ? x + y : 1.0;
  if (x == 1) return signalling(y) ? x + y : 1.0;
  if (y != y || (x != x && std::fabs(y) == kInfinity)) return x + y;
  const double size = std::fabs(x);
  if (std::fabs(y) == kInfinity) return size == 1 ? 1.0 : (size < 1) == (y < 0) ? kInfinity : 0.0;
  const double half = 0.5 * y;
  const bool is_whole = std::trunc(y) == y, odd = is_whole && std::trunc(half) != half,
             negative = std::signbit(x) && odd;
  // A NaN's sign changes, too.
  if (x != x) return negative ? -(x + x) : x + x;
  if (size == 0 || size == kInfinity) {
    const double result = (size == 0) == (y < 0) ? kInfinity : 0.0;
    return negative ? -result : result;
  }
  if (x < 0 && !is_whole) return without_value();
  const auto exponent = static_cast<int>((bits_of(y) >> 52) & 0x7ff);
  if (exponent < 0x3be || exponent >= 0x43e) {
    if (size == 1 || exponent < 0x3be) return 1.0;
    return (size > 1) == (y > 0) ? kInfinity : 0.0;
  }
  uint64_t bits = bits_of(size);
  if (size < 0x1p-1022) bits = bits_of(size * 0x1p52) - (uint64_t{52} << 52);
  const uint64_t distance = bits - 0x3fe6955500000000;
  const uint64_t* entry = kLongLogarithms[(distance >> 45) & 127];
  const auto k = static_cast<double>(static_cast<int64_t>(distance) >> 52);
  const double z = from_bits(bits - (distance & (uint64_t{0xfff} << 52)));
  const double r = std::fma(z, from_bits(entry[0]), -1.0),
               first = std::fma(k, 0x1.62e42fefa3800p-1, from_bits(entry[1]));
  const double whole = first + r;
  const double halves = kPolynomial[0] * r, squares = r * halves, cubes = r * squares;
  const double high = whole + squares;
  double low = std::fma(k, 0x1.ef35793c76730p-45, from_bits(entry[2])) + (first - whole + r);
  low = low + std::fma(halves, r, -squares) + (whole - high + squares);
  const double inner =
      std::fma(squares, std::fma(r, kPolynomial[6], kPolynomial[5]), std::fma(r, kPolynomial[4], kPolynomial[3]));
  low = std::fma(cubes, std::fma(squares, inner, std::fma(r, kPolynomial[2], kPolynomial[1])), low);
  const double logarithm = high + low, rest = high - logarithm + low, product = y * logarithm;
  return power_of_e(product, std::fma(y, rest, std::fma(y, logarithm, -product)), negative);
}

namespace circle {

inline constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;

// What is left of an angle without its quarter turns, in two parts, and how many these were, modulo 4.
struct Angle {
  double high, low;
  int turns;
};

// Sums of products with digits of 2 / pi: whole turns modulo a multiple of 4, and a fraction in two parts.
inline Angle digits(double x, double* turns) {
  const auto exponent = static_cast<int>((bits_of(x) >> 52) & 0x7ff);
  const int first = exponent <= 0x1aa ? 0 : (exponent - 450) / 24;
  double unit = from_bits((uint64_t{0x63f} << 52) - (static_cast<uint64_t>(first) * 24 << 52)), parts[6];
  for (int i = 0; i < 6; ++i, unit *= 0x1p-24) parts[i] = x * kTurns[first + i] * unit;
  constexpr double kWhole = 0x1.8p52, kFours = 0x1.8p54;
  double sum = 0.0, tail = 0.0;
  for (int i = 0; i < 3; ++i) {
    const double whole = (parts[i] + kWhole) - kWhole;
    sum += whole;
    parts[i] -= whole;
  }
  for (int i = 5; i >= 0; --i) tail += parts[i];
  double lost = parts[0] - tail;
  for (int i = 1; i < 6; ++i) lost += parts[i];
  const double whole = (tail + kWhole) - kWhole;
  sum += whole;
  tail -= whole;
  const double high = tail + lost;
  *turns = sum - ((sum + kFours) - kFours);
  return {high, (tail - high) + lost, 0};
}

// Of 105414350 and more.
inline Angle reduced_far(double x) {
  constexpr double kSplit = 0x1.000000200p+27, kUpper = 0x1.921fb58000000p+0, kLower = -0x1.dde9740000000p-27;
  const auto upper_of = [](double value) {
    const double wide = value * kSplit;
    return wide - (wide - value);
  };
  x = x * 0x1p-600;
  const double upper = upper_of(x);
  double first_turns, second_turns;
  const Angle first = digits(upper, &first_turns), second = digits(x - upper, &second_turns);
  double turns = first_turns + second_turns, sum = first.high + second.high;
  const double lost = std::fabs(first.high) > std::fabs(second.high) ? (first.high - sum) + second.high
                                                                     : (second.high - sum) + first.high;
  if (sum > 0.5) {
    sum -= 1.0;
    turns += 1.0;
  } else if (sum < -0.5) {
    sum += 1.0;
    turns -= 1.0;
  }
  const double whole = ((lost + first.low) + second.low) + sum;
  const double rest = ((sum - whole) + lost) + (first.low + second.low);
  // Times half of pi.
  const double high = upper_of(whole), low = whole - high, product = whole * kHalfPi;
  const double error = (((high * kUpper - product) + high * kLower) + low * kUpper) +
                       (rest * kHalfPi + (low * kLower + whole * kHalfPiLow));
  const double angle = product + error;
  return {angle, (product - angle) + error, static_cast<int>(turns) & 3};
}

inline Angle reduced(double x) {
  constexpr double kWhole = 0x1.8p52, kThird = -0x1.cb3b398000000p-55, kFourth = -0x1.d747f23e32ed7p-83;
  const double shifted = std::fma(x, 0x1.45f306dc9c883p-1, kWhole), turns = shifted - kWhole;
  const double y = std::fma(-turns, -0x1.dde973c000000p-27, std::fma(-turns, 0x1.921fb58000000p+0, x));
  const double middle = std::fma(-turns, kThird, y), first = std::fma(-turns, kThird, y - middle);
  const double high = std::fma(-turns, kFourth, middle);
  return {high, first + std::fma(-turns, kFourth, middle - high), static_cast<int>(bits_of(shifted) & 3)};
}

// x less the nearest 128th, whose sines and cosines in two parts `entry` has.
struct Near {
  double rest;
  const uint64_t* entry;
};
inline Near near(double size) {
  constexpr double kTo128ths = 0x1.8p45;
  const double shifted = size + kTo128ths;
  return {size - (shifted - kTo128ths), kCircle[bits_of(shifted) & 0xffffffff]};
}

// 1 - cos(x), and what sin(x) has beside x over x^3, in terms of the square of x.
inline double versine(double square) {
  return square * std::fma(square, std::fma(square, 0x1.6c16bedd9e239p-10, -0x1.5555555555535p-5), 0.5);
}
inline double cubic(double square) { return std::fma(square, 0x1.11110e829872fp-7, -0x1.5555555555515p-3); }

inline double sine(double x, double low) {
  if (std::fabs(x) < 0x1.020c49ba5e354p-3) {
    const double square = x * x;
    double sum = std::fma(square, -0x1.addffc2fcdf59p-26, 0x1.71de27b9a7ed9p-19);
    for (const double c : {-0x1.a01a019db08b8p-13, 0x1.1111111110ecep-7, -0x1.5555555555555p-3}) {
      sum = std::fma(square, sum, c);
    }
    return x + std::fma(square, std::fma(sum, x, -(low * 0.5)), low);
  }
  if (x <= 0) low = -low;
  const auto [rest, entry] = near(std::fabs(x));
  const double square = rest * rest, s = rest + std::fma(rest * square, cubic(square), low);
  const double c = std::fma(rest, low, versine(square)), sine_of = from_bits(entry[0]);
  const double part = std::fma(-c, sine_of, std::fma(s, from_bits(entry[3]), from_bits(entry[1])));
  return std::copysign(sine_of + std::fma(s, from_bits(entry[2]), part), x);
}

inline double cosine(double x, double low) {
  if (x < 0) low = -low;
  const auto [distance, entry] = near(std::fabs(x));
  const double rest = distance + low, square = rest * rest, s = std::fma(rest * square, cubic(square), rest);
  const double c = versine(square), cosine_of = from_bits(entry[2]);
  const double part = std::fma(-c, cosine_of, std::fma(-s, from_bits(entry[1]), from_bits(entry[3])));
  return cosine_of + std::fma(-s, from_bits(entry[0]), part);
}

inline double turned(const Angle& angle, int quarter) {
  const int turns = angle.turns + quarter;
  const double result = turns & 1 ? cosine(angle.high, angle.low) : sine(angle.high, angle.low);
  return turns & 2 ? -result : result;
}

inline uint32_t high_word(double x) { return static_cast<uint32_t>(bits_of(x) >> 32) & 0x7fffffffu; }

}  // namespace circle

inline double sin(double x) {
  const uint32_t size = circle::high_word(x);
  if (size < 0x3e500000u) return x;
  if (size < 0x3feb6000u) return circle::sine(x, 0.0);
  if (size < 0x400368fdu) {
    return std::copysign(circle::cosine(circle::kHalfPi - std::fabs(x), circle::kHalfPiLow), x);
  }
  if (size >= 0x7ff00000u) return x != x ? x + x : without_value();
  return circle::turned(size < 0x419921fbu ? circle::reduced(x) : circle::reduced_far(x), 0);
}

inline double cos(double x) {
  const uint32_t size = circle::high_word(x);
  if (size < 0x3e400000u) return 1.0;
  if (size < 0x3feb6000u) return circle::cosine(x, 0.0);
  if (size < 0x400368fdu) {
    const double y = circle::kHalfPi - std::fabs(x), angle = y + circle::kHalfPiLow;
    return circle::sine(angle, (y - angle) + circle::kHalfPiLow);
  }
  if (size >= 0x7ff00000u) return x != x ? x + x : without_value();
  return circle::turned(size < 0x419921fbu ? circle::reduced(x) : circle::reduced_far(x), 1);
}

inline double tanh(double x) { return x == x ? binary64::tanh<true>(x) : x + x; }

}  // namespace bittrue::arithmetic::wide

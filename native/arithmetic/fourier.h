// Twin of src/bittrue/arithmetic/fourier.py: Fourier transforms of power-of-two lengths in binary64, pinned to the order of
// their roundings.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace bittrue::arithmetic {

// Numbers of two transforms side by side, and complex ones. What they are made of is in the same order for both.
typedef double Pair __attribute__((vector_size(16)));
struct Pairs {
  Pair re, im;
};

namespace fourier_detail {

inline const double kEighth = std::cos(std::atan(1.0));

inline Pairs operator+(const Pairs& a, const Pairs& b) { return {a.re + b.re, a.im + b.im}; }
inline Pairs operator-(const Pairs& a, const Pairs& b) { return {a.re - b.re, a.im - b.im}; }
inline Pairs operator-(const Pairs& a) { return {-a.re, -a.im}; }
inline Pairs times(const Pairs& z, double re, double im) { return {re * z.re - im * z.im, re * z.im + im * z.re}; }
// The same with the second product of each part rounded alone.
inline Pairs times_joined(const Pairs& z, double re, double im) {
  Pairs found;
  for (int i = 0; i < 2; ++i) {
    found.re[i] = std::fma(re, z.re[i], -(im * z.im[i]));
    found.im[i] = std::fma(re, z.im[i], im * z.re[i]);
  }
  return found;
}
inline Pairs turned(const Pairs& z) { return {-z.im, z.re}; }
inline Pairs eighth(const Pairs& z) { return {kEighth * (z.re - z.im), kEighth * (z.im + z.re)}; }
// exp(-i pi / 4) * z, and exp(3 i pi / 4) * z.
inline Pairs eighth_back(const Pairs& z) { return {kEighth * (z.re + z.im), kEighth * (z.im - z.re)}; }
inline Pairs three_eighths(const Pairs& z) { return {-kEighth * (z.re + z.im), -kEighth * (z.im - z.re)}; }

inline void four(const Pairs& x0, const Pairs& x1, const Pairs& x2, const Pairs& x3, Pairs* out) {
  const Pairs side = turned(x3);
  out[0] = x0 + x2, out[1] = x0 - x2, out[2] = x1 + side, out[3] = x1 - side;
}

// cos a, sin a, cos 3a, -sin 3a.
struct Powers {
  double c1, s1, c3, s3;
};

}  // namespace fourier_detail

// Transforms of `points` complex numbers, and of twice as many real ones.
class Fourier {
 public:
  explicit Fourier(int64_t points, bool joined = false) : points_(points), joined_(joined) {
    using fourier_detail::kEighth;
    order_.assign(1, 0);
    while (static_cast<int64_t>(order_.size()) < points) {
      const size_t half = order_.size();
      for (int64_t& place : order_) place *= 2;
      for (size_t i = 0; i < half; ++i) order_.push_back(order_[i] + 1);
    }
    for (int64_t length = 1; length <= points || length <= 16; length *= 2) tables_.push_back(powers(length));
    if (points > 16) first_ = first_powers(points / 4);
    // (1 - sin a) / 2 and cos(a) / 2 of the last pass of real numbers.
    const int64_t pairs = points / 2, half = pairs / 2;
    if (pairs < 2) return;
    const double delta = std::atan(1.0) / static_cast<double>(half);
    real_.assign(static_cast<size_t>(pairs + 1), 0.0);
    for (int64_t j = 1; j < half; ++j) {
      real_[j] = 0.5 * std::cos(delta * static_cast<double>(j));
      real_[pairs - j] = 0.5 * std::sin(delta * static_cast<double>(j));
    }
    real_[half] = 0.5 * std::cos(delta * static_cast<double>(half));
  }

  int64_t points() const { return points_; }

  // out[k] = sum x[j] exp(+2 pi i j k / points); `x` is used up.
  void transform(Pairs* x, Pairs* out) const {
    using namespace fourier_detail;
    if (points_ == 1) {
      out[0] = x[0];
    } else if (points_ == 2) {
      out[0] = x[0] + x[1], out[1] = x[0] - x[1];
    } else if (points_ == 4) {
      Pairs found[4];
      four(x[0] + x[2], x[0] - x[2], x[1] + x[3], x[1] - x[3], found);
      out[0] = found[0], out[1] = found[2], out[2] = found[1], out[3] = found[3];
    } else {
      passes(x, points_, false);
      for (int64_t k = 0; k < points_; ++k) out[k] = x[order_[k]];
    }
  }

  // The frequencies below `points` of real numbers, of which `x` has the even ones as real and the odd ones as imaginary
  // parts. The imaginary part at 0 holds the real one at `points`.
  void real_transform(Pairs* x, Pairs* out) const {
    using namespace fourier_detail;
    transform(x, out);
    for (int64_t j = 1; j < points_ / 2; ++j) {
      const Pairs near = out[j], far = out[points_ - j];
      const Pairs y = times({near.re - far.re, near.im + far.im}, 0.5 - real_[points_ / 2 - j], real_[j]);
      out[j] = near - y;
      out[points_ - j] = Pairs{far.re + y.re, far.im - y.im};
    }
    out[0] = Pairs{out[0].re + out[0].im, out[0].re - out[0].im};
  }

 private:
  using Powers = fourier_detail::Powers;

  Pairs times(const Pairs& z, double re, double im) const {
    return joined_ ? fourier_detail::times_joined(z, re, im) : fourier_detail::times(z, re, im);
  }

  static std::vector<Powers> powers(int64_t length) {
    const double delta = std::atan(1.0) / static_cast<double>(length);
    std::vector<Powers> result;
    for (int64_t place = 0; place < length; place += 4) {
      const double j = static_cast<double>(place);
      result.push_back({std::cos(delta * j), std::sin(delta * j), std::cos(3 * delta * j), -std::sin(3 * delta * j)});
    }
    return result;
  }

  // Of the first pass: every second factor between two of a short table.
  static std::vector<Powers> first_powers(int64_t quarter) {
    using fourier_detail::kEighth;
    const double delta = std::atan(1.0) / static_cast<double>(quarter);
    const double one = 0.5 / std::cos(delta * 2), three = 0.5 / std::cos(delta * 6);
    std::vector<Powers> known = powers(quarter), result;
    known[0] = {1.0, 0.0, 1.0, 0.0};
    known.push_back({kEighth, kEighth, -kEighth, -kEighth});
    for (size_t i = 0; i + 1 < known.size(); ++i) {
      const Powers &a = known[i], &b = known[i + 1];
      result.push_back(a);
      result.push_back({one * (a.c1 + b.c1), one * (a.s1 + b.s1), three * (a.c3 + b.c3), three * (a.s3 + b.s3)});
    }
    return result;
  }

  const Powers* table(int64_t length) const {
    size_t i = 0;
    while (int64_t{1} << i < length) ++i;
    return tables_[i].data();
  }

  // Frequencies in bit-reversed order. Parts of a block are plain, shifted, plain, and what it is.
  void passes(Pairs* x, int64_t size, bool shifted) const {
    if (size <= 16) {
      size == 16 ? (shifted ? shifted_16(x) : plain_16(x)) : (shifted ? shifted_8(x) : plain_8(x));
      return;
    }
    const int64_t quarter = size / 4;
    if (shifted) {
      shifted_pass(x, quarter, table(size));
    } else {
      plain_pass(x, quarter, size == points_ ? first_.data() : table(2 * quarter));
    }
    passes(x, quarter, false);
    passes(x + quarter, quarter, true);
    passes(x + 2 * quarter, quarter, false);
    passes(x + 3 * quarter, quarter, shifted);
  }

  // What position j of a plain block gives before it is multiplied by powers.
  static void plain(Pairs* x, int64_t quarter, Pairs* forward, Pairs* backward) {
    using namespace fourier_detail;
    const Pairs x0 = x[0], x1 = x[quarter], x2 = x[2 * quarter], x3 = x[3 * quarter];
    const Pairs even = x0 + x2, odd = x1 + x3, less = x0 - x2, rest = turned(x1 - x3);
    x[0] = even + odd, x[quarter] = even - odd;
    *forward = less + rest, *backward = less - rest;
  }

  void plain_pass(Pairs* x, int64_t quarter, const Powers* powers) const {
    using namespace fourier_detail;
    Pairs *first = x + 2 * quarter, *second = x + 3 * quarter;
    Pairs forward, backward;
    const int64_t half = quarter / 2;
    plain(x, quarter, first, second);
    for (int64_t j = 1; j < half; ++j) {
      const Powers& w = powers[j];
      plain(x + j, quarter, &forward, &backward);
      first[j] = times(forward, w.c1, w.s1), second[j] = times(backward, w.c3, -w.s3);
      const int64_t mirrored = quarter - j;
      plain(x + mirrored, quarter, &forward, &backward);
      first[mirrored] = times(forward, w.s1, w.c1), second[mirrored] = times(backward, w.s3, -w.c3);
    }
    plain(x + half, quarter, &forward, &backward);
    first[half] = eighth(forward), second[half] = three_eighths(backward);
  }

  void shifted_pass(Pairs* x, int64_t quarter, const Powers* powers) const {
    using namespace fourier_detail;
    const int64_t half = quarter / 2;
    for (int64_t j = 0; j < quarter; ++j) {
      Pairs* at = x + j;
      const Pairs x0 = at[0], x1 = at[quarter], side = turned(at[2 * quarter]), other = turned(at[3 * quarter]);
      const Pairs up = x0 + side, down = x0 - side, other_up = x1 + other, other_down = x1 - other;
      Pairs one, two, three, four;
      if (j == 0) {
        one = up, two = eighth(other_up), three = down, four = turned(eighth(other_down));
      } else {
        const Powers &w = powers[j], &m = powers[quarter - j];
        one = times(up, w.c1, w.s1), two = times(other_up, m.s1, m.c1);
        if (j == half) {
          three = times(down, w.s1, w.c1), four = -times(other_down, w.c1, w.s1);
        } else {
          three = times(down, w.c3, -w.s3), four = times(other_down, m.s3, -m.c3);
        }
      }
      at[0] = one + two, at[quarter] = one - two, at[2 * quarter] = three + four, at[3 * quarter] = three - four;
    }
  }

  void plain_16(Pairs* x) const {
    using namespace fourier_detail;
    const Powers& w = tables_[3][1];
    Pairs f[4], b[4];
    for (int64_t j = 0; j < 4; ++j) plain(x + j, 4, f + j, b + j);
    const Pairs y[4] = {x[0], x[1], x[2], x[3]}, s[4] = {x[4], x[5], x[6], x[7]};
    f[1] = times(f[1], w.c1, w.s1), f[2] = eighth(f[2]), f[3] = times(f[3], w.s1, w.c1);
    b[1] = times(b[1], w.s1, w.c1), b[3] = times(b[3], w.c1, w.s1), b[2] = eighth_back(b[2]);
    const Pairs side = turned(s[3]), middle = turned(s[2]);
    four(y[0] + y[2], y[0] - y[2], y[1] + y[3], y[1] - y[3], x);
    four(s[0] + middle, s[0] - middle, eighth(s[1] + side), eighth(s[1] - side), x + 4);
    four(f[0] + f[2], f[0] - f[2], f[1] + f[3], f[1] - f[3], x + 8);
    four(b[0] - b[2], b[0] + b[2], b[1] - b[3], b[1] + b[3], x + 12);
  }

  void shifted_16(Pairs* x) const {
    using namespace fourier_detail;
    const Powers &w = tables_[4][1], &v = tables_[4][2];
    const double s3 = -w.s3;
    Pairs p[4], q[4], r[4], t[4];
    for (int64_t j = 0; j < 4; ++j) {
      const Pairs side = turned(x[8 + j]), other = turned(x[12 + j]);
      p[j] = x[j] + side, r[j] = x[j] - side, q[j] = x[4 + j] + other, t[j] = x[4 + j] - other;
    }
    q[0] = eighth(q[0]), t[0] = turned(eighth(t[0]));
    p[1] = times(p[1], w.c1, w.s1), q[1] = times(q[1], s3, w.c3);
    r[1] = times(r[1], w.c3, s3), t[1] = times(t[1], w.c1, -w.s1);
    p[2] = times(p[2], v.c1, v.s1), q[2] = times(q[2], v.s1, v.c1);
    r[2] = times(r[2], v.s1, v.c1), t[2] = times(t[2], v.c1, v.s1);
    p[3] = times(p[3], w.c3, s3), q[3] = times(q[3], w.s1, w.c1);
    r[3] = times(r[3], w.s1, -w.c1), t[3] = times(t[3], s3, w.c3);
    Pairs y[4], s[4];
    for (int64_t j = 0; j < 4; ++j) y[j] = p[j] + q[j], s[j] = p[j] - q[j];
    const Pairs f[4] = {r[0] + t[0], r[1] - t[1], r[2] - t[2], r[3] + t[3]};
    const Pairs b[4] = {r[0] - t[0], r[1] + t[1], r[2] + t[2], r[3] - t[3]};
    const Pairs side = turned(s[3]), back = turned(b[3]), middle = turned(s[2]), end = turned(b[2]);
    four(y[0] + y[2], y[0] - y[2], y[1] + y[3], y[1] - y[3], x);
    four(s[0] + middle, s[0] - middle, eighth(s[1] + side), eighth(s[1] - side), x + 4);
    four(f[0] + f[2], f[0] - f[2], f[1] - f[3], f[1] + f[3], x + 8);
    four(b[0] + end, b[0] - end, eighth(b[1] - back), eighth(b[1] + back), x + 12);
  }

  void plain_8(Pairs* x) const {
    using namespace fourier_detail;
    const Pairs one = turned(x[2] - x[6]), two = turned(x[3] - x[7]), less = x[0] - x[4], other = x[1] - x[5];
    const Pairs y0 = x[0] + x[4], y1 = x[2] + x[6], y2 = x[1] + x[5], y3 = x[3] + x[7];
    four(y0 + y1, y0 - y1, y2 + y3, y2 - y3, x);
    four(less + one, less - one, eighth(other + two), eighth(other - two), x + 4);
  }

  void shifted_8(Pairs* x) const {
    using namespace fourier_detail;
    const Powers& w = tables_[3][1];
    Pairs up[4], down[4];
    for (int64_t j = 0; j < 4; ++j) {
      const Pairs side = turned(x[4 + j]);
      up[j] = x[j] + side, down[j] = x[j] - side;
    }
    const Pairs y2 = eighth(up[2]), y3 = turned(eighth(down[2]));
    const Pairs y4 = times(up[1], w.c1, w.s1), y5 = times(down[1], w.s1, w.c1);
    const Pairs y6 = times(up[3], w.s1, w.c1), y7 = times(down[3], w.c1, w.s1);
    four(up[0] + y2, up[0] - y2, y4 + y6, y4 - y6, x);
    four(down[0] + y3, down[0] - y3, y5 - y7, y5 + y7, x + 4);
  }

  int64_t points_;
  bool joined_;
  std::vector<int64_t> order_;
  std::vector<std::vector<Powers>> tables_;  // by the logarithm of their length
  std::vector<Powers> first_;
  std::vector<double> real_;
};

}  // namespace bittrue::arithmetic

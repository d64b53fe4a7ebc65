// Seeded random material for the test of the cores: numbers, buffers that show writes past their end, requantizations.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "isa/cores.h"

namespace bittrue::test {

// SplitMix64: a published generator of few lines, the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % (static_cast<uint64_t>(high - low) + 1));
  }
  bool one_in(int n) { return next() % static_cast<uint64_t>(n) == 0; }
  template <class T, size_t count>
  T pick(const T (&values)[count]) {
    return values[next() % count];
  }

 private:
  uint64_t state_;
};

// An array of exactly `count` elements on the heap, so that AddressSanitizer sees every access outside of it, at an
// address that is a multiple of its element's size only.
template <class T>
class Exact {
 public:
  explicit Exact(int64_t count) : count_(count), data_(static_cast<T*>(std::malloc(count * sizeof(T) + sizeof(T)))) {
    // Off the allocator's alignment; the end of the array is the end of the allocation.
    std::memset(static_cast<void*>(data_), 0, count * sizeof(T) + sizeof(T));
  }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;
  Exact(Exact&& other) noexcept : count_(other.count_), data_(other.data_) { other.data_ = nullptr; }
  ~Exact() { std::free(data_); }
  T* data() { return data_ + 1; }
  const T* data() const { return data_ + 1; }
  T& operator[](int64_t i) { return data_[i + 1]; }
  const T& operator[](int64_t i) const { return data_[i + 1]; }
  int64_t count() const { return count_; }

 private:
  int64_t count_;
  T* data_;
};

inline void fill_bytes(Random& random, Exact<uint8_t>& bytes) {
  const int64_t kind = random.between(0, 5);
  for (int64_t i = 0; i < bytes.count(); ++i) {
    bytes[i] = static_cast<uint8_t>(kind == 0 ? 255 : kind == 1 ? (random.next() & 1) * 255 : random.next());
  }
}

constexpr rules::RescaleRule kRescaleRules[] = {
    rules::RescaleRule::q31_two_step_up_away,
    rules::RescaleRule::q31_two_step_up_up,
    rules::RescaleRule::q31_one_step_up,
    rules::RescaleRule::q31_one_step_up_shift_wraps,
    rules::RescaleRule::q15_one_step_up,
    rules::RescaleRule::binary64_multiply_away,
    rules::RescaleRule::binary32_multiply_even,
    rules::RescaleRule::q31_one_step_up_wrap,
    rules::RescaleRule::q31_shift_or_one_step_up,
    rules::RescaleRule::q31_one_step_away,
    rules::RescaleRule::binary32_add_multiply_even,
    rules::RescaleRule::binary32_add_multiply_twice_even,
};
constexpr rules::StoreRule kStoreRules[] = {rules::StoreRule::zero_point_then_clamp,
                                            rules::StoreRule::clamp_then_zero_point};

// A multiplier that takes accumulators of about `size` to some 100 steps, or one from the edges of what plans hold.
inline rules::Multiplier some_multiplier(Random& random, rules::RescaleRule rule, double size, bool extreme) {
  const double real = std::exp2(static_cast<double>(random.between(-300, 300)) / 100) * 100 / (size + 1);
  int exponent = 0;
  const double fraction = std::frexp(real, &exponent);
  const int bits = rule == rules::RescaleRule::q15_one_step_up ? 15 : 31;
  rules::Multiplier m{std::llround(std::ldexp(fraction, bits)), exponent, real};
  if (m.multiplier == int64_t{1} << bits) m = {m.multiplier / 2, exponent + 1, real};
  if (rule == rules::RescaleRule::binary32_multiply_even) m.factor = static_cast<float>(real);
  if (extreme) {
    const int64_t one = int64_t{1} << (bits - 1);
    const int64_t multipliers[] = {
        one, 2 * one - 1, one + 1, one + random.between(0, one - 1), 0, one * 3 / 2, 2 * one - random.between(1, 1024)};
    m.multiplier = random.pick(multipliers);
    m.exponent = static_cast<int>(bits == 15         ? random.between(-30, 7)
                                  : random.one_in(3) ? random.between(-8, 0)
                                                     : random.between(-45, 8));
    const double factors[] = {
        0.5, 1.5,          0.5 - 0x1p-54, 1.5 - 0x1p-52, 0.0, std::ldexp(1.0, m.exponent), std::ldexp(1.0, -60),
        1e9, 0x1.fffffep-9};
    m.factor = random.pick(factors);
  }
  if (rules::traits(rule).has(rules::kAddend)) {
    const auto most = static_cast<int64_t>(std::min(size, 2147483647.0));
    const auto whole = static_cast<float>(random.between(-most, most));
    m.addend = extreme && random.one_in(4) ? -0x1p31f : random.one_in(2) ? whole : whole / 2;
  }
  if (rules::traits(rule).has(rules::kSecond)) {
    m.second = static_cast<float>(std::exp2(static_cast<double>(random.between(-300, 300)) / 100));
    m.factor /= static_cast<double>(m.second);
  }
  return m;
}

// `columns` is 1 for one multiplier that all columns share. `bound` < 0: nothing is proven.
inline rules::Requantize some_requantize(Random& random, rules::RescaleRule rule, rules::StoreRule store,
                                         int64_t columns, double size, double bound) {
  rules::Requantize r;
  r.rescale = rule;
  r.store = store;
  const int extreme = static_cast<int>(random.between(0, 3));  // 0: all, 1: some, otherwise none
  for (int64_t i = 0; i < columns; ++i) {
    r.multipliers.push_back(some_multiplier(random, rule, size, extreme == 0 || (extreme == 1 && random.one_in(8))));
  }
  if (bound >= 0 && bound < 0x1p31 && !random.one_in(4)) {
    r.bound = static_cast<int64_t>(bound) + 1;
    r.wraps = false;
  }
  r.flip = random.one_in(2) ? 128 : 0;
  const int32_t least = r.flip == 0 ? 0 : -128, most = least + 255;
  r.zero_point = static_cast<int32_t>(random.one_in(4) ? least : random.between(least, most));
  r.low = least;
  r.high = most;
  switch (random.between(0, 3)) {
    case 0: r.low = r.zero_point; break;
    case 1: {
      r.low = static_cast<int32_t>(random.between(least, most));
      r.high = static_cast<int32_t>(random.one_in(16) ? random.between(least, most) : random.between(r.low, most));
      break;
    }
    default: break;
  }
  return r;
}

inline std::string describe(const rules::Requantize& r) {
  char text[200];
  std::snprintf(
      text, sizeof text, "%s store %d zero point %d clamp [%d, %d] flip %d %s %zu multipliers, first %lld e %d f %a",
      rules::kRescale[static_cast<int>(r.rescale)].name, static_cast<int>(r.store), r.zero_point, r.low, r.high, r.flip,
      r.wraps ? "unproven" : "bounded", r.multipliers.size(), static_cast<long long>(r.multipliers[0].multiplier),
      r.multipliers[0].exponent, r.multipliers[0].factor);
  return text;
}

// Numbers of elements around the widths of vectors.
inline constexpr int64_t kCounts[] = {1,  2,  7,  8,   9,   15,  16,  17,  31,  32,  33,
                                      63, 64, 65, 127, 129, 255, 256, 257, 521, 1031};

}  // namespace bittrue::test

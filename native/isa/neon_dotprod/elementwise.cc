// Element-wise cores: sums and products of two operands, maxima, sums, tables, requantization of finished sums.
#include <algorithm>
#include <utility>

#include "isa/neon_dotprod/cores.h"
#include "isa/neon_dotprod/requantize.h"
#include "isa/portable/aligned_values.h"
#include "isa/portable/cores.h"

namespace bittrue::neon_dotprod {
namespace {

constexpr int64_t kFirstColumn[16] = {};

// 16 elements of two operands as words, less their zero points.
struct Differences {
  int16x8_t first[2], second[2];
};

inline Differences differences(uint8x16_t a, uint8x16_t b, uint8x16_t first, uint8x16_t second) {
  const auto less = [](uint8x16_t bytes, uint8x16_t zero_point, int half) __attribute__((always_inline)) {
    return vreinterpretq_s16_u16(half == 0 ? vsubl_u8(vget_low_u8(bytes), vget_low_u8(zero_point))
                                           : vsubl_high_u8(bytes, zero_point));
  };
  return {{less(a, first, 0), less(a, first, 1)}, {less(b, second, 0), less(b, second, 1)}};
}

// The last `count` elements lie in arrays of 16.
template <class Combine>
inline void each16(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count, const Combine& combine) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) vst1q_u8(out + i, combine(vld1q_u8(first + i), vld1q_u8(second + i)));
  if (i == count) return;
  const int64_t rest = count - i;
  store_part(out + i, combine(load_part(first + i, rest), load_part(second + i, rest)), rest);
}

// The sums of two aligned operands, modulo 2^32. Rounding away from zero is another addend below it:
// -((-q * low + half) >> 22) is (q * low + 2^22 - 1 - half) >> 22.
struct AlignedSum {
  struct Operand {
    uint32_t high = 0, low = 0, half = 0, below = 0;
    uint8_t zero_point = 0;
  };
  using Formula = portable::AlignedFormula;

  bool swapped = false, one_exact = false;
  Operand first, second;

  static Operand operand(const Formula& f, int32_t zero_point) {
    const int64_t below = f.shape == Formula::Shape::symmetric ? (1 << Formula::kFraction) - 1 - 2 * f.half : 0;
    return {static_cast<uint32_t>(f.high), static_cast<uint32_t>(f.low), static_cast<uint32_t>(f.half),
            static_cast<uint32_t>(below), static_cast<uint8_t>(zero_point)};
  }

  // Adds the part behind the point.
  static uint32x4_t add_rounded(uint32x4_t sum, int32x4_t q, const Operand& operand) {
    const uint32x4_t word = vreinterpretq_u32_s32(q), negative = vreinterpretq_u32_s32(vshrq_n_s32(q, 31));
    uint32x4_t fraction = vmlaq_u32(vdupq_n_u32(operand.half), word, vdupq_n_u32(operand.low));
    fraction = vmlsq_u32(fraction, negative, vdupq_n_u32(operand.below));
    return vreinterpretq_u32_s32(
        vsraq_n_s32(vreinterpretq_s32_u32(sum), vreinterpretq_s32_u32(fraction), Formula::kFraction));
  }

  // The first operand is exact, or both are rounded.
  template <bool exact>
  int32x4_t operator()(int32x4_t a, int32x4_t b) const {
    uint32x4_t sum = vmulq_u32(vreinterpretq_u32_s32(a), vdupq_n_u32(first.high));
    sum = vmlaq_u32(sum, vreinterpretq_u32_s32(b), vdupq_n_u32(second.high));
    if constexpr (!exact) sum = add_rounded(sum, a, first);
    return vreinterpretq_s32_u32(add_rounded(sum, b, second));
  }
};

class VectorAdd final : public Elementwise {
 public:
  VectorAdd(const AlignedSum& sum, const Choice& choice, const Group& group)
      : sum_(sum), choice_(choice), group_(group) {}

  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    if (sum_.swapped) std::swap(first, second);
    with_form(choice_.form, [&](auto form) {
      if constexpr (form.value != Form::scalar) {
        (sum_.one_exact ? rows<form.value, true> : rows<form.value, false>)(*this, first, second, out, count);
      }
    });
  }

 private:
  template <Form form, bool exact>
  static void rows(const VectorAdd& self, const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) {
    const AlignedSum sum = self.sum_;
    const Same same(self.group_);
    const Store store = self.choice_.store();
    const uint8x16_t zero1 = vdupq_n_u8(sum.first.zero_point), zero2 = vdupq_n_u8(sum.second.zero_point);
    each16(first, second, out, count, [&](uint8x16_t a, uint8x16_t b) __attribute__((always_inline)) {
      const Differences d = differences(a, b, zero1, zero2);
      int32x4_t sums[4];
      unroll<2>([&](int half) __attribute__((always_inline)) {
        sums[2 * half] =
            sum.operator()<exact>(vmovl_s16(vget_low_s16(d.first[half])), vmovl_s16(vget_low_s16(d.second[half])));
        sums[2 * half + 1] = sum.operator()<exact>(vmovl_high_s16(d.first[half]), vmovl_high_s16(d.second[half]));
      });
      return requantize16<form>(sums, same, store);
    });
  }

  AlignedSum sum_;
  Choice choice_;
  Group group_;
};

class VectorMul final : public Elementwise {
 public:
  VectorMul(const MulSpec& spec, const Choice& choice, const Group& group)
      : first_(static_cast<uint8_t>(spec.first_zero_point)),
        second_(static_cast<uint8_t>(spec.second_zero_point)),
        choice_(choice),
        group_(group) {}

  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    with_form(choice_.form, [&](auto form) {
      if constexpr (form.value != Form::scalar) {
        const Same same(group_);
        const Store store = choice_.store();
        const uint8x16_t zero1 = vdupq_n_u8(first_), zero2 = vdupq_n_u8(second_);
        each16(first, second, out, count, [&](uint8x16_t a, uint8x16_t b) __attribute__((always_inline)) {
          const Differences d = differences(a, b, zero1, zero2);
          int32x4_t products[4];
          unroll<2>([&](int half) __attribute__((always_inline)) {
            products[2 * half] = vmull_s16(vget_low_s16(d.first[half]), vget_low_s16(d.second[half]));
            products[2 * half + 1] = vmull_high_s16(d.first[half], d.second[half]);
          });
          return requantize16<form.value>(products, same, store);
        });
      }
    });
  }

 private:
  uint8_t first_, second_;
  Choice choice_;
  Group group_;
};

bool is_byte(int32_t number) { return number >= 0 && number <= 255; }

}  // namespace

// Operands without a formula, and rules without a vector form, are left to the portable set.
std::unique_ptr<Elementwise> make_add(const AddSpec& spec) {
  using Shape = portable::AlignedFormula::Shape;
  int64_t values[2][256];
  portable::AlignedFormula formulas[2];
  portable::aligned_values(spec, values[0], values[1]);
  portable::aligned_formulas(spec, values[0], values[1], formulas);
  const Choice choice(spec.requantize);
  if (choice.form == Form::scalar || formulas[0].shape == Shape::none || formulas[1].shape == Shape::none) {
    return nullptr;
  }
  const AlignedSum::Operand operands[2] = {AlignedSum::operand(formulas[0], spec.first_zero_point),
                                           AlignedSum::operand(formulas[1], spec.second_zero_point)};
  AlignedSum sum;
  sum.swapped = formulas[1].shape == Shape::exact;
  sum.one_exact = sum.swapped || formulas[0].shape == Shape::exact;
  sum.first = operands[sum.swapped ? 1 : 0];
  sum.second = operands[sum.swapped ? 0 : 1];
  Group group{};
  choice.fill(spec.requantize, kFirstColumn, group);
  return std::unique_ptr<Elementwise>(new VectorAdd(sum, choice, group));
}

std::unique_ptr<Elementwise> make_mul(const MulSpec& spec) {
  const Choice choice(spec.requantize);
  const bool bytes = is_byte(spec.first_zero_point) && is_byte(spec.second_zero_point);
  if (choice.form == Form::scalar || !bytes) return nullptr;
  Group group{};
  choice.fill(spec.requantize, kFirstColumn, group);
  return std::unique_ptr<Elementwise>(new VectorMul(spec, choice, group));
}

void max_rows(const uint8_t* const* taps, int64_t taps_count, uint8_t* out, int64_t count, int low, int high) {
  const uint8x16_t least = vdupq_n_u8(static_cast<uint8_t>(low)), greatest = vdupq_n_u8(static_cast<uint8_t>(high));
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    uint8x16_t kept[4] = {least, least, least, least};
    for (int64_t k = 0; k < taps_count; ++k) {
      const uint8_t* tap = taps[k] + i;
      unroll<4>([&](int v) __attribute__((always_inline)) { kept[v] = vmaxq_u8(kept[v], vld1q_u8(tap + 16 * v)); });
    }
    unroll<4>([&](int v) __attribute__((always_inline)) { vst1q_u8(out + i + 16 * v, vminq_u8(kept[v], greatest)); });
  }
  for (; i < count; i += 16) {
    const int64_t size = std::min<int64_t>(16, count - i);
    uint8x16_t kept = least;
    for (int64_t k = 0; k < taps_count; ++k) kept = vmaxq_u8(kept, load_part(taps[k] + i, size));
    store_part(out + i, vminq_u8(kept, greatest), size);
  }
}

void sum_rows(const uint8_t* const* taps, int64_t taps_count, int32_t* sums, int64_t count) {
  constexpr int64_t kTaps = 257;  // 257 * 255 < 2^16
  for (int64_t i = 0; i < count; i += 16) {
    const int64_t size = std::min<int64_t>(16, count - i);
    uint32x4_t total[4] = {vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0)};
    for (int64_t k = 0; k < taps_count;) {
      uint16x8_t lower = vdupq_n_u16(0), upper = lower;
      const auto add = [&](uint8x16_t bytes) __attribute__((always_inline)) {
        lower = vaddw_u8(lower, vget_low_u8(bytes));
        upper = vaddw_high_u8(upper, bytes);
      };
      const int64_t end = std::min(taps_count, k + kTaps);
      if (size == 16) {
        for (; k < end; ++k) add(vld1q_u8(taps[k] + i));
      } else {
        for (; k < end; ++k) add(load_part(taps[k] + i, size));
      }
      total[0] = vaddw_u16(total[0], vget_low_u16(lower));
      total[1] = vaddw_high_u16(total[1], lower);
      total[2] = vaddw_u16(total[2], vget_low_u16(upper));
      total[3] = vaddw_high_u16(total[3], upper);
    }
    std::memcpy(sums + i, total, static_cast<size_t>(size) * sizeof(int32_t));
  }
}

void row_terms(const uint8_t* const* rows, int64_t capacity, int64_t segments, int64_t bytes, int64_t count,
               int32_t factor, int32_t* terms) {
  const uint8x16_t ones = vdupq_n_u8(1);
  for (int64_t r = 0; r < count; ++r) {
    uint32x4_t sums = vdupq_n_u32(0);
    for (int64_t s = 0; s < segments; ++s) {
      const uint8_t* row = rows[s * capacity + r];
      int64_t d = 0;
      for (; d + 16 <= bytes; d += 16) sums = vdotq_u32(sums, vld1q_u8(row + d), ones);
      if (d < bytes) sums = vdotq_u32(sums, load_part(row + d, bytes - d), ones);
    }
    terms[r] = static_cast<int32_t>(static_cast<uint32_t>(factor) * vaddvq_u32(sums));
  }
}

// tbl gives 0 and tbx keeps what it has where the index is past the 64 entries.
void lookup(const uint8_t* table, const uint8_t* in, uint8_t* out, int64_t count) {
  const uint8x16x4_t part0 = vld1q_u8_x4(table), part1 = vld1q_u8_x4(table + 64);
  const uint8x16x4_t part2 = vld1q_u8_x4(table + 128), part3 = vld1q_u8_x4(table + 192);
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const uint8x16_t index = vld1q_u8(in + i), step = vdupq_n_u8(64);
    uint8x16_t result = vqtbl4q_u8(part0, index);
    uint8x16_t rest = vsubq_u8(index, step);
    result = vqtbx4q_u8(result, part1, rest);
    rest = vsubq_u8(rest, step);
    result = vqtbx4q_u8(result, part2, rest);
    rest = vsubq_u8(rest, step);
    vst1q_u8(out + i, vqtbx4q_u8(result, part3, rest));
  }
  for (; i < count; ++i) out[i] = table[in[i]];
}

// Columns with multipliers of their own come one by one: their constants would have to be laid out for every row.
void requantize_rows(const rules::Requantize& requantize, const int32_t* acc, int64_t rows, uint8_t* out,
                     int64_t columns) {
  const int64_t count = rows * columns;
  const bool shared = requantize.multipliers.size() == 1 && count >= 8;
  const Choice choice = shared ? Choice(requantize) : Choice();
  if (choice.form == Form::scalar) return portable::requantize_rows(requantize, acc, rows, out, columns);
  Group group{};
  choice.fill(requantize, kFirstColumn, group);
  const Same same(group);
  const Store store = choice.store();
  with_form(choice.form, [&](auto form) {
    if constexpr (form.value != Form::scalar) {
      const auto bytes = [&](const int32_t* from) __attribute__((always_inline)) {
        const int32x4_t sums[4] = {vld1q_s32(from), vld1q_s32(from + 4), vld1q_s32(from + 8), vld1q_s32(from + 12)};
        return requantize16<form.value>(sums, same, store);
      };
      int64_t i = 0;
      for (; i + 16 <= count; i += 16) vst1q_u8(out + i, bytes(acc + i));
      if (i == count) return;
      int32_t rest[16] = {};
      std::memcpy(rest, acc + i, static_cast<size_t>(count - i) * sizeof(int32_t));
      store_part(out + i, bytes(rest), count - i);
    }
  });
}

}  // namespace bittrue::neon_dotprod

// From 16 accumulators at a time to stored bytes: the vector forms of rules::requantize.
//
// vqrdmulh is floor(a * M / 2^31 + 1/2) for M >= 0, and vrshl by a negative amount is floor(x / 2^e + 1/2): the two steps
// of the q31 rules as they stand. Ties away from zero at the second step need 1 less for negative x where e > 0. One-step
// rules multiply to 64 bits and shift those; where they drop the fraction of the high half, vqdmulh does that.
//
// The plain forms are for columns that all shift to the right (or have small factors), so that results stay within 2^30: their
// sum with the zero point overflows nowhere, it may saturate at 16 bits, and one clamp of bytes at the end is all there is.
// Then one step is vqdmulh, which is floor(a * M / 2^31), and vrshl: a floor inside of another one changes nothing.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "isa/neon_dotprod/vectors.h"
#include "isa/portable/scalar_requantize.h"
#include "isa/tools.h"
#include "rules/requantize.h"

namespace bittrue::neon_dotprod {

enum class Form : uint8_t {
  plain_two_step_away,
  plain_two_step_up,
  plain_one_step,
  plain_binary64,
  plain_binary32,
  two_step_away,
  two_step_up,
  one_step,
  binary64,
  binary32,
  binary32_after_sum,
  one_step_of_high,
  scalar
};

constexpr bool is_plain(Form form) { return form <= Form::plain_binary32; }
constexpr Form without_plain(Form form) {
  return is_plain(form) ? static_cast<Form>(static_cast<int>(form) + static_cast<int>(Form::two_step_away)) : form;
}
// Without shifts to the left both one-step rules are the same.
constexpr Form with_plain(Form form) {
  return form == Form::one_step_of_high
             ? Form::plain_one_step
             : static_cast<Form>(static_cast<int>(form) - static_cast<int>(Form::two_step_away));
}

template <class Function>
static inline void with_form(Form form, Function&& function) {
  with_constant<Form, Form::plain_two_step_away, Form::plain_two_step_up, Form::plain_one_step, Form::plain_binary64,
                Form::plain_binary32, Form::two_step_away, Form::two_step_up, Form::one_step, Form::binary64,
                Form::binary32, Form::binary32_after_sum, Form::one_step_of_high, Form::scalar>(
      form, std::forward<Function>(function));
}

// The constants of four accumulators.
struct Four {
  float64x2_t factor[2];
  float32x4_t factor32, addend, second;
  int32x4_t multiplier, left, right;
};

// The constants of 16 accumulators.
struct alignas(64) Group {
  double factor[16];
  float factor32[16], addend[16], second[16];
  int32_t multiplier[16];
  int32_t left[16];
  int32_t right[16];  // negative: vrshl shifts to the left
  int64_t columns[16];

  // Accumulators 4 * quarter and following; what a form does not use is not loaded.
  __attribute__((always_inline)) Four operator()(int quarter) const {
    const int i = 4 * quarter;
    return {{vld1q_f64(factor + i), vld1q_f64(factor + i + 2)},
            vld1q_f32(factor32 + i),
            vld1q_f32(addend + i),
            vld1q_f32(second + i),
            vld1q_s32(multiplier + i),
            vld1q_s32(left + i),
            vld1q_s32(right + i)};
  }
};

// Where one column stands for all: constants that stay in registers.
struct Same {
  Four four;

  explicit Same(const Group& group) : four(group(0)) {}
  const Four& operator()(int) const { return four; }
};

// What all columns share.
struct Store {
  int32x4_t zero_point;             // added to the rescaled accumulators as 32-bit words ...
  int32x4_t first_low, first_high;  // ... after this clamp (the whole range unless the rule clamps first)
  int16x8_t flip;                   // of plain forms the zero point, too
  uint8x16_t low, high;
};

// The form of one rules::Requantize, and what all its columns share.
struct Choice {
  Form form = Form::scalar;
  int32_t zero_point = 0, first_low = INT32_MIN, first_high = INT32_MAX, flip = 0;
  int low = 0, high = 255;

  Choice() = default;
  explicit Choice(const rules::Requantize& requantize);
  // Accumulator i belongs to column columns[i]; -1 marks unused ones.
  void fill(const rules::Requantize& requantize, const int64_t* columns, Group& group) const;

  Store store() const {
    return {vdupq_n_s32(zero_point),
            vdupq_n_s32(first_low),
            vdupq_n_s32(first_high),
            vdupq_n_s16(static_cast<int16_t>(flip)),
            vdupq_n_u8(static_cast<uint8_t>(low)),
            vdupq_n_u8(static_cast<uint8_t>(high))};
  }
};

// A choice with the constants of all its columns.
class Requantizer {
 public:
  // columns[16 * g + i] belongs to accumulator i of group g. `requantize` need not outlive the call.
  Requantizer(const rules::Requantize& requantize, const int64_t* columns, int64_t groups);
  Requantizer(const Requantizer&) = delete;
  Requantizer& operator=(const Requantizer&) = delete;
  ~Requantizer() { portable::release(general_); }

  Form form() const { return choice_.form; }
  Store store() const { return choice_.store(); }
  const Group& group(int64_t i) const { return groups_.data()[i]; }
  // For the form `scalar`: 16 bytes of 16 accumulators.
  void requantize_scalar(const int32_t* acc, const Group& group, uint8_t* out) const;

 private:
  const Choice choice_;
  AlignedArray<Group> groups_;
  const rules::Requantize* general_;
};

// Modulo 2^32: compilers may take vaddq_s32 for a sum that does not overflow.
static inline int32x4_t add_wrapping(int32x4_t a, int32x4_t b) {
  return vreinterpretq_s32_u32(vaddq_u32(vreinterpretq_u32_s32(a), vreinterpretq_u32_s32(b)));
}

// Four accumulators, rescaled.
template <Form form>
static inline int32x4_t rescale4(int32x4_t acc, const Four& c) {
  constexpr Form way = without_plain(form);
  static_assert(form != Form::scalar);
  if constexpr (way == Form::two_step_away || way == Form::two_step_up) {
    if constexpr (!is_plain(form)) acc = vshlq_s32(acc, c.left);
    int32x4_t high = vqrdmulhq_s32(acc, c.multiplier);
    // Never -2^31. The sign of high & right is negative where high is, and right is not 0.
    if constexpr (way == Form::two_step_away) {
      high = vsraq_n_s32(high, is_plain(form) ? high : vandq_s32(high, c.right), 31);
    }
    return vrshlq_s32(high, c.right);
  } else if constexpr (form == Form::plain_one_step || form == Form::one_step_of_high) {
    if constexpr (!is_plain(form)) acc = vshlq_s32(acc, c.left);
    return vrshlq_s32(vqdmulhq_s32(acc, c.multiplier), c.right);
  } else if constexpr (form == Form::one_step) {
    const int64x2_t lower = vmull_s32(vget_low_s32(acc), vget_low_s32(c.multiplier));
    const int64x2_t upper = vmull_high_s32(acc, c.multiplier);
    return vmovn_high_s64(vmovn_s64(vrshlq_s64(lower, vmovl_s32(vget_low_s32(c.right)))),
                          vrshlq_s64(upper, vmovl_high_s32(c.right)));
  } else if constexpr (way == Form::binary64) {
    // rules::binary64_multiply_away; what does not fit 32 bits becomes -2^31.
    const auto two = [&](int64x2_t a, float64x2_t factor) __attribute__((always_inline)) {
      const float64x2_t product = vmulq_f64(vcvtq_f64_s64(a), factor);
      if constexpr (is_plain(form)) return vcvtaq_s64_f64(product);
      const float64x2_t rounded = vrndaq_f64(product);
      const uint64x2_t fits =
          vandq_u64(vcgeq_f64(rounded, vdupq_n_f64(-0x1p31)), vcltq_f64(rounded, vdupq_n_f64(0x1p31)));
      return vbslq_s64(fits, vcvtq_s64_f64(rounded), vdupq_n_s64(INT32_MIN));
    };
    return vmovn_high_s64(vmovn_s64(two(vmovl_s32(vget_low_s32(acc)), c.factor[0])),
                          two(vmovl_high_s32(acc), c.factor[1]));
  } else {
    // The conversion rounds ties to even and saturates, as rules::binary32_multiply_even does.
    float32x4_t real = vcvtq_f32_s32(acc);
    if constexpr (form == Form::binary32_after_sum) {
      real = vmulq_f32(vmulq_f32(vaddq_f32(real, c.addend), c.factor32), c.second);
    } else {
      real = vmulq_f32(real, c.factor32);
    }
    return vcvtnq_s32_f32(real);
  }
}

// 16 stored bytes; `constants` gives those of a quarter. The sum with the zero point is modulo 2^32, as in
// rules::zero_point_then_clamp; saturation is monotone and reaches past the final clamp.
template <Form form, class Constants>
static inline uint8x16_t requantize16(const int32x4_t* acc, const Constants& constants, const Store& store) {
  int32x4_t words[4];
  unroll<4>([&](int quarter) __attribute__((always_inline)) {
    int32x4_t r = rescale4<form>(acc[quarter], constants(quarter));
    if constexpr (!is_plain(form)) {
      r = add_wrapping(vminq_s32(vmaxq_s32(r, store.first_low), store.first_high), store.zero_point);
    }
    words[quarter] = r;
  });
  const int16x8_t lower = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(words[0]), words[1]), store.flip);
  const int16x8_t upper = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(words[2]), words[3]), store.flip);
  return vminq_u8(vmaxq_u8(vqmovun_high_s16(vqmovun_s16(lower), upper), store.low), store.high);
}

// The same of 16 accumulators in memory, for any form.
template <Form form>
static inline uint8x16_t requantize16(const int32_t* acc, const Group& group, const Store& store,
                                      const Requantizer& requantizer) {
  if constexpr (form == Form::scalar) {
    uint8_t bytes[16];
    requantizer.requantize_scalar(acc, group, bytes);
    return vld1q_u8(bytes);
  } else {
    const int32x4_t sums[4] = {vld1q_s32(acc), vld1q_s32(acc + 4), vld1q_s32(acc + 8), vld1q_s32(acc + 12)};
    return requantize16<form>(sums, group, store);
  }
}

}  // namespace bittrue::neon_dotprod

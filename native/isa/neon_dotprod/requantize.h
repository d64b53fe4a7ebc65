// From 16 accumulators at a time to stored bytes: the vector forms of rules::requantize.
//
// vqrdmulh is floor(a * M / 2^31 + 1/2) for M >= 0, and vrshl by a negative amount is floor(x / 2^e + 1/2): the two steps
// of the q31 rules as they stand. Ties away from zero at the second step need 1 less for negative x where e > 0. One-step
// rules multiply to 64 bits and shift those.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "isa/portable/scalar_requantize.h"
#include "isa/tools.h"
#include "rules/requantize.h"

namespace bittrue::neon_dotprod {

enum class Form : uint8_t { two_step_away, two_step_up, one_step, binary64, binary32, scalar };

template <class Function>
static inline void with_form(Form form, Function&& function) {
  with_constant<Form, Form::two_step_away, Form::two_step_up, Form::one_step, Form::binary64, Form::binary32,
                Form::scalar>(form, std::forward<Function>(function));
}

// The constants of 16 accumulators.
struct alignas(64) Group {
  double factor[16];
  float factor32[16];
  int32_t multiplier[16];
  int32_t left[16];
  int32_t right[16];  // negative: vrshl shifts to the left
  int64_t columns[16];
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
};

// A choice with the constants of all its columns.
class Requantizer {
 public:
  // columns[16 * g + i] belongs to accumulator i of group g. `requantize` need not outlive the call.
  Requantizer(const rules::Requantize& requantize, const int64_t* columns, int64_t groups);
  Requantizer(const Requantizer&) = delete;
  Requantizer& operator=(const Requantizer&) = delete;
  ~Requantizer() { portable::release(general_); }

  const Choice& choice() const { return choice_; }
  Form form() const { return choice_.form; }
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

// Accumulators 4 * quarter and following, rescaled.
template <Form form>
static inline int32x4_t rescale4(int32x4_t acc, const Group& group, int quarter) {
  static_assert(form != Form::scalar);
  if constexpr (form == Form::two_step_away || form == Form::two_step_up) {
    const int32x4_t shifted = vshlq_s32(acc, vld1q_s32(group.left + 4 * quarter));
    int32x4_t high = vqrdmulhq_s32(shifted, vld1q_s32(group.multiplier + 4 * quarter));
    const int32x4_t right = vld1q_s32(group.right + 4 * quarter);
    // The sign of high & right is negative where high is, and right is not 0.
    if constexpr (form == Form::two_step_away) high = vqaddq_s32(high, vshrq_n_s32(vandq_s32(high, right), 31));
    return vrshlq_s32(high, right);
  } else if constexpr (form == Form::one_step) {
    const int32x4_t multiplier = vld1q_s32(group.multiplier + 4 * quarter);
    const int32x4_t right = vld1q_s32(group.right + 4 * quarter);
    const int64x2_t lower = vmull_s32(vget_low_s32(acc), vget_low_s32(multiplier));
    const int64x2_t upper = vmull_high_s32(acc, multiplier);
    return vcombine_s32(vmovn_s64(vrshlq_s64(lower, vmovl_s32(vget_low_s32(right)))),
                        vmovn_s64(vrshlq_s64(upper, vmovl_high_s32(right))));
  } else if constexpr (form == Form::binary64) {
    // rules::binary64_multiply_away; what does not fit 32 bits becomes -2^31.
    const auto two = [&](int64x2_t a, const double* factor) {
      const float64x2_t rounded = vrndaq_f64(vmulq_f64(vcvtq_f64_s64(a), vld1q_f64(factor)));
      const uint64x2_t fits =
          vandq_u64(vcgeq_f64(rounded, vdupq_n_f64(-0x1p31)), vcltq_f64(rounded, vdupq_n_f64(0x1p31)));
      return vmovn_s64(vbslq_s64(fits, vcvtq_s64_f64(rounded), vdupq_n_s64(INT32_MIN)));
    };
    return vcombine_s32(two(vmovl_s32(vget_low_s32(acc)), group.factor + 4 * quarter),
                        two(vmovl_high_s32(acc), group.factor + 4 * quarter + 2));
  } else {
    // The conversion rounds ties to even and saturates, as rules::binary32_multiply_even does.
    return vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(acc), vld1q_f32(group.factor32 + 4 * quarter)));
  }
}

// 16 stored bytes. The sum with the zero point is modulo 2^32, as in rules::zero_point_then_clamp; saturation is
// monotone and reaches past the final clamp.
template <Form form>
static inline uint8x16_t requantize16(const int32x4_t* acc, const Group& group, const Choice& choice) {
  int16x4_t words[4];
  for (int quarter = 0; quarter < 4; ++quarter) {
    int32x4_t r = rescale4<form>(acc[quarter], group, quarter);
    r = vminq_s32(vmaxq_s32(r, vdupq_n_s32(choice.first_low)), vdupq_n_s32(choice.first_high));
    words[quarter] = vqmovn_s32(add_wrapping(r, vdupq_n_s32(choice.zero_point)));
  }
  const int16x8_t flip = vdupq_n_s16(static_cast<int16_t>(choice.flip));
  const uint8x8_t lower = vqmovun_s16(vqaddq_s16(vcombine_s16(words[0], words[1]), flip));
  const uint8x8_t upper = vqmovun_s16(vqaddq_s16(vcombine_s16(words[2], words[3]), flip));
  const uint8x16_t bytes = vmaxq_u8(vcombine_u8(lower, upper), vdupq_n_u8(static_cast<uint8_t>(choice.low)));
  return vminq_u8(bytes, vdupq_n_u8(static_cast<uint8_t>(choice.high)));
}

// The same of 16 accumulators in memory, for any form.
template <Form form>
static inline uint8x16_t requantize16(const int32_t* acc, const Group& group, const Requantizer& requantizer) {
  if constexpr (form == Form::scalar) {
    uint8_t bytes[16];
    requantizer.requantize_scalar(acc, group, bytes);
    return vld1q_u8(bytes);
  } else {
    const int32x4_t sums[4] = {vld1q_s32(acc), vld1q_s32(acc + 4), vld1q_s32(acc + 8), vld1q_s32(acc + 12)};
    return requantize16<form>(sums, group, requantizer.choice());
  }
}

// The first `count` (at most 16) bytes.
static inline void store_part(uint8_t* p, uint8x16_t bytes, int64_t count) {
  if (count >= 16) {
    vst1q_u8(p, bytes);
    return;
  }
  uint8_t all[16];
  vst1q_u8(all, bytes);
  std::memcpy(p, all, static_cast<size_t>(count));
}

}  // namespace bittrue::neon_dotprod

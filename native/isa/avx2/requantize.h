// From 16 accumulators at a time to stored bytes: the vector forms of rules::requantize.
//
// With M the multiplier and e >= 0 the right shift, scale = M * 2^-(31+e) and eps = 2^-(e+1), the integer rules are
//   q31_one_step_up       floor(a * scale + 1/2)
//   q31_two_step_up_up    floor(a * scale + 1/2 + eps)                            (e = 0: no eps)
//   q31_two_step_up_away  floor(a * scale + 1/2 + eps), for a < 0 floor(a * scale + 1/2 - eps)
// since nested floors collapse; q15_one_step_up is the first of them with another scale. A binary64 multiply-add that
// rounds down gives floor(y) whenever floor(y) is representable, for it cannot cross it.
//
// `line` gets the floor and the conversion for free: the unsigned word u = a + 2^31 under the exponent word 0x43300000
// is the double 2^52 + u, and the sum is formed on top of 1.5 * 2^20, whose unit in the last place is 2^-32, so the
// upper word of the result is 0x41380000 + floor(y). The constant 1.5 * 2^20 + 1/2 + eps - (2^52 + 2^31) * scale is
// exact in all but some 10^-7 of the multipliers; Requantizer checks that, and |floor(y)| < 2^19 from the proven bound.
// `wide` converts both ways, which needs neither. Where low is the zero point, negative results are clamped anyway and
// the two-step rule needs one constant only.
//
// The `proven` forms are straight lines in binary32, floor(a * slope + offset), which take half the instructions and hold
// only where that is shown: requantization is a monotone step function of the accumulator with at most 255 steps inside
// of the clamp, and so is the line, since all its operations are monotone. Requantizer finds the steps of a `line` form,
// places the offset between them, and compares both forms on both sides of every step and at the ends of the range,
// with the instructions that will run. The slope has two terms where 24 bits of it would move steps: the `short` form has one,
// and a neighbour of the slope where that meets all steps, which is so in nearly all columns.
//
// `product` are the rules in binary32 with one factor where the bound keeps every product within 30 bits.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "isa/avx2/vectors.h"
#include "isa/portable/scalar_requantize.h"
#include "rules/requantize.h"

namespace bittrue::BITTRUE_ISA {

enum class Form : uint8_t {
  proven_short,
  proven,
  proven_by_sign,
  product,
  line,
  line_by_sign,
  wide,
  binary64,
  binary32,
  scalar
};

template <class Function>
static inline void with_form(Form form, Function&& function) {
  with_constant<Form, Form::proven_short, Form::proven, Form::proven_by_sign, Form::product, Form::line,
                Form::line_by_sign, Form::wide, Form::binary64, Form::binary32, Form::scalar>(
      form, std::forward<Function>(function));
}

constexpr bool is_proven(Form form) {
  return form == Form::proven_short || form == Form::proven || form == Form::proven_by_sign;
}
// Whether results are so small that sums with the zero point and its flip are one sum in 16 bits.
constexpr bool is_small(Form form) { return is_proven(form) || form == Form::product; }
constexpr bool is_line(Form form) { return form == Form::line || form == Form::line_by_sign; }

// The constants of 16 accumulators in two vectors. Doubles come in four vectors: those of the even and the odd elements
// of each vector in the line forms, of its lower and upper half otherwise.
struct alignas(64) Group {
  float slope[16], slope_rest[16], offset[16], offset_negative[16];
  double scale[4][4], addend[4][4], addend_negative[4][4];
  int32_t left[16];
  int32_t least[16], greatest[16];  // every accumulator lies between, both included
  int64_t columns[16];              // of bytes
};

// What all columns share.
struct Store {
  __m256i zero_point;             // added to the rescaled accumulators as 32-bit words ...
  __m256i first_low, first_high;  // ... after this clamp (the whole range unless the rule clamps first)
  __m256i flip;                   // 16 bit
  __m256i low, high;              // 8 bit, flipped
  bool plain;                     // words have their zero point, and any byte is within the clamp
};

// The floating-point environment of a form, for as long as the object lives: round down for floor, the default for
// rules that round themselves. The code that depends on it must be in a function that is not inlined into the one that
// holds this object: compilers may move arithmetic across the change of mode.
class RoundingMode {
 public:
  explicit RoundingMode(Form form) : saved_(_mm_getcsr()) {
    const bool floor = is_proven(form) || is_line(form) || form == Form::wide;
    _mm_setcsr(_MM_MASK_MASK | (floor ? _MM_ROUND_DOWN : _MM_ROUND_NEAREST));
  }
  RoundingMode(const RoundingMode&) = delete;
  RoundingMode& operator=(const RoundingMode&) = delete;
  ~RoundingMode() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
};

// Where the accumulators of a column lie, in exact arithmetic; both ends are included.
struct Range {
  double least, greatest;
};

// The form of one rules::Requantize, and what all its columns share.
struct Choice {
  Form form = Form::scalar;
  double greatest = 0;  // |accumulator| is at most this
  int32_t zero_point = 0, first_low = INT32_MIN, first_high = INT32_MAX, flip = 0;
  int low = 0, high = 255;

  // `own`: the range of each column, or null. One that is far from the others, as that of a dead column whose bias is all that
  // it has, then leaves them the fast forms.
  explicit Choice(const rules::Requantize& requantize, const Range* own = nullptr);
  Choice(const rules::Requantize& requantize, double greatest);

  // The line forms take accumulators that were moved by this (modulo 2^32).
  uint32_t offset() const { return is_line(form) ? 0x80000000u : 0; }
  // Takes a proven form in place of a line.
  void prove(Form proven);
  // Makes the constants of 16 accumulators: byte i of pack() belongs to column columns[i], -1 marks unused bytes.
  void fill(const rules::Requantize& requantize, const int64_t* columns, Group& group,
            const Range* own = nullptr) const;

  Store store() const {
    return {_mm256_set1_epi32(zero_point),
            _mm256_set1_epi32(first_low),
            _mm256_set1_epi32(first_high),
            _mm256_set1_epi16(static_cast<short>(flip)),
            _mm256_set1_epi8(static_cast<char>(low)),
            _mm256_set1_epi8(static_cast<char>(high)),
            (is_line(form) || (is_small(form) && flip == 0)) && low == 0 && high == 255};
  }

 private:
  Choice(const rules::Requantize& requantize, double greatest, const Range* own);
};

// A choice with the constants of all its columns.
class Requantizer {
 public:
  // columns[16 * g + i] belongs to byte i of group g. `requantize` need not outlive the call.
  Requantizer(const rules::Requantize& requantize, const Choice& choice, const int64_t* columns, int64_t groups)
      : choice_(choice), general_(portable::copy(requantize)) {
    prepare(requantize, columns, groups, nullptr);
  }
  // `ranges()` gives the range of each column; it is asked only where these are `known`, have multipliers of their own, and
  // what their bound says proves nothing.
  template <class Ranges>
  Requantizer(const rules::Requantize& requantize, const int64_t* columns, int64_t groups, bool known,
              const Ranges& ranges)
      : Requantizer(requantize, Choice(requantize), columns, groups) {
    if (!known || general_->multipliers.size() == 1 || !(is_line(choice_.form) || choice_.form == Form::wide)) return;
    const AlignedArray<Range> own = ranges();
    choice_ = Choice(requantize, own.data());
    prepare(requantize, columns, groups, own.data());
  }
  Requantizer(const Requantizer&) = delete;
  Requantizer& operator=(const Requantizer&) = delete;
  ~Requantizer() { portable::release(general_); }

  Form form() const { return choice_.form; }
  uint32_t offset() const { return choice_.offset(); }
  Store store() const { return choice_.store(); }
  const Group& group(int64_t i) const { return groups_.data()[i]; }
  // For the form `scalar`: 16 bytes of 16 accumulators.
  void requantize_scalar(const int32_t* acc, const Group& group, uint8_t* out) const;

 private:
  // Fills all groups for the choice, and proves them where they can be.
  void prepare(const rules::Requantize& requantize, const int64_t* columns, int64_t groups, const Range* own);

  Choice choice_;
  AlignedArray<Group> groups_;
  const rules::Requantize* general_;
};

// What the proven forms know of 8 accumulators: from memory where it is used once, in registers for many rows.
template <Form form>
struct Line {
  __m256 slope, slope_rest, offset, offset_negative;

  Line(const Group& group, int vector)
      : slope(_mm256_load_ps(group.slope + 8 * vector)),
        slope_rest(_mm256_load_ps(group.slope_rest + 8 * vector)),
        offset(_mm256_load_ps(group.offset + 8 * vector)),
        offset_negative(form == Form::proven_by_sign ? _mm256_load_ps(group.offset_negative + 8 * vector) : offset) {}
};

template <Form form>
static inline __m256i proven8(__m256i acc, const Line<form>& line) {
  const __m256 a = _mm256_cvtepi32_ps(acc);
  __m256 offset = line.offset;
  if constexpr (form == Form::proven_by_sign) offset = _mm256_blendv_ps(offset, line.offset_negative, a);
  if constexpr (form != Form::proven_short) offset = _mm256_fmadd_ps(a, line.slope_rest, offset);
  return _mm256_cvtps_epi32(_mm256_fmadd_ps(a, line.slope, offset));
}

template <Form form>
static inline __m256i line8(__m256i u, const Group& group, int vector) {
  const __m256i exponent = _mm256_set1_epi32(0x43300000);
  const __m256i upper = _mm256_castps_si256(_mm256_movehdup_ps(_mm256_castsi256_ps(u)));
  const __m256d even = _mm256_castsi256_pd(_mm256_blend_epi32(u, exponent, 0xaa));
  const __m256d odd = _mm256_castsi256_pd(_mm256_blend_epi32(upper, exponent, 0xaa));
  __m256d addend_even = _mm256_load_pd(group.addend[2 * vector]);
  __m256d addend_odd = _mm256_load_pd(group.addend[2 * vector + 1]);
  if constexpr (form == Form::line_by_sign) {
    // u has its upper bit set where a >= 0; the selection looks at bit 63.
    addend_even = _mm256_blendv_pd(_mm256_load_pd(group.addend_negative[2 * vector]), addend_even,
                                   _mm256_castsi256_pd(_mm256_slli_epi64(u, 32)));
    addend_odd =
        _mm256_blendv_pd(_mm256_load_pd(group.addend_negative[2 * vector + 1]), addend_odd, _mm256_castsi256_pd(u));
  }
  const __m256d sum_even = _mm256_fmadd_pd(even, _mm256_load_pd(group.scale[2 * vector]), addend_even);
  const __m256d sum_odd = _mm256_fmadd_pd(odd, _mm256_load_pd(group.scale[2 * vector + 1]), addend_odd);
  const __m256 upper_even = _mm256_movehdup_ps(_mm256_castpd_ps(sum_even));
  const __m256i words = _mm256_blend_epi32(_mm256_castps_si256(upper_even), _mm256_castpd_si256(sum_odd), 0xaa);
  return _mm256_sub_epi32(words, _mm256_set1_epi32(0x41380000));
}

static inline __m128i wide4(__m128i acc, const Group& group, int quarter) {
  const __m256d a = _mm256_cvtepi32_pd(acc);
  const __m256d addend =
      _mm256_blendv_pd(_mm256_load_pd(group.addend[quarter]), _mm256_load_pd(group.addend_negative[quarter]), a);
  return _mm256_cvtpd_epi32(_mm256_fmadd_pd(a, _mm256_load_pd(group.scale[quarter]), addend));
}

// rules::binary64_multiply_away: adding the largest double below 1/2 and truncating rounds ties away, in the default
// rounding mode; the conversion gives -2^31 for everything that does not fit.
static inline __m128i binary64_4(__m128i acc, const Group& group, int quarter) {
  const __m256d product = _mm256_mul_pd(_mm256_cvtepi32_pd(acc), _mm256_load_pd(group.scale[quarter]));
  const __m256d sign = _mm256_and_pd(product, _mm256_set1_pd(-0.0));
  const __m256d half = _mm256_or_pd(sign, _mm256_set1_pd(0.5 - 0x1p-54));
  return _mm256_cvttpd_epi32(_mm256_add_pd(product, half));
}

// The rules with an addend and a second factor, which others have as 0 and 1.
static inline __m256i binary32_8(__m256i acc, const Group& group, int vector) {
  const __m256 sum = _mm256_add_ps(_mm256_cvtepi32_ps(acc), _mm256_load_ps(group.offset + 8 * vector));
  const __m256 product = _mm256_mul_ps(_mm256_mul_ps(sum, _mm256_load_ps(group.slope + 8 * vector)),
                                       _mm256_load_ps(group.slope_rest + 8 * vector));
  // The conversion gives -2^31 for everything that does not fit; from 2^31 up the rule gives 2^31 - 1.
  const __m256 over = _mm256_cmp_ps(product, _mm256_set1_ps(0x1p31f), _CMP_GE_OQ);
  return _mm256_xor_si256(_mm256_cvtps_epi32(product), _mm256_castps_si256(over));
}

template <Form form>
static inline __m256i rescale8(__m256i acc, const Group& group, int vector) {
  static_assert(form != Form::scalar);
  if constexpr (is_proven(form)) {
    return proven8<form>(acc, Line<form>(group, vector));
  } else if constexpr (is_line(form)) {
    return line8<form>(acc, group, vector);
  } else if constexpr (form == Form::product) {
    const __m256 sum = _mm256_add_ps(_mm256_cvtepi32_ps(acc), _mm256_load_ps(group.offset + 8 * vector));
    return _mm256_cvtps_epi32(_mm256_mul_ps(sum, _mm256_load_ps(group.slope + 8 * vector)));
  } else if constexpr (form == Form::binary32) {
    return binary32_8(acc, group, vector);
  } else {
    if constexpr (form == Form::wide) acc = _mm256_sllv_epi32(acc, load32(group.left + 8 * vector));
    const __m128i lower = _mm256_castsi256_si128(acc), upper = _mm256_extracti128_si256(acc, 1);
    if constexpr (form == Form::wide) {
      return _mm256_set_m128i(wide4(upper, group, 2 * vector + 1), wide4(lower, group, 2 * vector));
    } else {
      return _mm256_set_m128i(binary64_4(upper, group, 2 * vector + 1), binary64_4(lower, group, 2 * vector));
    }
  }
}

// 16-bit words of two vectors of rescaled accumulators, in the order of _mm256_packs_epi32. The line forms have added zero
// point and flip, the small ones have both in `store.flip`; otherwise the sum with the zero point is modulo 2^32, as in
// rules::zero_point_then_clamp. Saturation is monotone and reaches past the final clamp.
template <Form form, bool plain = false>
__attribute__((always_inline)) static inline __m256i words16(__m256i r0, __m256i r1, const Store& store) {
  if constexpr (is_line(form) || plain) {
    return _mm256_packs_epi32(r0, r1);
  } else if constexpr (is_small(form)) {
    return _mm256_adds_epi16(_mm256_packs_epi32(r0, r1), store.flip);
  } else {
    r0 = _mm256_min_epi32(_mm256_max_epi32(r0, store.first_low), store.first_high);
    r1 = _mm256_min_epi32(_mm256_max_epi32(r1, store.first_low), store.first_high);
    const __m256i words =
        _mm256_packs_epi32(_mm256_add_epi32(r0, store.zero_point), _mm256_add_epi32(r1, store.zero_point));
    return _mm256_adds_epi16(words, store.flip);
  }
}

// The same of accumulators.
template <Form form>
__attribute__((always_inline)) static inline __m256i requantize16(__m256i acc0, __m256i acc1, const Group& group,
                                                                  const Store& store) {
  return words16<form>(rescale8<form>(acc0, group, 0), rescale8<form>(acc1, group, 1), store);
}

// The accumulator behind byte i: _mm256_packs_epi32 leaves the words of each 128-bit half together, so the order of
// accumulators in two vectors is 0-3, 8-11 and 4-7, 12-15 when bytes are counted. The permutation is its own inverse.
constexpr int accumulator_of_byte(int i) { return (i & 3) | ((i & 4) << 1) | ((i & 8) >> 1); }

// Bytes of two vectors of words, by fours: 0 to 3 and 8 to 11 of `first` in the order of accumulators, the same of `second`, then
// the other ones.
template <bool plain>
static inline __m256i pack_fours(__m256i first, __m256i second, const Store& store) {
  const __m256i bytes = _mm256_packus_epi16(first, second);
  return plain ? bytes : _mm256_min_epu8(_mm256_max_epu8(bytes, store.low), store.high);
}

// The 16 bytes of `first`, then those of `second`.
static inline __m256i pack(__m256i first, __m256i second, const Store& store) {
  return _mm256_permute4x64_epi64(pack_fours<false>(first, second, store), 0xd8);
}

// `rows` times 16 accumulators; store_rows(r, bytes, count) takes those of one row or two as pack_fours() leaves them. Constants
// of proven forms stay in registers.
template <Form form, bool plain = false, class StoreRows>
__attribute__((always_inline)) static inline void requantize_fours(const Group& group, const Store& store,
                                                                   const int32_t* acc, int rows,
                                                                   StoreRows&& store_rows) {
  if constexpr (is_proven(form) && !plain) {
    if (store.plain) return requantize_fours<form, true>(group, store, acc, rows, store_rows);
  }
  const Line<form> lower(group, 0), upper(group, 1);
  const auto words = [&](int r) __attribute__((always_inline)) {
    const __m256i acc0 = load32(acc + 16 * r), acc1 = load32(acc + 16 * r + 8);
    if constexpr (is_proven(form)) {
      return words16<form, plain>(proven8<form>(acc0, lower), proven8<form>(acc1, upper), store);
    } else {
      return requantize16<form>(acc0, acc1, group, store);
    }
  };
  int r = 0;
  for (; r + 2 <= rows; r += 2) store_rows(r, pack_fours<plain>(words(r), words(r + 1), store), 2);
  if (r < rows) {
    const __m256i last = words(r);
    store_rows(r, pack_fours<plain>(last, last, store), 1);
  }
}

// `rows` (1 or more) times 16 accumulators, aligned and one after the other; the first `width` bytes of each are stored.
template <Form form>
__attribute__((always_inline)) static inline void requantize_rows(const Requantizer& requantizer, const Group& group,
                                                                  const Store& store, const int32_t* acc, int rows,
                                                                  uint8_t* out, int64_t out_stride, int64_t width) {
  if constexpr (form == Form::scalar) {
    alignas(16) uint8_t bytes[16];
    for (int r = 0; r < rows; ++r) {
      requantizer.requantize_scalar(acc + 16 * r, group, bytes);
      store_part(out + r * out_stride, load16(bytes), width);
    }
  } else {
    const auto store_rows = [&](int r, __m256i fours, int count) __attribute__((always_inline)) {
      const __m256i bytes = _mm256_permute4x64_epi64(fours, 0xd8);
      store_part(out + r * out_stride, _mm256_castsi256_si128(bytes), width);
      if (count == 2) store_part(out + (r + 1) * out_stride, _mm256_extracti128_si256(bytes, 1), width);
    };
    requantize_fours<form>(group, store, acc, rows, store_rows);
  }
}

}  // namespace bittrue::BITTRUE_ISA

// From 16 accumulators at a time to stored bytes: the vector forms of rules::requantize.
//
// Two kinds of form exist. Exact forms follow a rule step by step in binary64 (or binary32 where the rule itself does)
// and hold for every accumulator. Fast forms evaluate a straight line in binary32 and hold only where that is proven:
//
// Requantization is a monotone step function of the accumulator with at most 255 steps inside of the clamp, and so is
// a fast form (every operation in it is monotone). Two such functions are equal on a whole interval when they are equal
// at its ends and on both sides of every step of one of them. Requantizer finds the steps with an exact form, places
// the line between them, and then compares both forms at these points, with the instructions that will run. Where no
// line is equal it keeps the exact form. Nothing is assumed about the multipliers.
#pragma once

#include <cstdint>

#include "isa/avx512vnni/intrinsics.h"
#include "rules/requantize.h"

namespace bittrue::avx512vnni {

enum class Form : uint8_t {
  // Fast forms. a is the accumulator as binary32, slope = slope_high + slope_low.
  product,       // round_even(a * slope_high): the rule binary32_multiply_even itself where nothing overflows
  sum_product,   // round_even((a + offset) * slope_high * slope_low): the rules with an addend, likewise
  short_line,    // floor(a * slope_high + offset)
  short_away,    // trunc(a * slope_high + copysign(offset, a))
  line,          // floor(a * slope + offset)
  line_away,     // trunc(a * slope + copysign(offset, a)): ties away from zero, or two roundings that end so
  line_by_sign,  // floor(a * slope + (a < 0 ? offset_negative : offset))
  // Exact forms.
  q31,       // floor(acc * scale + (acc < 0 ? addend_negative : addend)) in binary64
  binary64,  // rules::binary64_multiply_away
  binary32,  // rules::binary32_multiply_even, binary32_add_multiply_even and binary32_add_multiply_twice_even
  real32,    // rules::binary32_multiply with its store rules, the zero point included
  each,      // any other rule, one accumulator at a time: lines are proven with it, nothing runs on it
  scalar,    // everything else
};

constexpr bool is_fast(Form form) { return form < Form::q31; }

// The constants of 16 accumulators.
struct alignas(64) LineGroup {
  float slope_high[16], slope_low[16], offset[16], offset_negative[16];
};
struct alignas(64) ExactGroup {
  double scale[16], addend[16], addend_negative[16];  // of binary32 the addend and the second factor
  int32_t least[16], greatest[16];                    // every accumulator lies between, both included
  int32_t column[16];                                 // -1: results are not used
};

// What all columns share: 16-bit zero point, unsigned 8-bit clamp.
struct Store {
  __m512i zero_point, low, high;
};

// The exact forms' part that all columns share; integers of the plan's type.
struct ExactRule {
  explicit ExactRule(const rules::Requantize& requantize);
  // Constants of one column; false when only the scalar form holds for it.
  bool prepare(const rules::Requantize& requantize, int64_t column, int64_t lane, ExactGroup* group) const;
  // Clamped integers of the plan's type, of 16 accumulators or of `count` times as many.
  __m512i rescale(__m512i acc, const ExactGroup& group) const;
  void rescale(const __m512i* acc, int count, const ExactGroup& group, __m512i* stored) const;

  Form form;
  int32_t least, greatest;  // what requantize.bound says of every accumulator
  int32_t zero_point, low, high;
  bool clamp_first;
  // Of real numbers: the sum is rounded down, and 1/2 is added apart; what is added to products.
  bool half_apart, floors;
  float addend;
  const rules::Requantize* twin;  // for Form::each
};

class Requantizer {
 public:
  // Accumulator i of group i / 16 belongs to column columns[i]; -1 marks accumulators whose results are not used.
  // `count` is a multiple of 16. `requantize` need not outlive the call. Where the caller has proven more than
  // requantize.bound, least[i] <= accumulator i <= greatest[i] in exact arithmetic; fast forms succeed more often then.
  Requantizer(const rules::Requantize& requantize, const int64_t* columns, int64_t count,
              const int64_t* least = nullptr, const int64_t* greatest = nullptr);
  Requantizer(const Requantizer&) = delete;
  Requantizer& operator=(const Requantizer&) = delete;
  ~Requantizer();

  // One form for all columns of this object.
  Form form() const { return form_; }
  const LineGroup* lines() const { return lines_; }

  // Saturation to unsigned bytes is all that is left to do: no zero point, the clamp is the range of a byte.
  bool plain() const { return zero_point_ == 0 && low_ == 0 && high_ == 255; }

  Store store() const {
    return {_mm512_set1_epi16(zero_point_), _mm512_set1_epi8(static_cast<char>(low_)),
            _mm512_set1_epi8(static_cast<char>(high_))};
  }

  // What rescale<form>() returns for the accumulators of group `group`, for any form.
  __m512i rescale_any(__m512i acc, int64_t group) const;

 private:
  bool prepare_exact(const rules::Requantize& requantize, const int64_t* columns);
  void prepare_ranges(const int64_t* columns, const int64_t* least, const int64_t* greatest);
  bool prepare_lines(Form form);

  ExactRule exact_;
  Form form_;
  int64_t groups_;
  LineGroup* lines_;
  ExactGroup* exact_groups_;             // null where a fast form holds
  int64_t* columns_;                     // for the scalar form, else null
  const rules::Requantize* requantize_;  // for the scalar form, else null
  int16_t zero_point_ = 0;               // added by pack()
  uint8_t low_ = 0, high_ = 255;
};

// The constants of one group in registers, to be loaded once for several rows.
struct Line {
  __m512 slope_high, slope_low, offset, offset_negative;
};

template <Form form>
inline Line load(const LineGroup& group) {
  Line line{_mm512_load_ps(group.slope_high), {}, {}, {}};
  constexpr bool is_short = form == Form::short_line || form == Form::short_away;
  if constexpr (form != Form::product && !is_short) line.slope_low = _mm512_load_ps(group.slope_low);
  if constexpr (form != Form::product) line.offset = _mm512_load_ps(group.offset);
  if constexpr (form == Form::line_by_sign) line.offset_negative = _mm512_load_ps(group.offset_negative);
  return line;
}

// 16 rescaled accumulators, before the zero point.
//
// The inner sum is rounded, the outer one is rounded toward the integer that the conversion then takes, which a
// rounding in that direction cannot cross: floor(down(y)) = floor(y), since floor(y) is itself a binary32 number <= y
// wherever it matters. Two terms of slope where 24 bits of it would move steps: at y = 200 by 2^-18, while there are gaps of
// slope / 255 and less to meet; columns of few products often have larger ones, and a neighbour of the slope that meets them
// all. slope_low >= 0 and offset_negative <= offset keep every operation monotone.
template <Form form>
inline __m512i rescale(__m512i acc, const Line& line) {
  static_assert(is_fast(form));
  constexpr int down = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC, zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
  const __m512 a = _mm512_cvtepi32_ps(acc);
  if constexpr (form == Form::product) {
    return _mm512_cvtps_epi32(_mm512_mul_ps(a, line.slope_high));
  } else if constexpr (form == Form::sum_product) {
    const __m512 product = _mm512_mul_ps(_mm512_add_ps(a, line.offset), line.slope_high);
    return _mm512_cvtps_epi32(_mm512_mul_ps(product, line.slope_low));
  } else if constexpr (form == Form::line_away || form == Form::short_away) {
    // 0xd8 selects: the sign bit from acc, the others from the offset, by the mask in the third operand.
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    const __m512i offset = _mm512_ternarylogic_epi32(_mm512_castps_si512(line.offset), acc, sign, 0xd8);
    __m512 inner = _mm512_castsi512_ps(offset);
    if constexpr (form == Form::line_away) inner = _mm512_fmadd_ps(a, line.slope_low, inner);
    return _mm512_cvtt_roundps_epi32(_mm512_fmadd_round_ps(a, line.slope_high, inner, zero), _MM_FROUND_NO_EXC);
  } else {
    __m512 offset = line.offset;
    if constexpr (form == Form::line_by_sign) {
      offset = _mm512_mask_mov_ps(offset, _mm512_movepi32_mask(acc), line.offset_negative);
    }
    __m512 inner = offset;
    if constexpr (form != Form::short_line) inner = _mm512_fmadd_ps(a, line.slope_low, offset);
    return _mm512_cvt_roundps_epi32(_mm512_fmadd_round_ps(a, line.slope_high, inner, down), down);
  }
}

// 64 stored bytes of 4 x 16 rescaled accumulators, of which neighbours have been packed to words (_mm512_packs_epi32): byte
// 16 * l + 4 * v + j is accumulator 4 * l + j of vector v. Both saturations are monotone and reach past the clamp:
// 32767 + zero_point >= 255 and -32768 + zero_point <= 0. `plain` is for Requantizer::plain().
template <bool plain>
inline __m512i pack_words(__m512i first, __m512i second, const Store& store) {
  if constexpr (plain) {
    return _mm512_packus_epi16(first, second);
  } else {
    const __m512i bytes =
        _mm512_packus_epi16(_mm512_adds_epi16(first, store.zero_point), _mm512_adds_epi16(second, store.zero_point));
    return _mm512_min_epu8(_mm512_max_epu8(bytes, store.low), store.high);
  }
}

template <bool plain = false>
inline __m512i pack(__m512i r0, __m512i r1, __m512i r2, __m512i r3, const Store& store) {
  return pack_words<plain>(_mm512_packs_epi32(r0, r1), _mm512_packs_epi32(r2, r3), store);
}

}  // namespace bittrue::avx512vnni

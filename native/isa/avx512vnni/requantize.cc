#include "isa/avx512vnni/requantize.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

#include "isa/avx512vnni/cores.h"
#include "isa/portable/scalar_requantize.h"

namespace bittrue::avx512vnni {
namespace {

using rules::Multiplier;
using rules::RescaleRule;

constexpr std::align_val_t kValuesAlignment{64};
constexpr int kDown = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC, kZero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
constexpr int kUp = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
// Fast forms keep all rescaled accumulators below this: no conversion overflows, no zero point wraps.
constexpr double kLargestRescaled = 1073741824.0;
// A step of the exact function is looked for this far from where the real multiplier puts it: the roundings in the
// rules move it by less. A step that is not found disproves nothing, it only costs the fast form.
constexpr int kReach = 2;

template <typename T>
T* allocate(int64_t count) {
  T* values = static_cast<T*>(::operator new(static_cast<size_t>(count) * sizeof(T), kValuesAlignment));
  for (int64_t i = 0; i < count; ++i) values[i] = T{};
  return values;
}

template <typename T>
void release(T* values) {
  ::operator delete(static_cast<void*>(values), kValuesAlignment);
}

bool within(int64_t value, int64_t low, int64_t high) { return low <= value && value <= high; }

// 2^exponent for exponents of normal numbers.
double power_of_two(int exponent) {
  const int64_t bits = static_cast<int64_t>(exponent + 1023) << 52;
  double power;
  std::memcpy(&power, &bits, sizeof power);
  return power;
}

// floor(acc * scale + addend), for acc < 0 floor(acc * scale + addend_negative), for the fixed-point rules, M >= 0:
//  * doubling_high_multiply_up(a, M) = floor(a * M / 2^31 + 1/2); nested floors collapse, so for s = -exponent >= 1
//  * two steps, ties up:   floor(a * M / 2^(31 + s) + 1/2 + 2^-(s + 1));
//  * two steps, ties away: the same where the first step's result is not negative, with - 2^-(s + 1) where it is. It is
//    negative only where a is; where a < 0 and it is 0, a * M / 2^(31 + s) >= -2^-(s + 1) and both forms give 0;
//  * one step: floor(a * M / 2^(31 - exponent) + 1/2); two steps with exponent >= 0 are one, if a << exponent fits.
// Products have at most 63 bits, the fused multiply-add rounds their sum once, downward, which floor cannot notice.
bool q31_constants(RescaleRule rule, const Multiplier& m, double greatest, double* scale, double* addend,
                   double* addend_negative) {
  const bool q15 = rule == RescaleRule::q15_one_step_up;
  const bool one_step = q15 || rule == RescaleRule::q31_one_step_up;
  const int bits = q15 ? 15 : 31;
  if (!within(m.multiplier, 0, (int64_t{1} << bits) - 1) || !within(m.exponent, -31, bits - 1)) return false;
  *scale = static_cast<double>(m.multiplier) * power_of_two(m.exponent - bits);
  // No left shift may wrap and no result may leave 32 bits. With exponent <= 0, |acc * scale| < 2^31 - 1/2 always.
  if (m.exponent > 0 && !(greatest * power_of_two(m.exponent) < 2147483647.0)) return false;
  const double second = one_step || m.exponent >= 0 ? 0.0 : power_of_two(m.exponent - 1);
  *addend = 0.5 + second;
  *addend_negative = rule == RescaleRule::q31_two_step_up_away ? 0.5 - second : 0.5 + second;
  return true;
}

// Where the offsets of 16 columns may lie: at least `least`, less than `limit`.
struct Intervals {
  alignas(64) double least[16], limit[16];

  Intervals() {
    for (int lane = 0; lane < 16; ++lane) {
      least[lane] = -std::numeric_limits<double>::infinity();
      limit[lane] = std::numeric_limits<double>::infinity();
    }
  }
  // Eight columns at a time: where `reached`, an offset of `at` or more is needed, where `missed`, one below `at`.
  void hold(int half, __m512d at, __mmask8 reached, __mmask8 missed) {
    double *const low = least + 8 * half, *const high = limit + 8 * half;
    const __m512d lows = _mm512_load_pd(low), highs = _mm512_load_pd(high);
    _mm512_store_pd(low, _mm512_mask_max_pd(lows, reached, lows, at));
    _mm512_store_pd(high, _mm512_mask_min_pd(highs, missed, highs, at));
  }
  void meet(int lane, double other_least, double other_limit) {
    if (other_least > least[lane]) least[lane] = other_least;
    if (other_limit < limit[lane]) limit[lane] = other_limit;
  }
  bool empty(int lane) const { return !(least[lane] < limit[lane]); }
  // The middle; where one end is open, something near the 1/2 that rounding has without other influence.
  float middle(int lane, double slope) const {
    const double low = least[lane], high = limit[lane];
    if (std::isinf(low)) return static_cast<float>(high - slope > 0.5 ? 0.5 : high - slope);
    if (std::isinf(high)) return static_cast<float>(low + slope < 0.5 ? 0.5 : low + slope);
    return static_cast<float>(low + (high - low) / 2);
  }
};

__m512 narrow(const double* values) {
  const __m256 low = _mm512_cvtpd_ps(_mm512_load_pd(values)), high = _mm512_cvtpd_ps(_mm512_load_pd(values + 8));
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

// Clamped integers of the plan's type, by an exact form whose constants stay in registers for many accumulators.
template <Form form>
class Exact {
  static constexpr bool kNarrow = form == Form::binary32 || form == Form::real32;

 public:
  [[gnu::always_inline]] Exact(const ExactRule& rule, const ExactGroup& group)
      : zero_points_(_mm512_set1_epi32(rule.zero_point)),
        lows_(_mm512_set1_epi32(rule.low)),
        highs_(_mm512_set1_epi32(rule.high)),
        first_lows_(_mm512_set1_epi32(rule.clamp_first ? rule.low - rule.zero_point : INT32_MIN)),
        first_highs_(_mm512_set1_epi32(rule.clamp_first ? rule.high - rule.zero_point : INT32_MAX)),
        moved_(_mm512_set1_ps(rule.addend)),
        half_apart_(rule.half_apart),
        floors_(rule.floors) {
    if constexpr (kNarrow) {
      narrow_[0] = narrow(group.scale);
      narrow_[1] = narrow(group.addend);
      narrow_[2] = narrow(group.addend_negative);
    } else {
      for (int half = 0; half < 2; ++half) {
        scale_[half] = _mm512_load_pd(group.scale + 8 * half);
        addend_[half] = _mm512_load_pd(group.addend + 8 * half);
        addend_negative_[half] = _mm512_load_pd(group.addend_negative + 8 * half);
      }
    }
  }

  [[gnu::always_inline]] __m512i operator()(__m512i acc) const {
    if constexpr (form == Form::real32) return clamped(real(acc));
    __m512i rescaled;
    if constexpr (form == Form::binary32) {
      const __m512 first = _mm512_mul_ps(_mm512_add_ps(_mm512_cvtepi32_ps(acc), narrow_[1]), narrow_[0]);
      const __m512 product = _mm512_mul_ps(first, narrow_[2]);
      // The conversion gives -2^31 for everything that does not fit, which is right except above.
      const __mmask16 above = _mm512_cmp_ps_mask(product, _mm512_set1_ps(2147483648.0f), _CMP_GE_OQ);
      rescaled = _mm512_mask_mov_epi32(_mm512_cvtps_epi32(product), above, _mm512_set1_epi32(INT32_MAX));
    } else {
      rescaled = wide(acc);
    }
    rescaled = _mm512_min_epi32(_mm512_max_epi32(rescaled, first_lows_), first_highs_);
    return clamped(_mm512_add_epi32(rescaled, zero_points_));
  }

 private:
  __m512i clamped(__m512i stored) const { return _mm512_min_epi32(_mm512_max_epi32(stored, lows_), highs_); }

  [[gnu::always_inline]] __m512i real(__m512i acc) const {
    // Conversions give -2^31 for everything that does not fit, as the rules have it. Rounding the sum toward zero
    // cannot cross an integer.
    const __m512 moved = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(acc), narrow_[0]), moved_);
    const __m512 half = _mm512_set1_ps(0.5f), sign = _mm512_set1_ps(-0.0f);
    const __m512 away = _mm512_or_ps(_mm512_and_ps(moved, sign), half);
    if (floors_) return _mm512_cvt_roundps_epi32(half_apart_ ? _mm512_add_ps(moved, half) : moved, kDown);
    return _mm512_cvttps_epi32(_mm512_add_round_ps(moved, away, kZero));
  }

  [[gnu::always_inline]] __m512i wide(__m512i acc) const {
    const __mmask16 negative = _mm512_movepi32_mask(acc);
    __m256i halves[2] = {_mm512_castsi512_si256(acc), _mm512_extracti64x4_epi64(acc, 1)};
    for (int i = 0; i < 2; ++i) {
      const __m512d a = _mm512_cvtepi32_pd(halves[i]);
      if constexpr (form == Form::q31) {
        const __m512d addend =
            _mm512_mask_mov_pd(addend_[i], static_cast<__mmask8>(negative >> (8 * i)), addend_negative_[i]);
        halves[i] = _mm512_cvt_roundpd_epi32(_mm512_fmadd_round_pd(a, scale_[i], addend, kDown), kDown);
      } else {
        // Ties away from zero of the rounded product p: trunc(p + copysign(1/2, p)), where rounding the sum toward zero
        // cannot cross an integer. The conversion gives -2^31 for what does not fit, as the rule has it.
        const __m512d product = _mm512_mul_pd(a, scale_[i]), sign = _mm512_set1_pd(-0.0);
        const __m512d half = _mm512_or_pd(_mm512_and_pd(product, sign), _mm512_set1_pd(0.5));
        halves[i] = _mm512_cvttpd_epi32(_mm512_add_round_pd(product, half, kZero));
      }
    }
    return _mm512_inserti64x4(_mm512_castsi256_si512(halves[0]), halves[1], 1);
  }

  const __m512i zero_points_, lows_, highs_, first_lows_, first_highs_;
  const __m512 moved_;
  const bool half_apart_, floors_;
  __m512 narrow_[3];  // of the group's scale, addend and second factor, for rules in binary32
  __m512d scale_[2], addend_[2], addend_negative_[2];
};

// The same, one accumulator at a time.
template <>
class Exact<Form::each> {
 public:
  Exact(const ExactRule& rule, const ExactGroup& group) : rule_(rule), group_(group) {}

  __m512i operator()(__m512i acc) const {
    alignas(64) int32_t values[16];
    _mm512_store_si512(values, acc);
    for (int lane = 0; lane < 16; ++lane) {
      const int32_t column = group_.column[lane];
      // What is not used has no multiplier.
      values[lane] = column < 0 ? rule_.zero_point
                                : portable::requantize_one(*rule_.twin, values[lane], column) - rule_.twin->flip;
    }
    const __m512i lows = _mm512_set1_epi32(rule_.low), highs = _mm512_set1_epi32(rule_.high);
    return _mm512_min_epi32(_mm512_max_epi32(_mm512_load_si512(values), lows), highs);
  }

 private:
  const ExactRule& rule_;
  const ExactGroup& group_;
};

// The accumulators around the steps of 16 columns, ascending.
class Points {
 public:
  static constexpr int kNear = 2, kAll = 2 * kReach + 2;

  Points(const ExactRule& rule, const ExactGroup& group)
      : zero_point_(rule.zero_point),
        least_(_mm512_load_si512(group.least)),
        greatest_(_mm512_load_si512(group.greatest)) {
    for (int half = 0; half < 2; ++half) {
      inverse_[half] = _mm512_div_pd(_mm512_set1_pd(1), _mm512_load_pd(group.scale + 8 * half));
      addend_[0][half] = _mm512_load_pd(group.addend_negative + 8 * half);
      addend_[1][half] = _mm512_load_pd(group.addend + 8 * half);
    }
  }

  // kCount accumulators, half of them below the place where results should begin to be `step` or more, or at the ends
  // of the range. A scale of zero has its steps there.
  template <int kCount>
  void find(int32_t step, __m512i* points) const {
    const int32_t rescaled = step - zero_point_;
    const __m512d value = _mm512_set1_pd(rescaled);
    const __m512d* const addend = addend_[rescaled > 0];
    // Saturated below by the conversion itself, above by the minimum.
    const __m512d largest = _mm512_set1_pd(INT32_MAX);
    const __m256i low = _mm512_cvt_roundpd_epi32(
        _mm512_min_pd(_mm512_mul_pd(_mm512_sub_pd(value, addend[0]), inverse_[0]), largest), kUp);
    const __m256i high = _mm512_cvt_roundpd_epi32(
        _mm512_min_pd(_mm512_mul_pd(_mm512_sub_pd(value, addend[1]), inverse_[1]), largest), kUp);
    __m512i begin = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    begin = _mm512_min_epi32(_mm512_max_epi32(begin, least_), greatest_);
    for (int i = 0; i < kCount; ++i) {
      // Sums that wrap, near the ends of 32 bits, only make a step hard to find.
      const __m512i away = _mm512_set1_epi32(i - kCount / 2);
      const __m512i place = i < kCount / 2 ? _mm512_max_epi32(begin, _mm512_sub_epi32(least_, away))
                                           : _mm512_min_epi32(begin, _mm512_sub_epi32(greatest_, away));
      points[i] = _mm512_add_epi32(place, away);
    }
  }

 private:
  const int32_t zero_point_;
  const __m512i least_, greatest_;
  __m512d inverse_[2], addend_[2][2];
};

// The addends of the exact form as offsets: most columns need nothing else.
void guess_lines(const ExactGroup& exact, LineGroup* group) {
  for (int lane = 0; lane < 16; ++lane) {
    const double slope = exact.scale[lane];
    float high = static_cast<float>(slope);
    if (static_cast<double>(high) > slope) high = std::nextafterf(high, 0.0f);
    group->slope_high[lane] = high;
    group->slope_low[lane] = static_cast<float>(slope - static_cast<double>(high));
    group->offset[lane] = static_cast<float>(exact.addend[lane]);
    group->offset_negative[lane] = static_cast<float>(exact.addend_negative[lane]);
  }
}

// What the steps of the exact form ask of the offsets for accumulators >= 0 and < 0.
void find_intervals(const ExactRule& rule, const ExactGroup& group, Intervals* positive, Intervals* negative) {
  const Points points(rule, group);
  for (int32_t step = rule.low + 1; step <= rule.high; ++step) {
    __m512i near[Points::kAll], stored[Points::kAll];
    points.find<Points::kAll>(step, near);
    rule.rescale(near, Points::kAll, group, stored);
    for (int i = 0; i < Points::kAll; ++i) {
      const __m512i acc = near[i];
      const __mmask16 reached = _mm512_cmpge_epi32_mask(stored[i], _mm512_set1_epi32(step));
      const __mmask16 below = _mm512_movepi32_mask(acc);
      for (int half = 0; half < 2; ++half) {
        // As the fast forms see it.
        const __m512 all = _mm512_cvtepi32_ps(acc);
        const __m512d a = _mm512_cvtps_pd(half == 0 ? _mm512_castps512_ps256(all) : _mm512_extractf32x8_ps(all, 1));
        const __m512d value = _mm512_set1_pd(step - rule.zero_point);
        const __m512d at = _mm512_fnmadd_pd(a, _mm512_load_pd(group.scale + 8 * half), value);
        const int shift = 8 * half, yes = reached >> shift, no = ~reached >> shift, minus = below >> shift;
        positive->hold(half, at, static_cast<__mmask8>(yes & ~minus), static_cast<__mmask8>(no & ~minus));
        negative->hold(half, at, static_cast<__mmask8>(yes & minus), static_cast<__mmask8>(no & minus));
      }
    }
  }
}

// Sets the offsets to the middle of what all steps allow. False when none fits.
bool place_offsets(Form form, const ExactRule& rule, const ExactGroup& exact, LineGroup* group) {
  Intervals positive, negative;
  find_intervals(rule, exact, &positive, &negative);
  for (int lane = 0; lane < 16; ++lane) {
    const double slope = exact.scale[lane];
    if (form == Form::line) positive.meet(lane, negative.least[lane], negative.limit[lane]);
    // trunc(x - h) reaches a step where floor(x + 1 - h) does, but for x + 1 - h on the step itself.
    if (form == Form::line_away) positive.meet(lane, 1 - negative.limit[lane], 1 - negative.least[lane]);
    if (positive.empty(lane)) return false;
    group->offset[lane] = positive.middle(lane, slope);
    group->offset_negative[lane] = negative.middle(lane, slope);
  }
  return true;
}

// Whether fast and exact form are equal everywhere: both are monotone, and they agree at both ends of the range and on
// both sides of every step of the exact form, all of which are found.
template <Form fast>
class Proof {
 public:
  Proof(const ExactRule& rule, const ExactGroup& constants, const LineGroup& group)
      : rule_(rule),
        exact_(constants),
        points_(rule, constants),
        line_(load<fast>(group)),
        least_(_mm512_load_si512(constants.least)),
        greatest_(_mm512_load_si512(constants.greatest)) {}

  bool holds() const {
    if (differ(least_, rule_.rescale(least_, exact_)) != 0) return false;
    if (differ(greatest_, rule_.rescale(greatest_, exact_)) != 0) return false;
    // The step is nearly always between the first two accumulators that are tried.
    constexpr int kTogether = 16, kNear = Points::kNear;
    for (int32_t first = rule_.low + 1; first <= rule_.high; first += kTogether) {
      const int count = rule_.high - first < kTogether ? rule_.high - first + 1 : kTogether;
      __m512i near[kTogether * kNear], stored[kTogether * kNear];
      for (int i = 0; i < count; ++i) points_.find<kNear>(first + i, near + i * kNear);
      rule_.rescale(near, count * kNear, exact_, stored);
      for (int i = 0; i < count; ++i) {
        __mmask16 found = 0;
        if (!agree_around<kNear>(first + i, near + i * kNear, stored + i * kNear, &found)) return false;
        if (found != 0xffff && !agree_farther(first + i, found)) return false;
      }
    }
    return true;
  }

 private:
  __mmask16 differ(__m512i acc, __m512i stored) const {
    const __m512i rescaled = _mm512_add_epi32(rescale<fast>(acc, line_), _mm512_set1_epi32(rule_.zero_point));
    const __m512i low = _mm512_set1_epi32(rule_.low), high = _mm512_set1_epi32(rule_.high);
    return _mm512_cmpneq_epi32_mask(stored, _mm512_min_epi32(_mm512_max_epi32(rescaled, low), high));
  }

  // Adds the columns whose step is among kCount accumulators to `found`; false when the forms differ at one of these.
  template <int kCount>
  [[gnu::always_inline]] bool agree_around(int32_t step, const __m512i* near, const __m512i* stored,
                                           __mmask16* found) const {
    const __m512i steps = _mm512_set1_epi32(step), one = _mm512_set1_epi32(1);
    // A step outside of the accumulator's range shows at the end of the range.
    __mmask16 wrong = 0, before = 0, seen = *found;
    for (int i = 0; i < kCount; ++i) {
      const __mmask16 reached = _mm512_cmpge_epi32_mask(stored[i], steps);
      const __m512i follows = i == 0 ? least_ : _mm512_add_epi32(near[i > 0 ? i - 1 : 0], one);
      seen = static_cast<__mmask16>(seen | (reached & ~before & _mm512_cmpeq_epi32_mask(near[i], follows)));
      before = reached;
      wrong = static_cast<__mmask16>(wrong | differ(near[i], stored[i]));
    }
    *found = static_cast<__mmask16>(seen | (~before & _mm512_cmpeq_epi32_mask(near[kCount - 1], greatest_)));
    return wrong == 0;
  }

  // The same among more accumulators, of which one must be the step.
  bool agree_farther(int32_t step, __mmask16 found) const {
    __m512i near[Points::kAll], stored[Points::kAll];
    points_.find<Points::kAll>(step, near);
    rule_.rescale(near, Points::kAll, exact_, stored);
    return agree_around<Points::kAll>(step, near, stored, &found) && found == 0xffff;
  }

  const ExactRule& rule_;
  const ExactGroup& exact_;
  const Points points_;
  const Line line_;
  const __m512i least_, greatest_;
};

// Finds slopes of 24 bits, each the nearest one or one beside it, and offsets such that steps begin where the exact form's
// should, and proves them. False where a column has none.
bool short_lines_proven(Form form, const ExactRule& rule, const ExactGroup& exact, LineGroup* group) {
  constexpr int kSlopes = 3;
  // Smaller slopes hardly ever pass where all 255 steps are met; with fewer, what the last bit of a slope moves is less, and
  // there are fewer gaps to meet.
  constexpr double kLeastSlope = 0.0003;
  bool both_signs = false;  // whether sums of both signs have steps, with an addend of their own
  for (int lane = 0; lane < 16; ++lane) {
    if (exact.column[lane] < 0) continue;
    const double range = static_cast<double>(exact.greatest[lane]) - static_cast<double>(exact.least[lane]);
    const double steps = std::min(range * exact.scale[lane] / 255, 1.0);
    if (exact.scale[lane] < kLeastSlope * steps * steps) return false;
    both_signs |= exact.addend[lane] != exact.addend_negative[lane] && rule.low + 1 <= rule.zero_point;
  }
  if (both_signs != (form == Form::short_away)) return false;
  Intervals offsets;
  const __m512d none = _mm512_set1_pd(-std::numeric_limits<double>::infinity()), one = _mm512_set1_pd(1);
  for (int half = 0; half < 2; ++half) {
    const __m512d scale = _mm512_load_pd(exact.scale + 8 * half), inverse = _mm512_div_pd(one, scale);
    const __m512d least = _mm512_cvtepi32_pd(_mm256_load_si256(reinterpret_cast<const __m256i*>(exact.least) + half));
    const __m512d most = _mm512_cvtepi32_pd(_mm256_load_si256(reinterpret_cast<const __m256i*>(exact.greatest) + half));
    const __m256 nearest = _mm512_cvtpd_ps(scale);
    __m512d slopes[kSlopes], lowest[kSlopes], limit[kSlopes];
    for (int i = 0; i < kSlopes; ++i) {
      const __m256i moved = _mm256_add_epi32(_mm256_castps_si256(nearest), _mm256_set1_epi32(i - kSlopes / 2));
      slopes[i] = _mm512_cvtps_pd(_mm256_castsi256_ps(moved));
      lowest[i] = none;
      limit[i] = _mm512_sub_pd(_mm512_setzero_pd(), none);
    }
    for (int32_t step = rule.low + 1; step <= rule.high; ++step) {
      const __m512d value = _mm512_set1_pd(step - rule.zero_point);
      const double* const addends = step > rule.zero_point ? exact.addend : exact.addend_negative;
      const __m512d begin = _mm512_roundscale_pd(
          _mm512_mul_pd(_mm512_sub_pd(value, _mm512_load_pd(addends + 8 * half)), inverse), _MM_FROUND_TO_POS_INF);
      const __m512d before = _mm512_sub_pd(begin, one);
      // Steps before or behind all sums ask for one thing only.
      const __m512d reached = _mm512_max_pd(begin, least), missed = _mm512_min_pd(before, most);
      const __mmask8 reaches = _mm512_cmp_pd_mask(reached, most, _CMP_LE_OQ);
      const __mmask8 misses = _mm512_cmp_pd_mask(missed, least, _CMP_GE_OQ);
      for (int i = 0; i < kSlopes; ++i) {
        const __m512d at = _mm512_fnmadd_pd(reached, slopes[i], value),
                      below = _mm512_fnmadd_pd(missed, slopes[i], value);
        if (form == Form::short_line || step > rule.zero_point) {
          lowest[i] = _mm512_mask_max_pd(lowest[i], reaches, lowest[i], at);
          limit[i] = _mm512_mask_min_pd(limit[i], misses, limit[i], below);
        } else {
          // trunc(x - h) reaches a step where x - h is more than the number before it.
          limit[i] =
              _mm512_mask_min_pd(limit[i], reaches & _mm512_cmp_pd_mask(reached, _mm512_setzero_pd(), _CMP_LT_OQ),
                                 limit[i], _mm512_sub_pd(one, at));
          lowest[i] = _mm512_mask_max_pd(lowest[i], misses, lowest[i], _mm512_sub_pd(one, below));
        }
      }
    }
    // The widest interval of each column.
    __m512d slope = slopes[0], low = lowest[0], high = limit[0];
    for (int i = 1; i < kSlopes; ++i) {
      const __mmask8 wider =
          _mm512_cmp_pd_mask(_mm512_sub_pd(limit[i], lowest[i]), _mm512_sub_pd(high, low), _CMP_GT_OQ);
      slope = _mm512_mask_mov_pd(slope, wider, slopes[i]);
      low = _mm512_mask_mov_pd(low, wider, lowest[i]);
      high = _mm512_mask_mov_pd(high, wider, limit[i]);
    }
    _mm256_store_ps(group->slope_high + 8 * half, _mm512_cvtpd_ps(slope));
    _mm512_store_pd(offsets.least + 8 * half, low);
    _mm512_store_pd(offsets.limit + 8 * half, high);
  }
  for (int lane = 0; lane < 16; ++lane) {
    const bool used = exact.column[lane] >= 0;
    if (used && offsets.empty(lane)) return false;
    if (!used) group->slope_high[lane] = 0.0f;
    group->offset[lane] = used ? offsets.middle(lane, exact.scale[lane]) : 0.0f;
    if (form == Form::short_away && !(group->offset[lane] >= 0.0f)) return false;
  }
  return form == Form::short_line ? Proof<Form::short_line>(rule, exact, *group).holds()
                                  : Proof<Form::short_away>(rule, exact, *group).holds();
}

// The constants beside the slope, which has been looked at.
bool prepare_product(Form form, const ExactGroup& exact, LineGroup* group) {
  for (int lane = 0; lane < 16; ++lane) {
    if (exact.column[lane] < 0) continue;
    const double addend = exact.addend[lane], second = exact.addend_negative[lane];
    if (form == Form::product && (addend != 0 || second != 1)) return false;
    group->offset[lane] = static_cast<float>(addend);
    group->slope_low[lane] = static_cast<float>(second);
    const double greatest =
        std::fmax(-static_cast<double>(exact.least[lane]), exact.greatest[lane]) + std::fabs(addend);
    if (!(greatest * exact.scale[lane] * std::fmax(1, std::fabs(second)) < kLargestRescaled)) return false;
  }
  return true;
}

bool lines_proven(Form form, const ExactRule& rule, const ExactGroup& exact, const LineGroup& group) {
  if (form == Form::line) return Proof<Form::line>(rule, exact, group).holds();
  // What keeps the forms monotone, see rescale().
  for (int lane = 0; lane < 16; ++lane) {
    if (form == Form::line_away && !(group.offset[lane] >= 0.0f)) return false;
    if (form == Form::line_by_sign && !(group.offset_negative[lane] <= group.offset[lane])) return false;
  }
  return form == Form::line_away ? Proof<Form::line_away>(rule, exact, group).holds()
                                 : Proof<Form::line_by_sign>(rule, exact, group).holds();
}

}  // namespace

ExactRule::ExactRule(const rules::Requantize& requantize)
    : form(Form::q31),
      zero_point(requantize.zero_point),
      low(requantize.low),
      high(requantize.high),
      clamp_first(requantize.store == rules::StoreRule::clamp_then_zero_point),
      half_apart(requantize.store == rules::StoreRule::zero_point_half_up_then_clamp),
      floors(half_apart || requantize.store == rules::StoreRule::zero_point_plus_half_up_then_clamp),
      addend(static_cast<float>(requantize.zero_point) + (floors && !half_apart ? 0.5f : 0.0f)),
      twin(&requantize) {
  if (!rules::has_vector_form(requantize.rescale)) form = Form::each;
  const bool cut = requantize.store == rules::StoreRule::zero_point_half_away_then_clamp;
  if (requantize.rescale == RescaleRule::binary32_multiply && !cut) form = Form::real32;
  if (requantize.rescale == RescaleRule::binary64_multiply_away) form = Form::binary64;
  if (requantize.rescale == RescaleRule::binary32_multiply_even ||
      requantize.rescale == RescaleRule::binary32_add_multiply_even ||
      requantize.rescale == RescaleRule::binary32_add_multiply_twice_even) {
    form = Form::binary32;
  }
  const int64_t range = int64_t{1} << 31;
  const int64_t bound = requantize.wraps || requantize.bound > range ? range : requantize.bound;
  least = static_cast<int32_t>(-bound);
  greatest = static_cast<int32_t>(bound == range ? range - 1 : bound);
  const int64_t flip = requantize.flip;
  // pack() needs its sums within 16 bits; nothing here may overflow.
  const bool small = within(flip, -8192, 8192) && within(zero_point, -8192, 8192);
  const bool known = form != Form::each || !rules::traits(requantize.rescale).has(rules::kUneven);
  if (!known || !small || !within(low + flip, 0, 255) || !within(high + flip, 0, 255)) form = Form::scalar;
}

bool ExactRule::prepare(const rules::Requantize& requantize, int64_t column, int64_t lane, ExactGroup* group) const {
  if (form == Form::scalar) return false;
  group->column[lane] = static_cast<int32_t>(column);
  const Multiplier& m = requantize.multipliers.data()[requantize.multipliers.size() == 1 ? 0 : column];
  if (form == Form::q31) {
    return q31_constants(requantize.rescale, m, -static_cast<double>(least), &group->scale[lane], &group->addend[lane],
                         &group->addend_negative[lane]);
  }
  if (form == Form::each) {
    // A wrong slope proves nothing, it only costs the fast form.
    group->scale[lane] = portable::real_multiplier(requantize.rescale, m);
  } else {
    // Rules in binary32 have a factor of that type.
    const bool narrow = form == Form::binary32 || form == Form::real32;
    group->scale[lane] = narrow ? static_cast<double>(static_cast<float>(m.factor)) : m.factor;
  }
  group->addend[lane] = form == Form::binary32 ? m.addend : 0.5;
  group->addend_negative[lane] = form == Form::binary32 ? static_cast<double>(m.second) : 0.5;
  return true;
}

void ExactRule::rescale(const __m512i* acc, int count, const ExactGroup& group, __m512i* stored) const {
  const auto each = [&](auto rule) {
    const Exact<decltype(rule)::value> exact(*this, group);
    for (int i = 0; i < count; ++i) stored[i] = exact(acc[i]);
  };
  switch (form) {
    case Form::q31: return each(std::integral_constant<Form, Form::q31>());
    case Form::binary64: return each(std::integral_constant<Form, Form::binary64>());
    case Form::real32: return each(std::integral_constant<Form, Form::real32>());
    case Form::each: return each(std::integral_constant<Form, Form::each>());
    default: return each(std::integral_constant<Form, Form::binary32>());
  }
}

__m512i ExactRule::rescale(__m512i acc, const ExactGroup& group) const {
  __m512i stored;
  rescale(&acc, 1, group, &stored);
  return stored;
}

Requantizer::Requantizer(const rules::Requantize& requantize, const int64_t* columns, int64_t count,
                         const int64_t* least, const int64_t* greatest)
    : exact_(requantize),
      form_(Form::scalar),
      groups_(count / 16),
      lines_(allocate<LineGroup>(count / 16)),
      exact_groups_(allocate<ExactGroup>(count / 16)),
      columns_(nullptr),
      requantize_(nullptr) {
  if (prepare_exact(requantize, columns)) {
    form_ = exact_.form;
    zero_point_ = static_cast<int16_t>(requantize.flip);
    low_ = static_cast<uint8_t>(requantize.low + requantize.flip);
    high_ = static_cast<uint8_t>(requantize.high + requantize.flip);
    prepare_ranges(columns, least, greatest);
    constexpr Form kFastForms[] = {Form::product, Form::sum_product, Form::short_line,  Form::short_away,
                                   Form::line,    Form::line_away,   Form::line_by_sign};
    for (const Form form : kFastForms) {
      if (!prepare_lines(form)) continue;
      form_ = form;
      zero_point_ = static_cast<int16_t>(requantize.zero_point + requantize.flip);
      release(exact_groups_);
      exact_groups_ = nullptr;
      break;
    }
  }
  exact_.twin = nullptr;
  if (form_ != Form::each && form_ != Form::scalar) return;
  form_ = Form::scalar;
  zero_point_ = 0;
  low_ = 0;
  high_ = 255;
  requantize_ = portable::copy(requantize);
  columns_ = allocate<int64_t>(count);
  for (int64_t i = 0; i < count; ++i) columns_[i] = columns[i];
}

Requantizer::~Requantizer() {
  release(lines_);
  release(exact_groups_);
  release(columns_);
  if (requantize_ != nullptr) portable::release(requantize_);
}

bool Requantizer::prepare_exact(const rules::Requantize& requantize, const int64_t* columns) {
  for (int64_t i = 0; i < groups_ * 16; ++i) {
    exact_groups_[i / 16].column[i % 16] = -1;
    if (columns[i] >= 0 && !exact_.prepare(requantize, columns[i], i % 16, &exact_groups_[i / 16])) return false;
  }
  return exact_.form != Form::scalar;
}

void Requantizer::prepare_ranges(const int64_t* columns, const int64_t* least, const int64_t* greatest) {
  for (int64_t i = 0; i < groups_ * 16; ++i) {
    if (columns[i] < 0) continue;  // zeros
    ExactGroup& group = exact_groups_[i / 16];
    int64_t low = exact_.least, high = exact_.greatest;
    // An accumulator that may leave the register may have any value in it.
    if (least != nullptr && within(least[i], INT32_MIN, INT32_MAX) && within(greatest[i], INT32_MIN, INT32_MAX)) {
      low = least[i] > low ? least[i] : low;
      high = greatest[i] < high ? greatest[i] : high;
    }
    group.least[i % 16] = static_cast<int32_t>(low);
    group.greatest[i % 16] = static_cast<int32_t>(high);
  }
}

bool Requantizer::prepare_lines(Form form) {
  for (int64_t i = 0; i < groups_; ++i) {
    const ExactGroup& exact = exact_groups_[i];
    for (int lane = 0; lane < 16; ++lane) {
      const double slope = exact.scale[lane];
      const double least = exact.least[lane], greatest = exact.greatest[lane];
      if (!(slope >= 0 && slope * -least < kLargestRescaled && slope * greatest < kLargestRescaled)) return false;
      lines_[i].slope_high[lane] = static_cast<float>(slope);
    }
    if (form == Form::product || form == Form::sum_product) {
      if (exact_.form != Form::binary32 || !prepare_product(form, exact, &lines_[i])) return false;
      continue;
    }
    // Large addends may leave 32 bits, so that results are not monotone.
    for (int lane = 0; lane < 16 && exact_.form == Form::binary32; ++lane) {
      const bool plain = exact.addend[lane] == 0 && exact.addend_negative[lane] == 1;
      if (exact.column[lane] >= 0 && !plain) return false;
    }
    if (form == Form::short_line || form == Form::short_away) {
      if (!short_lines_proven(form, exact_, exact, &lines_[i])) return false;
      continue;
    }
    guess_lines(exact, &lines_[i]);
    if (lines_proven(form, exact_, exact, lines_[i])) continue;
    if (!place_offsets(form, exact_, exact, &lines_[i])) return false;
    if (!lines_proven(form, exact_, exact, lines_[i])) return false;
  }
  return true;
}

__m512i Requantizer::rescale_any(__m512i acc, int64_t group) const {
  switch (form_) {
    case Form::product: return rescale<Form::product>(acc, load<Form::product>(lines_[group]));
    case Form::sum_product: return rescale<Form::sum_product>(acc, load<Form::sum_product>(lines_[group]));
    case Form::line: return rescale<Form::line>(acc, load<Form::line>(lines_[group]));
    case Form::line_away: return rescale<Form::line_away>(acc, load<Form::line_away>(lines_[group]));
    case Form::line_by_sign: return rescale<Form::line_by_sign>(acc, load<Form::line_by_sign>(lines_[group]));
    default: break;
  }
  if (form_ != Form::scalar) return exact_.rescale(acc, exact_groups_[group]);
  alignas(64) int32_t values[16];
  _mm512_store_si512(values, acc);
  for (int lane = 0; lane < 16; ++lane) {
    const int64_t column = columns_[group * 16 + lane];
    if (column >= 0) values[lane] = portable::requantize_one(*requantize_, values[lane], column);
  }
  return _mm512_load_si512(values);
}

void requantize_rows(const rules::Requantize& requantize, const int32_t* acc, int64_t rows, uint8_t* out,
                     int64_t columns) {
  const ExactRule rule(requantize);
  // With one multiplier, rows may be cut into vectors: rows of 16 columns, of which the last one may be shorter.
  const bool shared = requantize.multipliers.size() == 1;
  const int64_t step = shared ? 16 : columns, all = rows * columns;
  const int64_t lines = shared ? (all + 15) / 16 : rows;
  const __m512i flip = _mm512_set1_epi32(requantize.flip);
  constexpr int64_t kTogether = 8;
  ExactGroup group{};
  for (int64_t first = 0; first < step && first < all; first += 16) {
    const int64_t wide = step - first < 16 ? step - first : 16;
    bool exact = rule.form != Form::each;
    for (int64_t lane = 0; lane < (shared ? 1 : wide) && exact; ++lane) {
      exact = rule.prepare(requantize, first + lane, lane, &group);
    }
    for (int lane = 1; lane < 16 && shared; ++lane) {
      group.scale[lane] = group.scale[0];
      group.addend[lane] = group.addend[0];
      group.addend_negative[lane] = group.addend_negative[0];
    }
    for (int64_t line = 0; line < lines; line += kTogether) {
      const int64_t count = lines - line < kTogether ? lines - line : kTogether;
      const auto used = [&](int64_t i) {
        const int64_t left = all - (line + i) * step - first;
        return left < wide ? left : wide;
      };
      __m512i sums[kTogether];
      if (!exact) {
        for (int64_t i = 0; i < count; ++i) {
          const int64_t begin = (line + i) * step + first;
          for (int64_t c = 0; c < used(i); ++c) {
            out[begin + c] = portable::requantize_one(requantize, acc[begin + c], first + c);
          }
        }
        continue;
      }
      const auto mask = [&](int64_t i) { return static_cast<__mmask16>((1u << used(i)) - 1); };
      for (int64_t i = 0; i < count; ++i) {
        sums[i] = _mm512_maskz_loadu_epi32(mask(i), acc + (line + i) * step + first);
      }
      rule.rescale(sums, static_cast<int>(count), group, sums);
      for (int64_t i = 0; i < count; ++i) {
        _mm512_mask_cvtepi32_storeu_epi8(out + (line + i) * step + first, mask(i), _mm512_add_epi32(sums[i], flip));
      }
    }
  }
}

}  // namespace bittrue::avx512vnni

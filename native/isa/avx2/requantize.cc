#include "isa/avx2/requantize.h"

#include <algorithm>
#include <cmath>

namespace bittrue::BITTRUE_ISA {
namespace {

using rules::RescaleRule;
using rules::StoreRule;

constexpr int kMostZeroPoint = 8192;  // with its flip, where they are one summand

// One column's rule as floor(a * multiplier * 2^-(31+right) + 1/2 +- eps), a being the accumulator shifted left.
struct Straight {
  int64_t multiplier;
  int right, left;
  bool eps;  // 2^-(right+1)
};

// False when the column has no such form. Right shifts above 31 give 0 for every 32-bit accumulator: |a * multiplier| is
// below 2^62, so |a * multiplier * 2^-63| < 1/2, and the two-step rules' first result is above -2^31.
bool straight(RescaleRule rule, const rules::Multiplier& m, Straight& s) {
  if (m.multiplier < 0 || m.multiplier > INT32_MAX || m.exponent < -100 || m.exponent > 100) return false;
  s = {m.multiplier, -m.exponent, 0, false};
  if (rule == RescaleRule::q31_one_step_up) {
    s.right = (m.exponent > 30 ? 1 : m.exponent < -31 ? 62 : 31 - m.exponent) - 31;
  } else if (rule == RescaleRule::q15_one_step_up) {
    // 31 + right = 15 - exponent
    if (m.exponent > 14) return false;
    s.right = -16 - m.exponent;
    while (s.right < 0 && s.multiplier <= (INT32_MAX >> 1)) {
      s.multiplier *= 2;
      ++s.right;
    }
  } else {
    if (m.exponent > 0) {
      s.left = m.exponent < 32 ? m.exponent : 32;
      s.right = 0;
    }
    s.eps = s.right > 0;
  }
  if (s.right > 31) s = {0, 1, 0, false};
  return true;
}

// addend = units / 2^(right+1); false when binary64 cannot hold it.
bool exact_addend(int64_t units, int right, double* addend) {
  const auto value = static_cast<double>(units);
  *addend = std::ldexp(value, -(right + 1));
  return value < 0x1p62 && value > -0x1p62 && static_cast<int64_t>(value) == units;
}

// The addends of the line form for one column, see requantize.h; false unless they are exact and results are small.
bool line_addends(const Straight& s, double greatest, int64_t stored_offset, double* addend, double* addend_negative) {
  if (s.left != 0 || s.right < 0 || s.right > 31) return false;
  const double scale = std::ldexp(static_cast<double>(s.multiplier), -(31 + s.right));
  if (greatest * scale + std::abs(static_cast<double>(stored_offset)) + 2 >= 0x1p19) return false;
  // In units of 2^-(right+1): |3 * 2^19 + offset| < 2^21 gives less than 2^53, the last product less than 2^54.
  const int64_t magic = (int64_t{3 << 19} + stored_offset) << (s.right + 1);
  const int64_t half = int64_t{1} << s.right;
  const int64_t units = magic + half - s.multiplier * ((int64_t{1} << 22) + 2);
  return exact_addend(units + s.eps, s.right, addend) && exact_addend(units - s.eps, s.right, addend_negative);
}

bool wide_fits(RescaleRule rule, const Straight& s, double greatest) {
  const double scale = std::ldexp(static_cast<double>(s.multiplier), -(31 + s.right));
  const bool two_step = rule == RescaleRule::q31_two_step_up_away || rule == RescaleRule::q31_two_step_up_up;
  return two_step || greatest * scale + 1 < 0x1p31;
}

double greatest_of(const rules::Requantize& r) {
  return r.wraps || r.bound > (int64_t{1} << 31) ? 0x1p31 : static_cast<double>(r.bound);
}

// Whether rules in binary32 have one factor, with which no product leaves 30 bits.
bool products_are_small(const rules::Requantize& r, double greatest) {
  return std::all_of(r.multipliers.begin(), r.multipliers.end(), [&](const rules::Multiplier& m) {
    return m.second == 1 && (greatest + std::abs(m.addend)) * std::abs(m.factor) < 0x1p30;
  });
}

Range within(Range range, double greatest) {
  // An accumulator that may leave the register may have any value in it.
  if (range.least < -0x1p31 || range.greatest >= 0x1p31) return {-greatest, greatest};
  return {std::max(range.least, -greatest), std::min(range.greatest, greatest)};
}

double magnitude(Range range) { return std::max(-range.least, range.greatest); }

// Of a column.
Range range_of(double greatest, const Range* own, int64_t column) {
  return own == nullptr ? Range{-greatest, greatest} : within(own[column], greatest);
}

// Of all columns, each with a multiplier.
double greatest_of(const rules::Requantize& r, const Range* own) {
  const double shared = greatest_of(r);
  double most = 0;
  for (size_t i = 0; i < r.multipliers.size(); ++i) most = std::max(most, magnitude(within(own[i], shared)));
  return most;
}

Form choose(const rules::Requantize& r, double greatest, const Range* own) {
  const int64_t low = int64_t{r.low} + r.flip, high = int64_t{r.high} + r.flip;
  const auto is_byte = [](int64_t value) { return value >= 0 && value <= 255; };
  const auto is_small = [](int64_t value) { return value >= -32768 && value <= 32767; };
  if (!is_byte(low) || !is_byte(high) || !is_small(r.zero_point) || !is_small(r.flip)) return Form::scalar;
  if (r.rescale == RescaleRule::binary32_add_multiply_even ||
      r.rescale == RescaleRule::binary32_add_multiply_twice_even || r.rescale == RescaleRule::binary32_multiply_even) {
    const bool together = std::abs(r.zero_point + r.flip) <= kMostZeroPoint && products_are_small(r, greatest);
    return together ? Form::product : Form::binary32;
  }
  if (!rules::has_vector_form(r.rescale)) return Form::scalar;
  if (r.rescale == RescaleRule::binary64_multiply_away) return Form::binary64;
  bool line = true;
  for (size_t i = 0; i < r.multipliers.size(); ++i) {
    Straight s;
    double addend, addend_negative;
    const double most = magnitude(range_of(greatest, own, static_cast<int64_t>(i)));
    if (!straight(r.rescale, r.multipliers.data()[i], s) || !wide_fits(r.rescale, s, most)) return Form::scalar;
    line = line && line_addends(s, most, int64_t{r.zero_point} + r.flip, &addend, &addend_negative);
  }
  if (!line) return Form::wide;
  // Where low is the zero point, negative accumulators give 0 or less before it, with either constant.
  const bool by_sign = r.rescale == RescaleRule::q31_two_step_up_away && r.low < r.zero_point;
  return by_sign ? Form::line_by_sign : Form::line;
}

// Both sides of one step of 16 columns: neighbouring accumulators, or an end of the range twice.
struct alignas(32) Step {
  int32_t before[16], at[16];
  int16_t value_before[16], value_at[16];  // as stored
};

// Where the offsets of 16 columns may lie: at least `least`, less than `limit`.
struct Intervals {
  alignas(32) double least[16], limit[16];

  Intervals() {
    std::fill_n(least, 16, -0x1p30);
    std::fill_n(limit, 16, 0x1p30);
  }
  // Where one end is open, half a step from the other.
  float middle(int i, double slope) const {
    if (least[i] == -0x1p30 && limit[i] == 0x1p30) return 0.5f;
    if (least[i] == -0x1p30) return static_cast<float>(limit[i] - slope / 2);
    if (limit[i] == 0x1p30) return static_cast<float>(least[i] + slope / 2);
    return static_cast<float>(least[i] + (limit[i] - least[i]) / 2);
  }
};

// Stored values of 16 accumulators, by any vector form.
template <Form form>
inline void stored(const Choice& choice, const Store& store, const Group& group, const int32_t* acc, int16_t* values) {
  const __m256i offset = _mm256_set1_epi32(static_cast<int32_t>(choice.offset()));
  const __m256i words = requantize16<form>(_mm256_add_epi32(load32(acc), offset),
                                           _mm256_add_epi32(load32(acc + 8), offset), group, store);
  const __m256i low = _mm256_set1_epi16(static_cast<int16_t>(choice.low));
  const __m256i high = _mm256_set1_epi16(static_cast<int16_t>(choice.high));
  // In the order of accumulators.
  store32(values, _mm256_permute4x64_epi64(_mm256_min_epi16(_mm256_max_epi16(words, low), high), 0xd8));
}

// Finds the proven form's constants for the columns of a group; false when it is not the same function as `form`.
template <Form form>
class Proof {
 public:
  Proof(const Choice& choice, const Group& group) : choice_(choice), store_(choice.store()), group_(group) {
    for (int byte = 0; byte < 16; ++byte) {
      const int i = accumulator_of_byte(byte);
      const int quarter = 2 * (i / 8) + i % 2, lane = i % 8 / 2;
      used_[i] = group.columns[byte] >= 0;
      used_mask_ |= used_[i] ? 1 << i : 0;
      least_[i] = used_[i] ? group.least[i] : 0;
      greatest_[i] = used_[i] ? group.greatest[i] : 0;
      slope_[i] = used_[i] ? group.scale[quarter][lane] : 0;
      inverse_[i] = slope_[i] > 0 ? 1 / slope_[i] : 0;
    }
  }

  // `steps`: memory for one of each value. `shorter`: with one term of the slope.
  __attribute__((noinline)) bool holds(AlignedArray<Step>& steps, bool shorter, Group* group) const {
    int64_t count = 0;
    for (int value = choice_.low + 1; value <= choice_.high; ++value) {
      if (!find(value, steps.data()[count++])) return false;
    }
    // The ends of the range are a step of their own.
    Step& ends = steps.data()[count++];
    for (int i = 0; i < 16; ++i) {
      ends.before[i] = least_[i];
      ends.at[i] = greatest_[i];
    }
    stored<form>(choice_, store_, group_, ends.before, ends.value_before);
    stored<form>(choice_, store_, group_, ends.at, ends.value_at);

    if (shorter) return holds_shorter(steps.data(), count, group);
    for (int i = 0; i < 16; ++i) {
      // Rounded down, so that the rest is not negative: that and the order of the offsets keep the line monotone.
      const auto high = static_cast<float>(slope_[i]);
      group->slope[i] = static_cast<double>(high) > slope_[i] ? std::nextafterf(high, 0.0f) : high;
      group->slope_rest[i] = static_cast<float>(slope_[i] - static_cast<double>(group->slope[i]));
    }
    // Most columns need no other offsets than the exact form has.
    if (differing<kProven>(steps.data(), count, *group) == 0) return true;
    Intervals positive, negative;
    for (int value = choice_.low + 1; value <= choice_.high; ++value) {
      narrow(value, steps.data()[value - choice_.low - 1], slope_, &positive, &negative);
    }
    for (int i = 0; i < 16; ++i) {
      group->offset[i] = positive.middle(i, slope_[i]);
      group->offset_negative[i] = form == Form::line ? group->offset[i] : negative.middle(i, slope_[i]);
      const bool empty = !(positive.least[i] < positive.limit[i]) || !(negative.least[i] < negative.limit[i]);
      if (used_[i] && (empty || group->offset_negative[i] > group->offset[i])) return false;
    }
    // The inner sum is rounded down: where little room is left between the steps, the middle may be too low.
    for (int tries = 0; tries < kTries; ++tries) {
      const int wrong = differing<kProven>(steps.data(), count, *group);
      if (wrong == 0) return true;
      for (int i = 0; i < 16; ++i) {
        if ((wrong >> i & 1) == 0) continue;
        for (float* offset : {group->offset + i, group->offset_negative + i}) *offset = std::nextafterf(*offset, 2);
      }
    }
    return false;
  }

 private:
  static constexpr Form kProven = form == Form::line ? Form::proven : Form::proven_by_sign;
  static constexpr int kTries = 3;  // offsets, each the least that is more than the one before

  // One multiply-add is rounded once, down, so that any offset between the steps will do.
  bool holds_shorter(const Step* steps, int64_t count, Group* group) const {
    int open = used_mask_;
    // The binary32 numbers on both sides of the slope.
    for (const int next : {0, 1}) {
      alignas(32) double slope[16];
      alignas(32) float shorter[16];
      for (int i = 0; i < 16; i += 4) {
        const __m128i below = _mm_castps_si128(_mm256_cvtpd_ps(_mm256_load_pd(slope_ + i)));
        const __m128 side = _mm_castsi128_ps(_mm_add_epi32(below, _mm_set1_epi32(next)));
        _mm_store_ps(shorter + i, side);
        _mm256_store_pd(slope + i, _mm256_cvtps_pd(side));
      }
      Intervals room, unused;
      for (int64_t s = 0; s + 1 < count; ++s) {
        narrow(choice_.low + 1 + static_cast<int>(s), steps[s], slope, &room, &unused);
      }
      for (int i = 0; i < 16; ++i) {
        const auto offset = static_cast<double>(room.middle(i, slope[i]));
        if ((open >> i & 1) == 0 || offset < room.least[i] || offset >= room.limit[i]) continue;
        group->slope[i] = shorter[i];
        group->slope_rest[i] = 0;
        group->offset[i] = group->offset_negative[i] = static_cast<float>(offset);
        open &= ~(1 << i);
      }
      if (open == 0) return differing<Form::proven_short>(steps, count, *group) == 0;
    }
    return false;
  }

  // Looks for the step up to `value` near where the slope puts it.
  bool find(int value, Step& step) const {
    const int rescaled = value - choice_.zero_point - choice_.flip;
    const float* offset = form == Form::line || rescaled > 0 ? group_.offset : group_.offset_negative;
    for (int i = 0; i < 16; i += 4) {
      const __m128i highest = load16(greatest_ + i);
      const __m256d least = _mm256_cvtepi32_pd(load16(least_ + i)), most = _mm256_cvtepi32_pd(highest);
      const __m256d target = _mm256_sub_pd(_mm256_set1_pd(rescaled), _mm256_cvtps_pd(_mm_load_ps(offset + i)));
      const __m256d place = _mm256_mul_pd(target, _mm256_load_pd(inverse_ + i));
      // The conversion rounds down, as all here.
      const __m128i before = _mm256_cvtpd_epi32(_mm256_min_pd(_mm256_max_pd(place, least), most));
      store16(step.before + i, before);
      // None is behind the last one.
      store16(step.at + i, _mm_sub_epi32(before, _mm_cmpgt_epi32(highest, before)));
    }
    int missing = evaluate(value, step);
    if (missing == 0) return true;
    // A few columns have their step beside it.
    alignas(32) int32_t places[16];
    std::copy_n(step.before, 16, places);
    for (const int shift : {-1, 1, -2, 2}) {
      for (int i = 0; i < 16; ++i) {
        if ((missing >> i & 1) == 0) continue;
        const auto inside = [&](int64_t acc) { return std::clamp<int64_t>(acc, least_[i], greatest_[i]); };
        step.before[i] = static_cast<int32_t>(inside(int64_t{places[i]} + shift));
        step.at[i] = static_cast<int32_t>(inside(int64_t{places[i]} + shift + 1));
      }
      missing = evaluate(value, step);
      if (missing == 0) return true;
    }
    return false;
  }

  // Computes both sides; a bit for every column whose step is not between them.
  int evaluate(int value, Step& step) const {
    stored<form>(choice_, store_, group_, step.before, step.value_before);
    stored<form>(choice_, store_, group_, step.at, step.value_at);
    const __m256i target = _mm256_set1_epi16(static_cast<int16_t>(value));
    const __m256i below =
        _mm256_or_si256(_mm256_cmpgt_epi16(target, load32(step.value_before)), same(step.before, least_));
    const __m256i short_of =
        _mm256_andnot_si256(same(step.at, greatest_), _mm256_cmpgt_epi16(target, load32(step.value_at)));
    const __m256i missing = _mm256_or_si256(short_of, _mm256_xor_si256(below, _mm256_set1_epi8(-1)));
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(missing), _mm256_extracti128_si256(missing, 1));
    return _mm_movemask_epi8(bytes) & used_mask_;
  }

  // Words in the order of accumulators: which of them are the other ones.
  static __m256i same(const int32_t* accumulators, const int32_t* others) {
    const __m256i words = _mm256_packs_epi32(_mm256_cmpeq_epi32(load32(accumulators), load32(others)),
                                             _mm256_cmpeq_epi32(load32(accumulators + 8), load32(others + 8)));
    return _mm256_permute4x64_epi64(words, 0xd8);
  }

  // What a step asks of the offsets; of a line without a sign, `positive` is for all.
  void narrow(int value, const Step& step, const double* slope, Intervals* positive, Intervals* negative) const {
    const __m256d target = _mm256_set1_pd(value - choice_.zero_point - choice_.flip);
    const auto hold = [&](const int32_t* accumulators, int i, __m128i words, bool reached) {
      const __m128i acc = load16(accumulators + i);
      // As the proven forms see them.
      const __m256d a = _mm256_cvtps_pd(_mm_cvtepi32_ps(acc));
      const __m256d place = _mm256_fnmadd_pd(a, _mm256_load_pd(slope + i), target);
      const __m256d holds = _mm256_castsi256_pd(_mm256_cvtepi16_epi64(words));
      const __m256d minus = _mm256_castsi256_pd(_mm256_cvtepi32_epi64(acc));
      for (Intervals* side : {positive, negative}) {
        if (form == Form::line && side == negative) continue;
        const __m256d here = form == Form::line ? holds
                             : side == negative ? _mm256_and_pd(holds, minus)
                                                : _mm256_andnot_pd(minus, holds);
        double* end = (reached ? side->least : side->limit) + i;
        const __m256d old = _mm256_load_pd(end);
        const __m256d met = reached ? _mm256_max_pd(old, place) : _mm256_min_pd(old, place);
        _mm256_store_pd(end, _mm256_blendv_pd(old, met, here));
      }
    };
    const __m256i words = _mm256_set1_epi16(static_cast<int16_t>(value - 1));
    alignas(32) int16_t reached[16], missed[16];
    store32(reached, _mm256_cmpgt_epi16(load32(step.value_at), words));
    store32(missed, _mm256_xor_si256(_mm256_cmpgt_epi16(load32(step.value_before), words), _mm256_set1_epi8(-1)));
    for (int i = 0; i < 16; i += 4) {
      hold(step.at, i, load8(reached + i), true);
      hold(step.before, i, load8(missed + i), false);
    }
  }

  // A bit for every column that differs at a step.
  template <Form line>
  int differing(const Step* steps, int64_t count, const Group& group) const {
    Choice proven = choice_;
    proven.prove(line);
    const Store store = proven.store();
    alignas(32) int16_t before[16], at[16];
    __m256i all = _mm256_set1_epi8(-1);
    for (int64_t s = 0; s < count; ++s) {
      stored<line>(proven, store, group, steps[s].before, before);
      stored<line>(proven, store, group, steps[s].at, at);
      const __m256i same = _mm256_and_si256(_mm256_cmpeq_epi16(load32(before), load32(steps[s].value_before)),
                                            _mm256_cmpeq_epi16(load32(at), load32(steps[s].value_at)));
      all = _mm256_and_si256(all, same);
    }
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    return ~_mm_movemask_epi8(bytes) & used_mask_;
  }

  const Choice& choice_;
  const Store store_;
  const Group& group_;
  bool used_[16];
  int used_mask_ = 0;
  alignas(32) double slope_[16], inverse_[16];
  alignas(32) int32_t least_[16], greatest_[16];
};

bool prove(const Choice& choice, AlignedArray<Step>& steps, bool shorter, Group& group) {
  const Group exact = group;
  return choice.form == Form::line ? Proof<Form::line>(choice, exact).holds(steps, shorter, &group)
                                   : Proof<Form::line_by_sign>(choice, exact).holds(steps, shorter, &group);
}

}  // namespace

Choice::Choice(const rules::Requantize& requantize, const Range* own)
    : Choice(requantize, own == nullptr ? greatest_of(requantize) : greatest_of(requantize, own), own) {}

Choice::Choice(const rules::Requantize& requantize, double greatest) : Choice(requantize, greatest, nullptr) {}

Choice::Choice(const rules::Requantize& r, double greatest_acc, const Range* own)
    : form(choose(r, greatest_acc, own)), greatest(greatest_acc) {
  if (form == Form::scalar) return;
  zero_point = r.zero_point;
  flip = r.flip;
  if (r.store == StoreRule::clamp_then_zero_point) {
    first_low = r.low - r.zero_point;
    first_high = r.high - r.zero_point;
  }
  low = r.low + r.flip;
  high = r.high + r.flip;
  if (form == Form::product) flip += zero_point;
}

void Choice::fill(const rules::Requantize& r, const int64_t* columns, Group& group, const Range* own) const {
  for (int byte = 0; byte < 16; ++byte) {
    const int64_t column = columns[byte];
    group.columns[byte] = column;
    if (column < 0 || form == Form::scalar) continue;
    const rules::Multiplier& m = r.multipliers.data()[r.multipliers.size() == 1 ? 0 : column];
    const int i = accumulator_of_byte(byte);
    const Range range = range_of(greatest, own, column);
    const double most = magnitude(range);
    group.least[i] = static_cast<int32_t>(range.least);
    group.greatest[i] = static_cast<int32_t>(std::min(range.greatest, 0x1p31 - 1));
    const int quarter = 2 * (i / 8) + (is_line(form) ? i % 2 : i % 8 / 4);
    const int lane = is_line(form) ? i % 8 / 2 : i % 4;
    group.slope[i] = static_cast<float>(m.factor);
    group.slope_rest[i] = m.second;
    group.offset[i] = m.addend;
    group.scale[quarter][lane] = m.factor;
    Straight s;
    if (form == Form::binary64 || form == Form::binary32 || form == Form::product || !straight(r.rescale, m, s))
      continue;
    group.scale[quarter][lane] = std::ldexp(static_cast<double>(s.multiplier), -(31 + s.right));
    group.left[i] = s.left;
    double& addend = group.addend[quarter][lane];
    double& addend_negative = group.addend_negative[quarter][lane];
    const double eps = s.eps ? std::ldexp(1.0, -(s.right + 1)) : 0;
    group.offset[i] = static_cast<float>(0.5 + eps);
    group.offset_negative[i] = static_cast<float>(0.5 - eps);
    if (is_line(form)) {
      line_addends(s, most, int64_t{r.zero_point} + r.flip, &addend, &addend_negative);
    } else {
      addend = 0.5 + eps;
      addend_negative = 0.5 - eps;
    }
    // Ties toward plus infinity at the second step do not depend on the sign.
    if (r.rescale == RescaleRule::q31_two_step_up_up) {
      addend_negative = addend;
      group.offset_negative[i] = group.offset[i];
    }
  }
}

void Choice::prove(Form proven) {
  form = proven;
  flip += zero_point;
}

void Requantizer::prepare(const rules::Requantize& requantize, const int64_t* columns, int64_t groups,
                          const Range* own) {
  const Form exact = choice_.form;
  groups_ = AlignedArray<Group>(groups);
  const auto fill = [&] {
    for (int64_t i = 0; i < groups; ++i) choice_.fill(requantize, columns + 16 * i, groups_.data()[i], own);
  };
  fill();
  // Results of lines are below 2^19, and their sums with the zero point saturate far from the clamp.
  const bool small = std::abs(choice_.zero_point + choice_.flip) <= kMostZeroPoint;
  if (!is_line(exact) || !small || choice_.low > choice_.high) return;
  const RoundingMode mode(exact);
  AlignedArray<Step> steps(choice_.high - choice_.low + 1);
  const auto hold = [&](bool shorter) {
    bool all = true;
    for (int64_t i = 0; i < groups && all; ++i) all = prove(choice_, steps, shorter, groups_.data()[i]);
    return all;
  };
  if (exact == Form::line) {
    if (hold(true)) {
      choice_.prove(Form::proven_short);
      return;
    }
    fill();
  }
  if (hold(false)) choice_.prove(exact == Form::line ? Form::proven : Form::proven_by_sign);
}

void Requantizer::requantize_scalar(const int32_t* acc, const Group& group, uint8_t* out) const {
  for (int i = 0; i < 16; ++i) {
    const int64_t column = group.columns[i];
    out[i] = column < 0 ? uint8_t{0} : portable::requantize_one(*general_, acc[accumulator_of_byte(i)], column);
  }
}

}  // namespace bittrue::BITTRUE_ISA

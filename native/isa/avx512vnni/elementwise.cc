// Additions, maxima and sums of rows, and table lookups.

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "isa/avx512vnni/cores.h"
#include "isa/avx512vnni/intrinsics.h"
#include "isa/cores.h"
#include "isa/portable/aligned_values.h"
#include "isa/portable/scalar_requantize.h"

namespace bittrue::avx512vnni {
namespace {

// Of one byte and more.
inline __mmask64 next_bytes(int64_t count) { return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1; }
// ---- Addition ----
//
// An operand has only 256 values, and a pair of them 65536, so everything claimed about them is tried out:
//  * value(q) = q * slope + constant + ((q * fraction + rounding) >> kFractionBits), with one `rounding` below the zero
//    point and one from it on (two roundings away from zero act like that) for which all 256 values are equal. Where an
//    operand is aligned by a power of two its fraction is zero. The sum of two values is exact in 32 bits.
//  * stored = floor(sum * scale + addend) by one binary64 multiply-add onto 1.5 * 2^20, where the last place is 2^-32
//    and rounding down leaves the integer in the high word. All 65536 results are compared, with the instructions that
//    will run; where they differ, even with an addend for negative sums, the results themselves become a table.

constexpr int kFractionBits = 22;  // times a byte: below 2^30
constexpr int64_t kOne = int64_t{1} << kFractionBits;
constexpr int kFractionLow = 7, kSlopeLow = 8;  // bits of the lower of the two 16-bit factors
constexpr int64_t kLargest = int64_t{1} << 29;  // of values: their sums need 31 bits at most

struct Operand {
  int64_t zero_point, slope, constant, fraction;
  int64_t rounding[2];  // below the zero point, and from it on; multiples of 2^kFractionLow
};

// The greatest rounding that gives value(q) for first <= q < last, if there is one. Just below 1, and 1/2 more where a
// second rounding favours the values from the zero point on, is the most there can be.
bool find_rounding(const int64_t* values, int64_t scaled, int64_t first, int64_t last, int64_t* rounding) {
  int64_t least = -kOne, most = kOne * 3 / 2;
  for (int64_t q = first; q < last; ++q) {
    const int64_t begin = (values[q] - values[0]) * kOne - q * scaled;
    least = begin > least ? begin : least;
    most = begin + kOne - 1 < most ? begin + kOne - 1 : most;
  }
  *rounding = (most >> kFractionLow) * (int64_t{1} << kFractionLow);
  return *rounding >= least;
}

bool find_operand(const int64_t* values, double slope, int64_t zero_point, Operand* operand) {
  bool linear = true;
  for (int64_t q = 0; q < 256; ++q) {
    if (values[q] < -kLargest || values[q] > kLargest) return false;
    linear = linear && values[q] - values[0] == q * (values[1] - values[0]);
  }
  operand->constant = values[0];
  operand->zero_point = zero_point < 0 ? 0 : zero_point > 256 ? 256 : zero_point;
  if (linear) {
    operand->slope = values[1] - values[0];
    operand->fraction = operand->rounding[0] = operand->rounding[1] = 0;
    return true;
  }
  if (!(std::fabs(slope) < static_cast<double>(kLargest))) return false;
  const int64_t nearest = std::llrint(slope * static_cast<double>(kOne));
  for (int64_t scaled = nearest - 2; scaled <= nearest + 2; ++scaled) {
    if (!find_rounding(values, scaled, 0, operand->zero_point, &operand->rounding[0])) continue;
    if (!find_rounding(values, scaled, operand->zero_point, 256, &operand->rounding[1])) continue;
    operand->slope = scaled >> kFractionBits;
    operand->fraction = scaled & (kOne - 1);
    return true;
  }
  return false;
}

// Two 16-bit factors, for first and second operand, in every dword.
inline int32_t pair(int64_t first, int64_t second) {
  return static_cast<int32_t>((static_cast<uint32_t>(second) << 16) | (static_cast<uint32_t>(first) & 0xFFFF));
}

// Of an operand with a fraction.
struct FractionConstants {
  int32_t threshold;  // the zero point, above 16 bits
  int32_t high, low;  // multiples of 2^kFractionLow, and what is below them
  int32_t rounding[2];
};

struct SumConstants {
  bool swapped;  // first and second operand
  int fractions;
  int32_t slope_high, slope_low;  // multiples of 2^kSlopeLow, and what is below them
  int32_t sum_high, sum_low;      // the same of both constants together, 2^31 included
  FractionConstants second, first;
  double scale, addend, addend_negative;
  uint8_t low, high;
};

// In registers.
struct Fraction {
  explicit Fraction(const FractionConstants& c)
      : threshold(_mm512_set1_epi32(c.threshold)),
        high(_mm512_set1_epi32(c.high)),
        low(_mm512_set1_epi32(c.low)),
        below(_mm512_set1_epi32(c.rounding[0])),
        above(_mm512_set1_epi32(c.rounding[1])) {}

  // `words` as they are for the second operand, moved up for the first one.
  __m512i operator()(__m512i words, __m512i moved) const {
    const __m512i rounding = _mm512_mask_mov_epi32(above, _mm512_cmplt_epi32_mask(moved, threshold), below);
    const __m512i sum = _mm512_slli_epi32(_mm512_dpwssd_epi32(rounding, words, high), kFractionLow);
    return _mm512_srai_epi32(_mm512_dpwssd_epi32(sum, words, low), kFractionBits);
  }

  __m512i threshold, high, low, below, above;
};

// Operands may have been swapped: only the second one, or both, have a fraction.
template <int kFractions, bool kBySign>
class SumForm {
 public:
  explicit SumForm(const SumConstants& c)
      : slope_high_(_mm512_set1_epi32(c.slope_high)),
        slope_low_(_mm512_set1_epi32(c.slope_low)),
        sum_high_(_mm512_set1_epi32(c.sum_high)),
        sum_low_(_mm512_set1_epi32(c.sum_low)),
        second_(c.second),
        first_(c.first),
        scale_(_mm512_set1_pd(c.scale)),
        addend_(_mm512_set1_pd(c.addend)),
        addend_negative_(_mm512_set1_pd(c.addend_negative)),
        low_(_mm512_set1_epi8(static_cast<char>(c.low))),
        high_(_mm512_set1_epi8(static_cast<char>(c.high))) {}

  // 64 elements; the unpacks and the packs undo each other's order.
  __m512i operator()(__m512i a, __m512i b) const {
    const __m512i zero = _mm512_setzero_si512();
    const __m512i low = _mm512_unpacklo_epi8(a, b), high = _mm512_unpackhi_epi8(a, b);
    const __m512i r01 =
        _mm512_packs_epi32(stored(sum(_mm512_unpacklo_epi8(low, zero))), stored(sum(_mm512_unpackhi_epi8(low, zero))));
    const __m512i r23 = _mm512_packs_epi32(stored(sum(_mm512_unpacklo_epi8(high, zero))),
                                           stored(sum(_mm512_unpackhi_epi8(high, zero))));
    return _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(r01, r23), low_), high_);
  }

 private:
  // first + second + 2^31 of 16 pairs of words.
  __m512i sum(__m512i words) const {
    const __m512i high = _mm512_dpwssd_epi32(sum_high_, words, slope_high_);
    const __m512i whole = _mm512_dpwssd_epi32(_mm512_slli_epi32(high, kSlopeLow), words, slope_low_);
    // The lower bits of the constant are part of the second operand's rounding, if it has one.
    const __m512i result = _mm512_add_epi32(whole, kFractions > 0 ? second_(words, words) : sum_low_);
    return kFractions > 1 ? _mm512_add_epi32(result, first_(words, _mm512_slli_epi32(words, 16))) : result;
  }

  // u = sum + 2^31 under the exponent word 0x43300000 is the binary64 number 2^52 + u, without a conversion.
  __m512i stored(__m512i u) const {
    constexpr int down = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    const __m512i exponent = _mm512_set1_epi32(0x43300000);
    const __m512i even = _mm512_mask_blend_epi32(0xAAAA, u, exponent);
    const __m512i odd =
        _mm512_castps_si512(_mm512_mask_movehdup_ps(_mm512_castsi512_ps(exponent), 0x5555, _mm512_castsi512_ps(u)));
    __m512d even_addend = addend_, odd_addend = addend_;
    if (kBySign) {
      const __m512i positive = _mm512_set1_epi64(int64_t{1} << 31);
      even_addend = _mm512_mask_blend_pd(_mm512_test_epi64_mask(even, positive), addend_negative_, addend_);
      odd_addend = _mm512_mask_blend_pd(_mm512_test_epi64_mask(odd, positive), addend_negative_, addend_);
    }
    const __m512d even_result = _mm512_fmadd_round_pd(_mm512_castsi512_pd(even), scale_, even_addend, down);
    const __m512d odd_result = _mm512_fmadd_round_pd(_mm512_castsi512_pd(odd), scale_, odd_addend, down);
    const __m512 high = _mm512_mask_movehdup_ps(_mm512_castpd_ps(odd_result), 0x5555, _mm512_castpd_ps(even_result));
    return _mm512_sub_epi32(_mm512_castps_si512(high), _mm512_set1_epi32(0x41380000));
  }

  __m512i slope_high_, slope_low_, sum_high_, sum_low_;
  Fraction second_, first_;
  __m512d scale_, addend_, addend_negative_;
  __m512i low_, high_;
};

template <int kFractions, bool kBySign>
void add_rows(const SumConstants& constants, const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) {
  const SumForm<kFractions, kBySign> form(constants);
  if (constants.swapped) std::swap(first, second);
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    _mm512_storeu_si512(out + i, form(_mm512_loadu_si512(first + i), _mm512_loadu_si512(second + i)));
  }
  if (i == count) return;
  const __mmask64 mask = next_bytes(count - i);
  _mm512_mask_storeu_epi8(out + i, mask,
                          form(_mm512_maskz_loadu_epi8(mask, first + i), _mm512_maskz_loadu_epi8(mask, second + i)));
}

using AddRows = void (*)(const SumConstants&, const uint8_t*, const uint8_t*, uint8_t*, int64_t);

class SumByForm final : public Elementwise {
 public:
  SumByForm(const SumConstants& constants, AddRows rows) : constants_(constants), rows_(rows) {}
  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    rows_(constants_, first, second, out, count);
  }

 private:
  const SumConstants constants_;
  const AddRows rows_;
};

struct Table {
  uint8_t stored[65536];  // [first][second]
};

class SumByTable final : public Elementwise {
 public:
  explicit SumByTable(std::unique_ptr<Table> table) : table_(std::move(table)) {}
  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    const uint8_t* const stored = table_->stored;
    for (int64_t i = 0; i < count; ++i) out[i] = stored[256 * first[i] + second[i]];
  }

 private:
  const std::unique_ptr<Table> table_;
};

FractionConstants split(const Operand& operand, bool second, int64_t riding) {
  const int64_t high = operand.fraction >> kFractionLow, low = operand.fraction & ((1 << kFractionLow) - 1);
  FractionConstants c;
  c.threshold = static_cast<int32_t>(operand.zero_point << 16);
  c.high = second ? pair(0, high) : pair(high, 0);
  c.low = second ? pair(0, low) : pair(low, 0);
  for (int i = 0; i < 2; ++i) c.rounding[i] = static_cast<int32_t>((operand.rounding[i] + riding) >> kFractionLow);
  return c;
}

bool find_constants(const AddSpec& spec, SumConstants* c) {
  Operand operands[2];
  int64_t values[2][256];
  portable::aligned_values(spec, values[0], values[1]);
  const double unit = std::ldexp(1.0, spec.left);
  const double slopes[2] = {portable::real_multiplier(spec.align, spec.first) * unit,
                            portable::real_multiplier(spec.align, spec.second) * (spec.subtract ? -unit : unit)};
  const int64_t zero_points[2] = {spec.first_zero_point, spec.second_zero_point};
  for (int i = 0; i < 2; ++i) {
    if (!find_operand(values[i], slopes[i], zero_points[i], &operands[i])) return false;
    if (operands[i].slope >> kSlopeLow != static_cast<int16_t>(operands[i].slope >> kSlopeLow)) return false;
  }
  c->swapped = operands[1].fraction == 0;
  const Operand &first = operands[c->swapped ? 1 : 0], &second = operands[c->swapped ? 0 : 1];
  c->fractions = second.fraction == 0 ? 0 : first.fraction == 0 ? 1 : 2;
  const int64_t slope_mask = (1 << kSlopeLow) - 1;
  c->slope_high = pair(first.slope >> kSlopeLow, second.slope >> kSlopeLow);
  c->slope_low = pair(first.slope & slope_mask, second.slope & slope_mask);
  const int64_t constant = first.constant + second.constant + (int64_t{1} << 31);
  c->sum_high = static_cast<int32_t>(constant >> kSlopeLow);
  c->sum_low = static_cast<int32_t>(constant & slope_mask);
  // The lower bits of the constant ride above the fraction: 255 * 2^22 + 1.5 * 2^22 + 255 * 2^22 < 2^31.
  c->second = split(second, true, static_cast<int64_t>(c->sum_low) << kFractionBits);
  c->first = split(first, false, 0);

  using rules::RescaleRule;
  const rules::Requantize& r = spec.requantize;
  const rules::Multiplier& m = r.multipliers.data()[0];
  const RescaleRule rule = r.rescale;
  c->scale = portable::real_multiplier(rule, m);
  if (!(c->scale > 0 && c->scale < 1) || r.low + r.flip < 0 || r.high + r.flip > 255) return false;
  c->low = static_cast<uint8_t>(r.low + r.flip);
  c->high = static_cast<uint8_t>(r.high + r.flip);
  // The second of two roundings moves ties by half of its own last place; a single one, away from zero, moves them by
  // anything small.
  const bool two_steps = rule == RescaleRule::q31_two_step_up_away || rule == RescaleRule::q31_two_step_up_up;
  const double second_rounding = two_steps && m.exponent < 0 ? std::ldexp(1.0, m.exponent - 1) : 0.0;
  const double away = rule == RescaleRule::binary64_multiply_away ? std::ldexp(1.0, -20) : 0.0;
  // 2^52 + u = sum + 2^52 + 2^31, which is taken out again.
  const double base = 1.5 * 1048576 + 0.5 + r.zero_point + r.flip - (4503599627370496.0 + 2147483648.0) * c->scale;
  c->addend = base + second_rounding;
  c->addend_negative = base + (rule == RescaleRule::q31_two_step_up_away ? -second_rounding : second_rounding) - away;
  return true;
}

// By the exact forms.
void fill(const AddSpec& spec, Table* table) {
  int64_t first[256], second[256];
  portable::aligned_values(spec, first, second);
  for (int a = 0; a < 256; ++a) {
    int32_t sums[256];
    for (int b = 0; b < 256; ++b) sums[b] = static_cast<int32_t>(static_cast<uint32_t>(first[a] + second[b]));
    requantize_row(spec.requantize, sums, table->stored + 256 * a, 256);
  }
}

bool reproduces(const SumConstants& constants, AddRows rows, const Table& table) {
  uint8_t bytes[256], same[256], out[256];
  for (int i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
  for (int a = 0; a < 256; ++a) {
    std::memset(same, a, sizeof same);
    rows(constants, same, bytes, out, 256);
    if (std::memcmp(out, table.stored + 256 * a, 256) != 0) return false;
  }
  return true;
}

// ---- Lookup ----
//
// Words hold the entries i and i + 128: two permutations of 64 words each find both entries of a byte, then its bit 6
// chooses the permutation and its bit 7 the entry.

struct WordTable {
  __m512i low[2], high[2];  // for bit 6 clear and set
};

inline __m512i word_table(const uint8_t* table) {
  const __m512i low = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(table)));
  const __m512i high = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(table + 128)));
  return _mm512_or_si512(low, _mm512_slli_epi16(high, 8));
}

inline __m512i look_up(const WordTable& table, __m512i x) {
  const __m512i odd = _mm512_srli_epi16(x, 8);
  const __mmask32 even_high = _mm512_test_epi16_mask(x, _mm512_set1_epi16(0x40));
  const __mmask32 odd_high = _mm512_test_epi16_mask(x, _mm512_set1_epi16(0x4000));
  // Permutations take the low 6 bits of an index word.
  const auto words = [&table](__m512i index, __mmask32 high) {
    return _mm512_mask_blend_epi16(high, _mm512_permutex2var_epi16(table.low[0], index, table.low[1]),
                                   _mm512_permutex2var_epi16(table.high[0], index, table.high[1]));
  };
  const __m512i even_words = words(x, even_high), odd_words = words(odd, odd_high);
  constexpr __mmask64 odd_bytes = 0xAAAAAAAAAAAAAAAA;
  const __m512i low = _mm512_mask_blend_epi8(odd_bytes, even_words, _mm512_slli_epi16(odd_words, 8));
  const __m512i high = _mm512_mask_blend_epi8(odd_bytes, _mm512_srli_epi16(even_words, 8), odd_words);
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high);
}

// ---- Rows ----

// Registers of one column of taps; several columns hide the latency of the chain over the taps.
template <int kRegisters>
inline void max_columns(const uint8_t* const* taps, int64_t taps_count, uint8_t* out, int64_t at, __mmask64 mask,
                        __m512i low, __m512i high) {
  __m512i best[kRegisters];
  for (int r = 0; r < kRegisters; ++r) best[r] = low;
  for (int64_t k = 0; k < taps_count; ++k) {
    for (int r = 0; r < kRegisters; ++r) {
      const uint8_t* from = taps[k] + at + 64 * r;
      const __m512i bytes = kRegisters > 1 ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi8(mask, from);
      best[r] = _mm512_max_epu8(best[r], bytes);
    }
  }
  for (int r = 0; r < kRegisters; ++r) {
    const __m512i stored = _mm512_min_epu8(best[r], high);
    if (kRegisters > 1) {
      _mm512_storeu_si512(out + at + 64 * r, stored);
    } else {
      _mm512_mask_storeu_epi8(out + at, mask, stored);
    }
  }
}

inline __m512i load_tap(const uint8_t* const* taps, int64_t k, int64_t taps_count, int64_t at, __mmask64 mask) {
  return k < taps_count ? _mm512_maskz_loadu_epi8(mask, taps[k] + at) : _mm512_setzero_si512();
}

// 64 sums: four bytes of four rows become one dword, which is multiplied by ones and added up.
inline void sum_columns(const uint8_t* const* taps, int64_t taps_count, int64_t at, __mmask64 mask, int32_t* sums) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i acc[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
  for (int64_t k = 0; k < taps_count; k += 4) {
    const __m512i a = load_tap(taps, k, taps_count, at, mask), b = load_tap(taps, k + 1, taps_count, at, mask);
    const __m512i c = load_tap(taps, k + 2, taps_count, at, mask), d = load_tap(taps, k + 3, taps_count, at, mask);
    const __m512i ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
    const __m512i cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
    acc[0] = _mm512_dpbusd_epi32(acc[0], _mm512_unpacklo_epi16(ab_low, cd_low), ones);
    acc[1] = _mm512_dpbusd_epi32(acc[1], _mm512_unpackhi_epi16(ab_low, cd_low), ones);
    acc[2] = _mm512_dpbusd_epi32(acc[2], _mm512_unpacklo_epi16(ab_high, cd_high), ones);
    acc[3] = _mm512_dpbusd_epi32(acc[3], _mm512_unpackhi_epi16(ab_high, cd_high), ones);
  }
  // acc[v] holds in its 128-bit lane l the sums 16 l + 4 v ..: a transposition of 4 x 4 lanes.
  const __m512i low01 = _mm512_shuffle_i32x4(acc[0], acc[1], 0x44), high01 = _mm512_shuffle_i32x4(acc[0], acc[1], 0xEE);
  const __m512i low23 = _mm512_shuffle_i32x4(acc[2], acc[3], 0x44), high23 = _mm512_shuffle_i32x4(acc[2], acc[3], 0xEE);
  const __m512i rows[4] = {_mm512_shuffle_i32x4(low01, low23, 0x88), _mm512_shuffle_i32x4(low01, low23, 0xDD),
                           _mm512_shuffle_i32x4(high01, high23, 0x88), _mm512_shuffle_i32x4(high01, high23, 0xDD)};
  for (int r = 0; r < 4; ++r) {
    _mm512_mask_storeu_epi32(sums + at + 16 * r, static_cast<__mmask16>(mask >> (16 * r)), rows[r]);
  }
}

}  // namespace

std::unique_ptr<Elementwise> make_add(const AddSpec& spec) {
  std::unique_ptr<Table> table(new Table);
  fill(spec, table.get());
  SumConstants constants;
  if (find_constants(spec, &constants)) {
    static constexpr AddRows kForms[3][2] = {{add_rows<0, false>, add_rows<0, true>},
                                             {add_rows<1, false>, add_rows<1, true>},
                                             {add_rows<2, false>, add_rows<2, true>}};
    for (const AddRows rows : kForms[constants.fractions]) {
      if (reproduces(constants, rows, *table)) return std::unique_ptr<Elementwise>(new SumByForm(constants, rows));
    }
  }
  return std::unique_ptr<Elementwise>(new SumByTable(std::move(table)));
}

void max_rows(const uint8_t* const* taps, int64_t taps_count, uint8_t* out, int64_t count, int low, int high) {
  const __m512i lowest = _mm512_set1_epi8(static_cast<char>(low)), highest = _mm512_set1_epi8(static_cast<char>(high));
  int64_t i = 0;
  for (; i + 256 <= count; i += 256) max_columns<4>(taps, taps_count, out, i, ~__mmask64{0}, lowest, highest);
  for (; i < count; i += 64) max_columns<1>(taps, taps_count, out, i, next_bytes(count - i), lowest, highest);
}

void sum_rows(const uint8_t* const* taps, int64_t taps_count, int32_t* sums, int64_t count) {
  for (int64_t i = 0; i < count; i += 64) sum_columns(taps, taps_count, i, next_bytes(count - i), sums);
}

void lookup(const uint8_t* table, const uint8_t* in, uint8_t* out, int64_t count) {
  const WordTable words{{word_table(table), word_table(table + 32)}, {word_table(table + 64), word_table(table + 96)}};
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) _mm512_storeu_si512(out + i, look_up(words, _mm512_loadu_si512(in + i)));
  if (i == count) return;
  const __mmask64 mask = next_bytes(count - i);
  _mm512_mask_storeu_epi8(out + i, mask, look_up(words, _mm512_maskz_loadu_epi8(mask, in + i)));
}

}  // namespace bittrue::avx512vnni

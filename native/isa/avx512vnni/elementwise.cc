// Additions, maxima and sums of rows, and table lookups.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
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
// stored = floor((a * first + b * second + offset) / 2^shift) in integers, with upper and lower parts of 15 bits: pairs (a, b)
// are multiplied by both parts, and what the lower sums carry is added to the upper ones. An offset is looked for that all
// 65536 results of the rules allow, and all are compared, with the instructions that will run. Where they differ the next set
// adds them up.

constexpr int kPart = 15;

struct LineConstants {
  int32_t factors[2], offset[2];  // upper and lower part; factors of both as pairs of words
  int32_t shift;                  // of the upper part
  uint8_t low, high;
};

// In registers.
class SumLine {
 public:
  explicit SumLine(const LineConstants& c)
      : shift_(_mm_cvtsi32_si128(c.shift)),
        low_(_mm512_set1_epi8(static_cast<char>(c.low))),
        high_(_mm512_set1_epi8(static_cast<char>(c.high))) {
    for (int part = 0; part < 2; ++part) {
      factors_[part] = _mm512_set1_epi32(c.factors[part]);
      offset_[part] = _mm512_set1_epi32(c.offset[part]);
    }
  }

  // 64 elements; the unpacks and the packs undo each other's order.
  __m512i operator()(__m512i a, __m512i b) const {
    const __m512i r01 = words(_mm512_unpacklo_epi8(a, b)), r23 = words(_mm512_unpackhi_epi8(a, b));
    return _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(r01, r23), low_), high_);
  }

 private:
  // Saturated to 16 bits, which is monotone and reaches past the clamp.
  __m512i words(__m512i bytes) const {
    const __m512i zero = _mm512_setzero_si512();
    return _mm512_packs_epi32(sums(_mm512_unpacklo_epi8(bytes, zero)), sums(_mm512_unpackhi_epi8(bytes, zero)));
  }

  __m512i sums(__m512i pairs) const {
    const __m512i upper = _mm512_dpwssd_epi32(offset_[0], pairs, factors_[0]);
    const __m512i lower = _mm512_dpwssd_epi32(offset_[1], pairs, factors_[1]);
    return _mm512_sra_epi32(_mm512_add_epi32(upper, _mm512_srli_epi32(lower, kPart)), shift_);
  }

  __m128i shift_;
  __m512i factors_[2], offset_[2], low_, high_;
};

class SumByLine final : public Elementwise {
 public:
  explicit SumByLine(const LineConstants& constants) : constants_(constants) {}
  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    const SumLine line(constants_);
    int64_t i = 0;
    for (; i + 64 <= count; i += 64) {
      _mm512_storeu_si512(out + i, line(_mm512_loadu_si512(first + i), _mm512_loadu_si512(second + i)));
    }
    if (i == count) return;
    const __mmask64 mask = next_bytes(count - i);
    _mm512_mask_storeu_epi8(out + i, mask,
                            line(_mm512_maskz_loadu_epi8(mask, first + i), _mm512_maskz_loadu_epi8(mask, second + i)));
  }

 private:
  const LineConstants constants_;
};

struct Table {
  uint8_t stored[65536];  // [first][second]
};

// False where no offset gives all results.
bool find_line(const AddSpec& spec, const Table& table, LineConstants* c) {
  const rules::Requantize& r = spec.requantize;
  if (r.low + r.flip < 0 || r.high + r.flip > 255) return false;
  c->low = static_cast<uint8_t>(r.low + r.flip);
  c->high = static_cast<uint8_t>(r.high + r.flip);
  const double unit = std::ldexp(portable::real_multiplier(r.rescale, r.multipliers.data()[0]), spec.left);
  const double slopes[2] = {portable::real_multiplier(spec.align, spec.first) * unit,
                            portable::real_multiplier(spec.align, spec.second) * (spec.subtract ? -unit : unit)};
  // As many bits as two parts hold, and as a sum of upper parts leaves.
  const double largest = std::max(std::fabs(slopes[0]), std::fabs(slopes[1]));
  if (!(largest > 0)) return false;
  const int shift = std::min(2 * kPart, 2 * kPart - 2 - std::ilogb(largest));
  if (shift < kPart) return false;
  c->shift = shift - kPart;
  int64_t factors[2];
  for (int i = 0; i < 2; ++i) factors[i] = static_cast<int64_t>(std::nearbyint(std::ldexp(slopes[i], shift)));
  // Offsets are at least what results above the clamp's low end ask for, and below 1 more than the others do. All are
  // integers that binary64 has.
  __m512d leasts = _mm512_set1_pd(-std::numeric_limits<double>::infinity());
  __m512d limits = _mm512_set1_pd(std::numeric_limits<double>::infinity());
  const __m512d low = _mm512_set1_pd(c->low), high = _mm512_set1_pd(c->high);
  const __m512d one = _mm512_set1_pd(std::ldexp(1.0, shift)), second = _mm512_set1_pd(static_cast<double>(factors[1]));
  for (int i = 0; i < 65536; i += 8) {
    const __m512d first = _mm512_set1_pd(static_cast<double>(i / 256 * factors[0]));
    const __m512d b = _mm512_add_pd(_mm512_set1_pd(i % 256), _mm512_set_pd(7, 6, 5, 4, 3, 2, 1, 0));
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(table.stored + i));
    const __m512d stored = _mm512_cvtepi32_pd(_mm256_cvtepu8_epi32(bytes));
    const __m512d offset = _mm512_fmsub_pd(stored, one, _mm512_fmadd_pd(b, second, first));
    leasts = _mm512_mask_max_pd(leasts, _mm512_cmp_pd_mask(stored, low, _CMP_GT_OQ), leasts, offset);
    limits = _mm512_mask_min_pd(limits, _mm512_cmp_pd_mask(stored, high, _CMP_LT_OQ), limits, offset);
  }
  const double least = _mm512_reduce_max_pd(leasts), limit = _mm512_reduce_min_pd(limits) + std::ldexp(1.0, shift);
  // Results that are all at an end of the clamp, too, have no offset.
  if (!(least < limit) || !(std::fabs(least) + std::fabs(limit) < 1e12)) return false;
  const auto offset = static_cast<int64_t>(std::floor((least + limit) / 2));
  constexpr int64_t kLower = (1 << kPart) - 1;
  const auto pair = [](int64_t one, int64_t other) {
    return static_cast<int32_t>(static_cast<uint32_t>(other) << 16 | (static_cast<uint32_t>(one) & 0xFFFF));
  };
  c->factors[0] = pair(factors[0] >> kPart, factors[1] >> kPart);
  c->factors[1] = pair(factors[0] & kLower, factors[1] & kLower);
  c->offset[0] = static_cast<int32_t>(offset >> kPart);
  c->offset[1] = static_cast<int32_t>(offset & kLower);
  return true;
}

// By the exact forms.
void fill(const AddSpec& spec, Table* table) {
  int64_t first[256], second[256];
  portable::aligned_values(spec, first, second);
  for (int a = 0; a < 256; ++a) {
    int32_t sums[256];
    for (int b = 0; b < 256; ++b) sums[b] = static_cast<int32_t>(static_cast<uint32_t>(first[a] + second[b]));
    requantize_rows(spec.requantize, sums, 1, table->stored + 256 * a, 256);
  }
}

bool reproduces(const Elementwise& sum, const Table& table) {
  uint8_t bytes[256], same[256], out[256];
  for (int i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
  for (int a = 0; a < 256; ++a) {
    std::memset(same, a, sizeof same);
    sum.run(same, bytes, out, 256);
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
  LineConstants constants;
  if (find_line(spec, *table, &constants)) {
    std::unique_ptr<Elementwise> line(new SumByLine(constants));
    if (reproduces(*line, *table)) return line;
  }
  return nullptr;
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

#include "isa/average_rows.inc"

}  // namespace bittrue::avx512vnni

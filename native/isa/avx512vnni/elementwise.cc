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
// As portable::SumLine says: pairs (a, b) are multiplied by both parts of the factors. All 65536 results are compared, with the
// instructions that will run; where they differ the next set adds them up.

// In registers.
class SumsOfBytes {
 public:
  explicit SumsOfBytes(const portable::SumLine& c)
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
    return _mm512_sra_epi32(_mm512_add_epi32(upper, _mm512_srli_epi32(lower, portable::SumLine::kPart)), shift_);
  }

  __m128i shift_;
  __m512i factors_[2], offset_[2], low_, high_;
};

class SumByLine final : public Elementwise {
 public:
  explicit SumByLine(const portable::SumLine& constants) : constants_(constants) {}
  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    const SumsOfBytes line(constants_);
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
  const portable::SumLine constants_;
};

struct Table {
  uint8_t stored[65536];  // [first][second]
};

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
  portable::SumLine constants;
  if (portable::find_sum_line(spec, table->stored, &constants)) {
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

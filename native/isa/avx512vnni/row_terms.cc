// Row sums for weights with a zero point: VPDPBUSD with ones adds up four bytes per lane.
#include "isa/avx512vnni/cores.h"
#include "isa/avx512vnni/intrinsics.h"

namespace bittrue::avx512vnni {
namespace {

// Lane sums of one row.
inline __m512i lane_sums(const uint8_t* const* rows, int64_t capacity, int64_t segments, int64_t bytes,
                         __mmask64 tail) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sums = _mm512_setzero_si512();
  for (int64_t s = 0; s < segments; ++s, rows += capacity) {
    const uint8_t* row = *rows;
    int64_t d = 0;
    for (; d + 64 <= bytes; d += 64) sums = _mm512_dpbusd_epi32(sums, _mm512_loadu_si512(row + d), ones);
    if (tail != 0) sums = _mm512_dpbusd_epi32(sums, _mm512_maskz_loadu_epi8(tail, row + d), ones);
  }
  return sums;
}

// The sums over the lanes of four vectors, one per 32-bit lane of the result.
inline __m128i sum_lanes(const __m512i (&v)[4]) {
  const __m512i low = _mm512_add_epi32(_mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]));
  const __m512i high = _mm512_add_epi32(_mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]));
  const __m512i four = _mm512_add_epi32(_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high));
  const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(four), _mm512_extracti64x4_epi64(four, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

// The same for segments of up to 16 bytes: loads of 64 bytes would cross a cache line nearly every time.
inline __m128i short_lane_sums(const uint8_t* const* rows, int64_t capacity, int64_t segments, __mmask16 bytes) {
  const __m128i ones = _mm_set1_epi8(1);
  __m128i sums = _mm_setzero_si128();
  for (int64_t s = 0; s < segments; ++s, rows += capacity) {
    sums = _mm_dpbusd_epi32(sums, _mm_maskz_loadu_epi8(bytes, *rows), ones);
  }
  return sums;
}

inline __m128i sum_lanes(const __m128i (&v)[4]) {
  const __m128i low = _mm_add_epi32(_mm_unpacklo_epi32(v[0], v[1]), _mm_unpackhi_epi32(v[0], v[1]));
  const __m128i high = _mm_add_epi32(_mm_unpacklo_epi32(v[2], v[3]), _mm_unpackhi_epi32(v[2], v[3]));
  return _mm_add_epi32(_mm_unpacklo_epi64(low, high), _mm_unpackhi_epi64(low, high));
}

// terms[r] = factor * the sum over the lanes of lanes(pointers of row r).
template <typename Vector, typename Lanes>
inline void each_row(const uint8_t* const* rows, int64_t count, int32_t factor, int32_t* terms, const Lanes& lanes) {
  const __m128i factors = _mm_set1_epi32(factor);
  int64_t r = 0;
  for (; r + 4 <= count; r += 4) {
    const Vector sums[4] = {lanes(rows + r), lanes(rows + r + 1), lanes(rows + r + 2), lanes(rows + r + 3)};
    _mm_storeu_si128(reinterpret_cast<__m128i*>(terms + r), _mm_mullo_epi32(sum_lanes(sums), factors));
  }
  if (r == count) return;
  // Rows past the end repeat the last one; their sums are not stored.
  const int64_t used = count - r;
  Vector sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = lanes(rows + r + (i < used ? i : used - 1));
  _mm_mask_storeu_epi32(terms + r, static_cast<__mmask8>((1u << used) - 1), _mm_mullo_epi32(sum_lanes(sums), factors));
}

}  // namespace

void row_terms(const uint8_t* const* rows, int64_t capacity, int64_t segments, int64_t bytes, int64_t count,
               int32_t factor, int32_t* terms) {
  if (bytes <= 16) {
    const __mmask16 used = static_cast<__mmask16>((uint32_t{1} << bytes) - 1);
    each_row<__m128i>(rows, count, factor, terms,
                      [&](const uint8_t* const* row) { return short_lane_sums(row, capacity, segments, used); });
    return;
  }
  const __mmask64 tail = bytes % 64 == 0 ? 0 : (__mmask64{1} << (bytes % 64)) - 1;
  each_row<__m512i>(rows, count, factor, terms,
                    [&](const uint8_t* const* row) { return lane_sums(row, capacity, segments, bytes, tail); });
}

}  // namespace bittrue::avx512vnni

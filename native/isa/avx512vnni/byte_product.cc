// Products of bytes with VPDPBUSD: the second factor is computed at run time.
#include "isa/avx512vnni/intrinsics.h"

#include "isa/byte_tiles.h"

#include "isa/avx512vnni/cores.h"

namespace bittrue::avx512vnni {
namespace {

struct Bytes {
  using Vector = __m512i;
  using Row = __m512i;
  using Columns = __m512i;
  static constexpr int64_t kLanes = 16;
  static constexpr int kTileRows[] = {8, 8, 6, 6};

  static Row row(const uint8_t* from) {
    int32_t four;
    std::memcpy(&four, from, 4);
    return _mm512_set1_epi32(four);
  }
  static Columns columns(const int8_t* from) { return _mm512_loadu_si512(from); }
  static Vector add(Vector sum, Row row, Columns columns) { return _mm512_dpbusd_epi32(sum, row, columns); }
};

// Sums of up to kMost rows with 64 columns. Bytes of four lines of the matrix in turn are four columns per lane of 16 bytes, so
// lanes of sums are put in order at the end.
template <int kMost>
void in_place(const ByteRows& rows, int64_t first, const uint8_t* matrix, int64_t step, int64_t width) {
  __m512i sums[kMost][4];
  const uint8_t* from[kMost];
  unroll<kMost>([&](int r) __attribute__((always_inline)) {
    unroll<4>([&](int v) __attribute__((always_inline)) { sums[r][v] = _mm512_setzero_si512(); });
    from[r] = rows.rows + (first + r) * rows.row_step;
  });
  const __mmask64 used = width == 64 ? ~__mmask64{0} : (__mmask64{1} << width) - 1;
  const __m512i flip = _mm512_set1_epi8(INT8_MIN);
  const auto add = [&](int64_t k, __m512i a, __m512i b, __m512i c, __m512i d) __attribute__((always_inline)) {
    const __m512i low[2] = {_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d)};
    const __m512i high[2] = {_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d)};
    const __m512i columns[4] = {_mm512_unpacklo_epi16(low[0], low[1]), _mm512_unpackhi_epi16(low[0], low[1]),
                                _mm512_unpacklo_epi16(high[0], high[1]), _mm512_unpackhi_epi16(high[0], high[1])};
    unroll<kMost>([&](int r) __attribute__((always_inline)) {
      const __m512i row = Bytes::row(from[r] + k);
      unroll<4>([&](int v)
                    __attribute__((always_inline)) { sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], row, columns[v]); });
    });
  };
  const auto line = [&](int64_t i) __attribute__((always_inline)) {
    return _mm512_maskz_loadu_epi8(used, matrix + i * step) ^ flip;
  };
  int64_t k = 0;
  for (; k + 4 <= rows.depth; k += 4, matrix += 4 * step) add(k, line(0), line(1), line(2), line(3));
  const int64_t left = rows.depth - k;
  const __m512i none = _mm512_setzero_si512();
  if (left > 0) add(k, line(0), left > 1 ? line(1) : none, left > 2 ? line(2) : none, none);
  unroll<kMost>([&](int r) __attribute__((always_inline)) {
    int32_t* to = rows.sums + (first + r) * rows.stride;
    const __m512i low[2] = {_mm512_shuffle_i32x4(sums[r][0], sums[r][1], 0x44),
                            _mm512_shuffle_i32x4(sums[r][2], sums[r][3], 0x44)};
    const __m512i high[2] = {_mm512_shuffle_i32x4(sums[r][0], sums[r][1], 0xEE),
                             _mm512_shuffle_i32x4(sums[r][2], sums[r][3], 0xEE)};
    const __m512i ordered[4] = {_mm512_shuffle_i32x4(low[0], low[1], 0x88), _mm512_shuffle_i32x4(low[0], low[1], 0xDD),
                                _mm512_shuffle_i32x4(high[0], high[1], 0x88),
                                _mm512_shuffle_i32x4(high[0], high[1], 0xDD)};
    unroll<4>([&](int v) __attribute__((always_inline)) {
      const int64_t more = width - 16 * v;
      const auto lanes = static_cast<__mmask16>(more >= 16 ? 0xFFFF : more > 0 ? (1 << more) - 1 : 0);
      _mm512_mask_storeu_epi32(to + 16 * v, lanes, ordered[v]);
    });
  });
}

void run_in_place(const ByteRows& rows, const uint8_t* matrix, int64_t step, int64_t width) {
  int64_t first = 0;
  for (; first + 4 <= rows.count; first += 4) in_place<4>(rows, first, matrix, step, width);
  for (; first + 2 <= rows.count; first += 2) in_place<2>(rows, first, matrix, step, width);
  if (first < rows.count) in_place<1>(rows, first, matrix, step, width);
}

constexpr ByteProduct with_columns_in_place(ByteProduct product) {
  product.run_in_place = run_in_place;
  return product;
}

}  // namespace

const ByteProduct kByteProduct = with_columns_in_place(ByteTiles<Bytes>::product());

}  // namespace bittrue::avx512vnni

// Elementary functions by polynomials, and softmax in vectors of sixteen.
#include "arithmetic/narrow_float.h"
#include "isa/avx512vnni/intrinsics.h"

#include "isa/avx512vnni/cores.h"

namespace bittrue::avx512vnni {
#include "isa/real_functions.inc"

namespace softmax {
namespace {

using polynomials::first_lanes;
using Vector = __m512;

Vector load(const float* from, __mmask16 lanes, Vector otherwise) {
  return _mm512_mask_loadu_ps(otherwise, lanes, from);
}

float largest_lane(Vector most) { return _mm512_reduce_max_ps(most); }

float sum_of_lanes(Vector sums) {
  const __m256 half = _mm256_add_ps(_mm512_extractf32x8_ps(sums, 1), _mm512_castps512_ps256(sums));
  const __m256 twos = _mm256_hadd_ps(half, half), fours = _mm256_hadd_ps(twos, twos);
  return _mm_cvtss_f32(_mm_add_ss(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1)));
}

// Of numbers up to 0.
Vector power(Vector x) {
  return polynomials::exponential(_mm512_max_ps(_mm512_set1_ps(-103.9720840454f), x), polynomials::kExpSeries);
}

float largest_in_sixteens(const float* in, int64_t count) {
  if (count <= 16) {
    const __mmask16 lanes = first_lanes(count);
    return largest_lane(load(in, lanes, _mm512_set1_ps(in[0])));
  }
  Vector most[4];
  for (Vector& some : most) some = _mm512_loadu_ps(in);
  int64_t i = 16;
  for (; i + 64 <= count; i += 64) {
    for (int v = 0; v < 4; ++v) most[v] = _mm512_max_ps(most[v], _mm512_loadu_ps(in + i + 16 * v));
  }
  for (; i + 16 <= count; i += 16) most[0] = _mm512_max_ps(most[0], _mm512_loadu_ps(in + i));
  // Numbers may be looked at twice.
  most[1] = _mm512_max_ps(most[1], _mm512_loadu_ps(in + count - 16));
  return largest_lane(_mm512_max_ps(_mm512_max_ps(most[0], most[1]), _mm512_max_ps(most[2], most[3])));
}

float powers_in_sixteens(const float* in, float* out, int64_t count, float largest) {
  const Vector most = _mm512_set1_ps(largest);
  Vector sums = _mm512_setzero_ps();
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const Vector x = power(_mm512_loadu_ps(in + i) - most);
    sums += x;
    if (out != nullptr) _mm512_storeu_ps(out + i, x);
  }
  if (i < count) {
    const __mmask16 left = first_lanes(count - i);
    const Vector x = power(load(in + i, left, most) - most);
    sums = _mm512_mask_add_ps(sums, left, sums, x);
    if (out != nullptr) _mm512_mask_storeu_ps(out + i, left, x);
  }
  return sum_of_lanes(sums);
}

// A row of up to kVectors vectors, of which only the last one is not full.
template <int kVectors>
bool short_row(const float* in, float* out, int64_t count) {
  const __mmask16 left = first_lanes(count - 16 * (kVectors - 1));
  Vector x[kVectors], most = _mm512_set1_ps(in[0]);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    x[v] = v < kVectors - 1 ? _mm512_loadu_ps(in + 16 * v) : load(in + 16 * v, left, most);
    most = _mm512_max_ps(most, x[v]);
  }
  most = _mm512_set1_ps(largest_lane(most));
  Vector sums = _mm512_setzero_ps();
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    x[v] = power(x[v] - most);
    sums = _mm512_mask_add_ps(sums, v < kVectors - 1 ? __mmask16{0xFFFF} : left, sums, x[v]);
  }
  const float factor = 1.0f / sum_of_lanes(sums);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    _mm512_mask_storeu_ps(out + 16 * v, v < kVectors - 1 ? __mmask16{0xFFFF} : left, x[v] * factor);
  }
  return factor == factor;
}

float powers_in_lanes(const float* in, float* out, int64_t count, float largest, int lanes) {
  return lanes == 16 ? powers_in_sixteens(in, out, count, largest) : powers(in, out, count, largest, lanes);
}

bool row_in_lanes(const float* in, float* out, int64_t count, int lanes) {
  if (lanes != 16) return row(in, out, count, lanes);
  if (count <= 16) return short_row<1>(in, out, count);
  if (count <= 32) return short_row<2>(in, out, count);
  if (count <= 48) return short_row<3>(in, out, count);
  if (count <= 64) return short_row<4>(in, out, count);
  const float factor = 1.0f / powers_in_sixteens(in, out, count, largest_in_sixteens(in, count));
  polynomials::each(out, out, count, [factor](auto x) { return x * factor; });
  return factor == factor;
}

}  // namespace
}  // namespace softmax

namespace {

// A NaN keeps its payload, also a signalling one, which the instruction makes quiet and `signalling` counts in.
__m512 widen(__m256i halves, __mmask16& signalling) {
  const __m512i bits = _mm512_cvtepu16_epi32(halves), size = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFF));
  const __m512i moved = _mm512_or_si512(_mm512_slli_epi32(_mm512_and_si512(bits, _mm512_set1_epi32(0x8000)), 16),
                                        _mm512_add_epi32(_mm512_slli_epi32(size, 13), _mm512_set1_epi32(0x70000000)));
  const __mmask16 nan = _mm512_cmpgt_epi32_mask(size, _mm512_set1_epi32(0x7C00));
  signalling |= _mm512_mask_cmplt_epi32_mask(nan, size, _mm512_set1_epi32(0x7E00));
  return _mm512_mask_mov_ps(_mm512_cvtph_ps(halves), nan, _mm512_castsi512_ps(moved));
}

// A NaN becomes the quiet one of its sign, and `missing` counts it in.
__m256i narrow(__m512 x, __mmask16& missing) {
  constexpr int kToEven = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  const __m256i halves = _mm512_cvtps_ph(x, kToEven);
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  missing |= nan;
  const __m256i sign = _mm256_and_si256(halves, _mm256_set1_epi16(INT16_MIN));
  return _mm256_mask_mov_epi16(halves, nan, _mm256_or_si256(sign, _mm256_set1_epi16(0x7E00)));
}

}  // namespace

bool widen_halves(const uint16_t* in, float* out, int64_t count) {
  __mmask16 signalling = 0;
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    _mm512_storeu_ps(out + i, widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i)), signalling));
  }
  if (i != count) {
    const __mmask16 left = polynomials::first_lanes(count - i);
    _mm512_mask_storeu_ps(out + i, left, widen(_mm256_maskz_loadu_epi16(left, in + i), signalling));
  }
  return signalling == 0;
}

bool narrow_to_halves(const float* in, uint16_t* out, int64_t count) {
  __mmask16 missing = 0;
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), narrow(_mm512_loadu_ps(in + i), missing));
  }
  if (i != count) {
    const __mmask16 left = polynomials::first_lanes(count - i);
    _mm256_mask_storeu_epi16(out + i, left, narrow(_mm512_maskz_loadu_ps(left, in + i), missing));
  }
  return missing == 0;
}

const SoftmaxRows kSoftmaxRows = {softmax::largest_in_sixteens, softmax::powers_in_lanes, softmax::row_in_lanes};

}  // namespace bittrue::avx512vnni

// Four rows of bytes become one row of dwords, each with one byte of every row.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/memory.h"
#include "isa/avx512vnni/intrinsics.h"

namespace bittrue::avx512vnni {
namespace {

// Plain memory for constants: std::vector's code, compiled for this instruction set, could end up in portable parts.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }
  void allocate(int64_t count) {
    allocate_raw(count);
    std::memset(static_cast<void*>(data_), 0, static_cast<size_t>(count) * sizeof(T));
  }
  // Without a value: memory that is never written costs nothing.
  void allocate_raw(int64_t count) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(T) + 63;
    data_ = static_cast<T*>(lasting_memory(bytes));
  }
  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
};

// Source dword of every destination dword: lane l, dword k of a prepared row is dword 4k + l of the flat row, so that
// the unpacks below leave register k with the flat bytes 16k .. 16k+15.
alignas(64) constexpr int32_t kPrepare[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};

// The same for every second pixel of 128 bytes of row, as an index into two registers.
inline void prepare_phase(int64_t pixel_dwords, int64_t phase, int32_t* index) {
  for (int64_t i = 0; i < 16; ++i) {
    const int64_t flat = kPrepare[i];
    index[i] = static_cast<int32_t>((flat / pixel_dwords * 2 + phase) * pixel_dwords + flat % pixel_dwords);
  }
}

inline __mmask64 first_bytes(int64_t count) {
  if (count <= 0) return 0;
  return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1;
}

inline void interleave(__m512i a, __m512i b, __m512i c, __m512i d, uint32_t* to) {
  const __m512i ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
  const __m512i cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
  _mm512_storeu_si512(to, _mm512_unpacklo_epi16(ab_low, cd_low));
  _mm512_storeu_si512(to + 16, _mm512_unpackhi_epi16(ab_low, cd_low));
  _mm512_storeu_si512(to + 32, _mm512_unpacklo_epi16(ab_high, cd_high));
  _mm512_storeu_si512(to + 48, _mm512_unpackhi_epi16(ab_high, cd_high));
}

// `count` bytes of every column of four rows, columns `step` bytes apart; writes up to 63 dwords more than they make.
inline void interleave_columns(const uint8_t* const* rows, int64_t columns, int64_t step, int64_t count, uint32_t* to) {
  const __m512i prepare = _mm512_load_si512(kPrepare);
  const uint8_t *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
  const int64_t whole = count / 64 * 64;
  const __mmask64 mask = first_bytes(count - whole);
  for (; columns > 0; --columns) {
    for (int64_t i = 0; i < whole; i += 64) {
      interleave(_mm512_permutexvar_epi32(prepare, _mm512_loadu_si512(a + i)),
                 _mm512_permutexvar_epi32(prepare, _mm512_loadu_si512(b + i)),
                 _mm512_permutexvar_epi32(prepare, _mm512_loadu_si512(c + i)),
                 _mm512_permutexvar_epi32(prepare, _mm512_loadu_si512(d + i)), to + i);
    }
    if (mask != 0) {
      interleave(_mm512_permutexvar_epi32(prepare, _mm512_maskz_loadu_epi8(mask, a + whole)),
                 _mm512_permutexvar_epi32(prepare, _mm512_maskz_loadu_epi8(mask, b + whole)),
                 _mm512_permutexvar_epi32(prepare, _mm512_maskz_loadu_epi8(mask, c + whole)),
                 _mm512_permutexvar_epi32(prepare, _mm512_maskz_loadu_epi8(mask, d + whole)), to + whole);
    }
    a += step, b += step, c += step, d += step;
    to += count;
  }
}

// The same for every second pixel, with the indices of both phases: count bytes of the rows make about count / 2 dwords
// of each phase.
inline void interleave_phases(const uint8_t* const* rows, int64_t count, const int32_t (*index)[16],
                              uint32_t* const* to) {
  const __m512i prepare[2] = {_mm512_load_si512(index[0]), _mm512_load_si512(index[1])};
  const uint8_t *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
  uint32_t *even = to[0], *odd = to[1];
  const auto both = [&](const auto& load) {
    const __m512i a0 = load(a), a1 = load(a + 64), b0 = load(b), b1 = load(b + 64);
    const __m512i c0 = load(c), c1 = load(c + 64), d0 = load(d), d1 = load(d + 64);
    interleave(_mm512_permutex2var_epi32(a0, prepare[0], a1), _mm512_permutex2var_epi32(b0, prepare[0], b1),
               _mm512_permutex2var_epi32(c0, prepare[0], c1), _mm512_permutex2var_epi32(d0, prepare[0], d1), even);
    interleave(_mm512_permutex2var_epi32(a0, prepare[1], a1), _mm512_permutex2var_epi32(b0, prepare[1], b1),
               _mm512_permutex2var_epi32(c0, prepare[1], c1), _mm512_permutex2var_epi32(d0, prepare[1], d1), odd);
    a += 128, b += 128, c += 128, d += 128;
    even += 64, odd += 64;
  };
  for (; count >= 128; count -= 128) {
    both([](const uint8_t* from) { return _mm512_loadu_si512(from); });
  }
  if (count <= 0) return;
  const __mmask64 masks[2] = {first_bytes(count), first_bytes(count - 64)};
  int part = 0;
  both([&](const uint8_t* from) { return _mm512_maskz_loadu_epi8(masks[part++ % 2], from); });
}

// Writes up to 15 dwords more than count.
inline void fill(uint32_t* to, int64_t count, uint32_t value) {
  const __m512i values = _mm512_set1_epi32(static_cast<int32_t>(value));
  for (int64_t i = 0; i < count; i += 16) _mm512_storeu_si512(to + i, values);
}

}  // namespace
}  // namespace bittrue::avx512vnni

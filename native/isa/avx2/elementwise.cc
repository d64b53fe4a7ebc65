// Element-wise cores of AVX2: maxima, sums, tables, requantization of finished sums.
#if !defined(__AVXVNNI__)

#include <algorithm>

#include "isa/avx2/cores.h"
#include "isa/avx2/requantize.h"
#include "isa/avx2/vectors.h"
#include "isa/portable/cores.h"

namespace bittrue::BITTRUE_ISA {
namespace {

// out[i] = table[in[i]], 32 bytes at a time. vpshufb looks up 16 entries and gives 0 where bit 7 of the index is set.
// Step k subtracts 16 k from the index, with signed saturation so that what is negative stays so, and looks up the
// exclusive or of entries 16 k and 16 (k - 1): the steps that a lane takes part in leave the last one's entry.
class ShuffledTable {
 public:
  explicit ShuffledTable(const uint8_t* table) {
    for (int k = 0; k < 16; ++k) {
      __m128i entries = load16(table + 16 * k);
      if (k % 8 != 0) entries = _mm_xor_si128(entries, load16(table + 16 * (k - 1)));
      _mm_store_si128(differences_ + k, entries);
    }
  }

  __m256i at(__m256i index) const {
    const __m256i step = _mm256_set1_epi8(16);
    __m256i lower = index, upper = _mm256_xor_si256(index, _mm256_set1_epi8(-128));
    __m256i result = _mm256_setzero_si256();
    for (int k = 0; k < 8; ++k) {
      result = _mm256_xor_si256(result, _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(differences_[k]), lower));
      result = _mm256_xor_si256(result, _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(differences_[8 + k]), upper));
      lower = _mm256_subs_epi8(lower, step);
      upper = _mm256_subs_epi8(upper, step);
    }
    return result;
  }

 private:
  __m128i differences_[16];
};

constexpr int64_t kOneColumn[16] = {};

// The lowest bytes of 16 words within 16 bits.
inline __m128i lowest_bytes(__m256i first, __m256i second) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xd8);
  const __m256i bytes = _mm256_and_si256(words, _mm256_set1_epi16(255));
  return _mm_packus_epi16(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
}

template <Form form>
__attribute__((noinline)) void requantize_blocks(const Choice& choice, const Group& group, const int32_t* acc,
                                                 int64_t count, uint8_t* out, int64_t step, int64_t width) {
  const Store store = choice.store();
  const __m256i offset = _mm256_set1_epi32(static_cast<int32_t>(choice.offset()));
  const auto words = [&](const int32_t* from) __attribute__((always_inline)) {
    const __m256i first = _mm256_add_epi32(load32(from), offset), second = _mm256_add_epi32(load32(from + 8), offset);
    // 0-3, 8-11 and 4-7, 12-15: the order that pack() undoes.
    return requantize16<form>(_mm256_permute2x128_si256(first, second, 0x20),
                              _mm256_permute2x128_si256(first, second, 0x31), group, store);
  };
  int64_t i = 0;
  for (; i + 2 <= count && width == 16; i += 2, acc += 2 * step, out += 2 * step) {
    const __m256i bytes = pack(words(acc), words(acc + step), store);
    store16(out, _mm256_castsi256_si128(bytes));
    store16(out + step, _mm256_extracti128_si256(bytes, 1));
  }
  for (; i < count; ++i, acc += step, out += step) {
    alignas(32) int32_t rest[16] = {};
    std::memcpy(rest, acc, static_cast<size_t>(width) * sizeof(int32_t));
    const __m256i last = words(rest);
    store_part(out, _mm256_castsi256_si128(pack(last, last, store)), width);
  }
}

// The rule q31_two_step_up_away for 8 accumulators, with one multiplier for all.
class Rescale32 {
 public:
  explicit Rescale32(const rules::Multiplier& by)
      : multiplier_(_mm256_set1_epi32(static_cast<int32_t>(by.multiplier))),
        left_(_mm_cvtsi32_si128(by.exponent > 0 ? by.exponent : 0)),
        right_(_mm_cvtsi32_si128(by.exponent < 0 ? -by.exponent : 0)),
        rest_(_mm256_set1_epi32(by.exponent < 0 ? static_cast<int32_t>((uint32_t{1} << -by.exponent) - 1) : 0)) {}

  __m256i operator()(__m256i acc) const {
    const __m256i moved = _mm256_sll_epi32(acc, left_), half = _mm256_set1_epi64x(int64_t{1} << 30);
    const auto doubled = [&](__m256i some) {
      return _mm256_slli_epi64(_mm256_add_epi64(_mm256_mul_epi32(some, multiplier_), half), 1);
    };
    const __m256i even = doubled(moved), odd = doubled(_mm256_srli_epi64(moved, 32));
    const __m256i high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    // What the shift cuts off counts as one when it is more than one half, or just that of a number that is not negative.
    const __m256i most = _mm256_sub_epi32(_mm256_srli_epi32(rest_, 1), _mm256_srai_epi32(high, 31));
    const __m256i up = _mm256_cmpgt_epi32(_mm256_and_si256(high, rest_), most);
    return _mm256_sub_epi32(_mm256_sra_epi32(high, right_), up);
  }

 private:
  __m256i multiplier_;
  __m128i left_, right_;
  __m256i rest_;
};

}  // namespace

void gate_sums(const rules::Multiplier& by_first, const rules::Multiplier& by_second, const int32_t* first,
               const int32_t* second, int16_t* out, int64_t count) {
  const Rescale32 rescale_first(by_first), rescale_second(by_second);
  const __m256i low = _mm256_set1_epi32(INT16_MIN), high = _mm256_set1_epi32(INT16_MAX);
  const auto eight = [&](const int32_t* one, const int32_t* other) {
    const __m256i clamped = _mm256_min_epi32(_mm256_max_epi32(rescale_first(load32(one)), low), high);
    const __m256i sum = _mm256_add_epi32(clamped, rescale_second(load32(other)));
    return _mm_packs_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  };
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) store16(reinterpret_cast<uint8_t*>(out + i), eight(first + i, second + i));
  if (i == count) return;
  if (count > 8) {  // the last ones once more
    i = count - 8;
    store16(reinterpret_cast<uint8_t*>(out + i), eight(first + i, second + i));
    return;
  }
  const auto rest = static_cast<size_t>(count);
  alignas(32) int32_t one[8] = {}, other[8] = {};
  alignas(16) int16_t sums[8];
  std::memcpy(one, first, rest * sizeof *one);
  std::memcpy(other, second, rest * sizeof *other);
  store16(reinterpret_cast<uint8_t*>(sums), eight(one, other));
  std::memcpy(out, sums, rest * sizeof *sums);
}

void max_rows(const uint8_t* const* taps, int64_t taps_count, uint8_t* out, int64_t count, int low, int high) {
  const __m256i least = _mm256_set1_epi8(static_cast<char>(low)), greatest = _mm256_set1_epi8(static_cast<char>(high));
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    __m256i first = least, second = least;
    for (int64_t k = 0; k < taps_count; ++k) {
      first = _mm256_max_epu8(first, load32(taps[k] + i));
      second = _mm256_max_epu8(second, load32(taps[k] + i + 32));
    }
    store32(out + i, _mm256_min_epu8(first, greatest));
    store32(out + i + 32, _mm256_min_epu8(second, greatest));
  }
  const __m128i least16 = _mm256_castsi256_si128(least), greatest16 = _mm256_castsi256_si128(greatest);
  for (; i + 16 <= count; i += 16) {
    __m128i kept = least16;
    for (int64_t k = 0; k < taps_count; ++k) kept = _mm_max_epu8(kept, load16(taps[k] + i));
    store16(out + i, _mm_min_epu8(kept, greatest16));
  }
  if (i == count) return;
  if (count >= 16) {
    // The last 16 once more: unless out is a tap, whose bytes are then maxima already, which changes nothing either.
    i = count - 16;
    __m128i kept = least16;
    for (int64_t k = 0; k < taps_count; ++k) kept = _mm_max_epu8(kept, load16(taps[k] + i));
    store16(out + i, _mm_min_epu8(kept, greatest16));
    return;
  }
  uint8_t kept[16] = {}, part[16] = {};
  const auto size = static_cast<size_t>(count);
  __m128i most = least16;
  for (int64_t k = 0; k < taps_count; ++k) {
    std::memcpy(part, taps[k], size);
    most = _mm_max_epu8(most, load16(part));
  }
  store16(kept, _mm_min_epu8(most, greatest16));
  std::memcpy(out, kept, size);
}

void sum_rows(const uint8_t* const* taps, int64_t taps_count, int32_t* sums, int64_t count) {
  constexpr int64_t kTaps = 257;  // 257 * 255 < 2^16
  const __m256i zero = _mm256_setzero_si256();
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    __m256i lower = zero, upper = zero;
    for (int64_t begin = 0; begin < taps_count; begin += kTaps) {
      __m256i words = zero;
      const int64_t end = std::min(taps_count, begin + kTaps);
      for (int64_t k = begin; k < end; ++k) words = _mm256_add_epi16(words, _mm256_cvtepu8_epi16(load16(taps[k] + i)));
      lower = _mm256_add_epi32(lower, _mm256_cvtepu16_epi32(_mm256_castsi256_si128(words)));
      upper = _mm256_add_epi32(upper, _mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1)));
    }
    store32(sums + i, lower);
    store32(sums + i + 8, upper);
  }
  for (; i < count; ++i) {
    int32_t sum = 0;
    for (int64_t k = 0; k < taps_count; ++k) sum += taps[k][i];
    sums[i] = sum;
  }
}

void lookup(const uint8_t* table, const uint8_t* in, uint8_t* out, int64_t count) {
  int64_t i = 0;
  if (count >= 64) {
    const ShuffledTable shuffled(table);
    for (; i + 32 <= count; i += 32) store32(out + i, shuffled.at(load32(in + i)));
  }
  for (; i < count; ++i) out[i] = table[in[i]];
}

void layer_sums(const LayerSumSpec& spec, const int32_t* acc, const float* bias, const float* factors,
                const uint8_t* other, uint8_t* out, int64_t count) {
  const __m256 factor = _mm256_set1_ps(spec.factor), start = _mm256_set1_ps(spec.start);
  const __m256 low = _mm256_set1_ps(spec.low), high = _mm256_set1_ps(spec.high);
  const __m256i other_flip = _mm256_set1_epi32(spec.other_flip);
  const __m128i out_flip = _mm_set1_epi8(static_cast<char>(spec.out_flip));
  const auto stored = [&](__m256i sums, __m256 addends, __m256 scales, __m128i others) {
    const __m256 value = _mm256_mul_ps(_mm256_add_ps(_mm256_cvtepi32_ps(sums), addends), scales);
    const __m256 real = _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_cvtepu8_epi32(others), other_flip));
    const __m256 sum = _mm256_fmadd_ps(real, factor, _mm256_max_ps(value, start));
    return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(sum, low), high));
  };
  const auto sixteen = [&](const int32_t* sums, const float* addends, const float* scales, const uint8_t* others) {
    const __m128i wide = load16(others);
    const __m256i first = stored(load32(sums), _mm256_loadu_ps(addends), _mm256_loadu_ps(scales), wide);
    const __m256i second = stored(load32(sums + 8), _mm256_loadu_ps(addends + 8), _mm256_loadu_ps(scales + 8),
                                  _mm_unpackhi_epi64(wide, wide));
    return _mm_add_epi8(lowest_bytes(first, second), out_flip);
  };
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) store16(out + i, sixteen(acc + i, bias + i, factors + i, other + i));
  if (i == count) return;
  const auto rest = static_cast<size_t>(count - i);
  alignas(32) int32_t sums[16] = {};
  alignas(32) float addends[16] = {}, scales[16] = {};
  alignas(16) uint8_t others[16] = {};
  std::memcpy(sums, acc + i, rest * sizeof *sums);
  std::memcpy(addends, bias + i, rest * sizeof *addends);
  std::memcpy(scales, factors + i, rest * sizeof *scales);
  std::memcpy(others, other + i, rest);
  store_part(out + i, sixteen(sums, addends, scales, others), count - i);
}

void scale_bytes(const uint8_t* in, const float* factors, const float* summands, uint8_t* out, int64_t count) {
  const __m256 low = _mm256_set1_ps(-128), high = _mm256_set1_ps(127);
  const __m128i flip = _mm_set1_epi8(-128);
  const auto stored = [&](__m128i numbers, const float* scales, const float* addends) {
    const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(numbers)), _mm256_loadu_ps(scales));
    const __m256 sum = _mm256_add_ps(product, _mm256_loadu_ps(addends));
    return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(sum, low), high));
  };
  const auto sixteen = [&](const uint8_t* from, const float* scales, const float* addends) {
    const __m128i numbers = _mm_xor_si128(load16(from), flip);
    const __m256i first = stored(numbers, scales, addends);
    return _mm_xor_si128(lowest_bytes(first, stored(_mm_unpackhi_epi64(numbers, numbers), scales + 8, addends + 8)),
                         flip);
  };
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) store16(out + i, sixteen(in + i, factors + i, summands + i));
  if (i == count) return;
  const auto rest = static_cast<size_t>(count - i);
  alignas(32) float scales[16] = {}, addends[16] = {};
  alignas(16) uint8_t numbers[16] = {};
  std::memcpy(scales, factors + i, rest * sizeof *scales);
  std::memcpy(addends, summands + i, rest * sizeof *addends);
  std::memcpy(numbers, in + i, rest);
  store_part(out + i, sixteen(numbers, scales, addends), count - i);
}

void requantize_rows(const rules::Requantize& requantize, const int32_t* acc, int64_t rows, uint8_t* out,
                     int64_t columns) {
  const bool shared = requantize.multipliers.size() == 1;
  const int64_t all = rows * columns;
  if (all < 8) return portable::requantize_rows(requantize, acc, rows, out, columns);
  const Choice choice(requantize);
  if (choice.form == Form::scalar) return portable::requantize_rows(requantize, acc, rows, out, columns);
  Group group{};
  const auto run = [&](int64_t first, int64_t count, int64_t step, int64_t width) {
    const RoundingMode mode(choice.form);
    with_form(choice.form, [&](auto form) {
      if constexpr (form.value != Form::scalar) {
        requantize_blocks<form.value>(choice, group, acc + first, count, out + first, step, width);
      }
    });
  };
  if (shared) {
    choice.fill(requantize, kOneColumn, group);
    if (all >= 16) run(0, all / 16, 16, 16);
    if (all % 16 != 0) run(all / 16 * 16, 1, 16, all % 16);
    return;
  }
  for (int64_t first = 0; first < columns; first += 16) {
    int64_t own[16];
    for (int64_t i = 0; i < 16; ++i) own[i] = first + i < columns ? first + i : -1;
    choice.fill(requantize, own, group);
    run(first, rows, columns, std::min<int64_t>(16, columns - first));
  }
}

#include "isa/average_rows.inc"

}  // namespace bittrue::BITTRUE_ISA

#endif

// Element-wise cores: maxima, sums, tables, requantization of finished sums.
#include <algorithm>

#include "isa/neon_dotprod/cores.h"
#include "isa/neon_dotprod/requantize.h"
#include "isa/portable/cores.h"

namespace bittrue::neon_dotprod {
namespace {

constexpr int64_t kFirstColumn[16] = {};

}  // namespace

void max_rows(const uint8_t* const* taps, int64_t taps_count, uint8_t* out, int64_t count, int low, int high) {
  const uint8x16_t least = vdupq_n_u8(static_cast<uint8_t>(low)), greatest = vdupq_n_u8(static_cast<uint8_t>(high));
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    uint8x16_t kept = least;
    for (int64_t k = 0; k < taps_count; ++k) kept = vmaxq_u8(kept, vld1q_u8(taps[k] + i));
    vst1q_u8(out + i, vminq_u8(kept, greatest));
  }
  if (i == count) return;
  uint8_t part[16] = {};
  const auto size = static_cast<size_t>(count - i);
  uint8x16_t kept = least;
  for (int64_t k = 0; k < taps_count; ++k) {
    std::memcpy(part, taps[k] + i, size);
    kept = vmaxq_u8(kept, vld1q_u8(part));
  }
  store_part(out + i, vminq_u8(kept, greatest), count - i);
}

void sum_rows(const uint8_t* const* taps, int64_t taps_count, int32_t* sums, int64_t count) {
  constexpr int64_t kTaps = 257;  // 257 * 255 < 2^16
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint32x4_t lower = vdupq_n_u32(0), upper = vdupq_n_u32(0);
    for (int64_t begin = 0; begin < taps_count; begin += kTaps) {
      uint16x8_t words = vdupq_n_u16(0);
      const int64_t end = std::min(taps_count, begin + kTaps);
      for (int64_t k = begin; k < end; ++k) words = vaddw_u8(words, vld1_u8(taps[k] + i));
      lower = vaddw_u16(lower, vget_low_u16(words));
      upper = vaddw_high_u16(upper, words);
    }
    vst1q_s32(sums + i, vreinterpretq_s32_u32(lower));
    vst1q_s32(sums + i + 4, vreinterpretq_s32_u32(upper));
  }
  for (; i < count; ++i) {
    int32_t sum = 0;
    for (int64_t k = 0; k < taps_count; ++k) sum += taps[k][i];
    sums[i] = sum;
  }
}

// tbl gives 0 and tbx keeps what it has where the index is past the 64 entries.
void lookup(const uint8_t* table, const uint8_t* in, uint8_t* out, int64_t count) {
  const uint8x16x4_t part0 = vld1q_u8_x4(table), part1 = vld1q_u8_x4(table + 64);
  const uint8x16x4_t part2 = vld1q_u8_x4(table + 128), part3 = vld1q_u8_x4(table + 192);
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const uint8x16_t index = vld1q_u8(in + i), step = vdupq_n_u8(64);
    uint8x16_t result = vqtbl4q_u8(part0, index);
    uint8x16_t rest = vsubq_u8(index, step);
    result = vqtbx4q_u8(result, part1, rest);
    rest = vsubq_u8(rest, step);
    result = vqtbx4q_u8(result, part2, rest);
    rest = vsubq_u8(rest, step);
    vst1q_u8(out + i, vqtbx4q_u8(result, part3, rest));
  }
  for (; i < count; ++i) out[i] = table[in[i]];
}

// Columns with multipliers of their own come one by one; there is nowhere to keep their constants.
void requantize_row(const rules::Requantize& requantize, const int32_t* acc, uint8_t* out, int64_t count) {
  const bool shared = requantize.multipliers.size() == 1 && count >= 8;
  const Choice choice = shared ? Choice(requantize) : Choice();
  if (choice.form == Form::scalar) return portable::requantize_row(requantize, acc, out, count);
  Group group{};
  choice.fill(requantize, kFirstColumn, group);
  with_form(choice.form, [&](auto form) {
    if constexpr (form.value != Form::scalar) {
      for (int64_t i = 0; i < count; i += 16) {
        const int64_t size = std::min<int64_t>(16, count - i);
        int32_t some[16] = {};
        const int32_t* from = acc + i;
        if (size < 16)
          from = static_cast<int32_t*>(std::memcpy(some, from, static_cast<size_t>(size) * sizeof(int32_t)));
        const int32x4_t sums[4] = {vld1q_s32(from), vld1q_s32(from + 4), vld1q_s32(from + 8), vld1q_s32(from + 12)};
        store_part(out + i, requantize16<form.value>(sums, group, choice), size);
      }
    }
  });
}

}  // namespace bittrue::neon_dotprod

// Weights of a product on their way into the order of its panels: by blocks of 16 bytes of depth of 16 columns.
#pragma once

#include <algorithm>
#include <cstring>

#include "isa/avx2/panels.h"
#include "isa/avx2/vectors.h"

namespace bittrue::BITTRUE_ISA {

// A vector of 16 columns for each byte of depth.
struct WeightBlock {
  static constexpr int kDepth = 16;
  __m128i bytes[kDepth];
};

// 16 bytes, of which the first `count` are read; the others are zeros.
static inline __m128i load_part(const int8_t* from, int64_t count) {
  if (count >= 16) return load16(from);
  alignas(16) int8_t bytes[16] = {};
  if (count > 0) std::memcpy(bytes, from, static_cast<size_t>(count));
  return load16(bytes);
}

// `count` bytes of depth, at most 16, from `begin` on; zeros beyond them and beyond the last column.
static inline void load_block(const MatmulSpec& spec, int64_t panel, int64_t begin, int64_t count, WeightBlock& block) {
  const int64_t first = panel * PanelMatmul::kColumns, columns = spec.columns - first;
  if (spec.by_rows) {
    const int8_t* from = spec.weights + begin * spec.columns + first;
    for (int i = 0; i < WeightBlock::kDepth; ++i) {
      block.bytes[i] = i < count ? load_part(from + i * spec.columns, columns) : _mm_setzero_si128();
    }
    return;
  }
  const int64_t total = spec.segments * spec.depth;
  const int8_t* from = spec.weights + first * total + begin;
  __m128i lines[16];
  for (int n = 0; n < 16; ++n) lines[n] = n < columns ? load_part(from + n * total, count) : _mm_setzero_si128();
  // Halves are shuffled into one another four times: rows are columns then.
  const auto shuffle = [](const __m128i* of, __m128i* to) __attribute__((always_inline)) {
    unroll<8>([&](int i) __attribute__((always_inline)) {
      to[2 * i] = _mm_unpacklo_epi8(of[i], of[i + 8]);
      to[2 * i + 1] = _mm_unpackhi_epi8(of[i], of[i + 8]);
    });
  };
  shuffle(lines, block.bytes);
  shuffle(block.bytes, lines);
  shuffle(lines, block.bytes);
  shuffle(block.bytes, lines);
  std::copy_n(lines, WeightBlock::kDepth, block.bytes);
}

// function(panel, begin, count, block) for all blocks, in the order in which weights lie, until one is false; whether none is.
template <class Function>
static inline bool for_blocks(const MatmulSpec& spec, Function&& function) {
  const int64_t panels = PanelMatmul::panels(spec.columns), total = spec.segments * spec.depth;
  const int64_t blocks = (total + WeightBlock::kDepth - 1) / WeightBlock::kDepth;
  WeightBlock block;
  for (int64_t i = 0; i < panels * blocks; ++i) {
    const int64_t panel = spec.by_rows ? i % panels : i / blocks;
    const int64_t begin = (spec.by_rows ? i / panels : i % blocks) * WeightBlock::kDepth;
    const int count = static_cast<int>(std::min<int64_t>(WeightBlock::kDepth, total - begin));
    load_block(spec, panel, begin, count, block);
    if (!function(panel, begin, count, block)) return false;
  }
  return true;
}

// Four bytes of depth by columns, in the order of accumulators; `width` is 16, or 8 for a narrow panel.
static inline void store_fours(const __m128i& first, const __m128i& second, const __m128i& third, const __m128i& fourth,
                               int width, int8_t* to) {
  const __m128i lower = _mm_unpacklo_epi8(first, second), upper = _mm_unpackhi_epi8(first, second);
  const __m128i lower_rest = _mm_unpacklo_epi8(third, fourth), upper_rest = _mm_unpackhi_epi8(third, fourth);
  const bool wide = width == PanelMatmul::kColumns;
  store16(to, _mm_unpacklo_epi16(lower, lower_rest));
  store16(to + (wide ? 32 : 16), _mm_unpackhi_epi16(lower, lower_rest));
  if (!wide) return;
  store16(to + 16, _mm_unpacklo_epi16(upper, upper_rest));
  store16(to + 48, _mm_unpackhi_epi16(upper, upper_rest));
}

// The same of two bytes of depth.
static inline void store_twos(const __m128i& first, const __m128i& second, int width, int8_t* to) {
  const __m128i lower = _mm_unpacklo_epi8(first, second), upper = _mm_unpackhi_epi8(first, second);
  if (width != PanelMatmul::kColumns) {
    store16(to, lower);
    return;
  }
  store16(to, _mm_unpacklo_epi64(lower, upper));
  store16(to + 16, _mm_unpackhi_epi64(lower, upper));
}

}  // namespace bittrue::BITTRUE_ISA

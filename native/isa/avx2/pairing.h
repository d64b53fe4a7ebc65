// Steps of a product, of four bytes of depth each, two of which are added up as 16-bit words before these are widened.
#pragma once

#include "isa/avx2/vectors.h"

namespace bittrue::BITTRUE_ISA {

// `bytes` (a multiple of 32) loads of a step: what it may add to its words. Two steps fit together where no sum of their
// loads is more than `most`; one is at most that, but for the last value of a byte, which stands for all that are more.
template <int bytes, int most>
class Pairing {
 public:
  explicit Pairing(int64_t steps) : loads_(steps * bytes), order_(steps), paired_(steps) {}

  uint8_t* loads(int64_t step) { return loads_.data() + step * bytes; }

  // Writes the steps' numbers, pairs that fit together first, then others; the result is how many pairs there are.
  int64_t arrange(int64_t count, int32_t* steps) {
    sort(count);
    const int32_t* order = order_.data();
    uint8_t* paired = paired_.data();
    int64_t pairs = 0, singles = count, end = count;
    for (int64_t i = 0; i < count; ++i) {
      if (paired[i] != 0) continue;
      while (end > i + 1 && paired[end - 1] != 0) --end;
      __m256i room[bytes / 32];
      for (int k = 0; k < bytes / 32; ++k) {
        room[k] = _mm256_subs_epu8(_mm256_set1_epi8(static_cast<char>(most)), load32(loads(order[i]) + 32 * k));
      }
      int64_t partner = -1;
      int tries = 0;
      for (int64_t j = end - 1; j > i && partner < 0 && tries < kTries; --j) {
        if (paired[j] != 0) continue;
        ++tries;
        if (fit(loads(order[j]), room)) partner = j;
      }
      if (partner < 0) {
        steps[--singles] = order[i];
        continue;
      }
      paired[partner] = 1;
      steps[2 * pairs] = order[i];
      steps[2 * pairs + 1] = order[partner];
      ++pairs;
    }
    return pairs;
  }

 private:
  static constexpr int kTries = 64;  // partners that a step looks at

  static bool fit(const uint8_t* loads, const __m256i* room) {
    __m256i over = _mm256_subs_epu8(load32(loads), room[0]);
    for (int k = 1; k < bytes / 32; ++k)
      over = _mm256_or_si256(over, _mm256_subs_epu8(load32(loads + 32 * k), room[k]));
    return _mm256_testz_si256(over, over) != 0;
  }

  // Large ones first, by the greatest load of each.
  void sort(int64_t count) {
    int64_t ends[257] = {};
    const auto place = [&](int64_t step) {
      __m256i greatest = load32(loads(step));
      for (int i = 32; i < bytes; i += 32) greatest = _mm256_max_epu8(greatest, load32(loads(step) + i));
      __m128i half = _mm_max_epu8(_mm256_castsi256_si128(greatest), _mm256_extracti128_si256(greatest, 1));
      // The least of eight words is found by one instruction: that of 255 less what is greatest, of neighbours.
      half = _mm_xor_si128(_mm_max_epu8(half, _mm_srli_epi16(half, 8)), _mm_set1_epi8(-1));
      return _mm_extract_epi16(_mm_minpos_epu16(_mm_and_si128(half, _mm_set1_epi16(255))), 0);
    };
    for (int64_t s = 0; s < count; ++s) ++ends[place(s) + 1];
    for (int i = 0; i < 256; ++i) ends[i + 1] += ends[i];
    for (int64_t s = 0; s < count; ++s) {
      order_.data()[ends[place(s)]++] = static_cast<int32_t>(s);
      paired_.data()[s] = 0;
    }
  }

  AlignedArray<uint8_t> loads_;
  AlignedArray<int32_t> order_;
  AlignedArray<uint8_t> paired_;
};

}  // namespace bittrue::BITTRUE_ISA

#include "isa/avx2/paired_weights.h"

#include <algorithm>

#include "isa/avx2/pairing.h"
#include "isa/avx2/weight_blocks.h"

namespace bittrue::BITTRUE_ISA {
namespace {

constexpr int kMost = 32767 / 255;  // of two weights with one sign; those with two signs always fit
constexpr int kWindow = PairedWeights::kWindow;
constexpr int64_t kNear = 32;          // among how many rests one looks for another that it fits
constexpr int64_t kSlotsPerRest = 10;  // fewer of others are not worth it

// Of one byte of depth: the magnitudes of what is positive, and of what is negative.
__m256i magnitudes(__m128i weights) {
  const __m128i zero = _mm_setzero_si128();
  return _mm256_set_m128i(_mm_sub_epi8(zero, _mm_min_epi8(weights, zero)), _mm_max_epi8(weights, zero));
}

bool fit(__m256i first, __m256i second) {
  const __m256i over = _mm256_subs_epu8(_mm256_adds_epu8(first, second), _mm256_set1_epi8(static_cast<char>(kMost)));
  return _mm256_testz_si256(over, over) != 0;
}

// What is too much of two weights is taken off the second one.
__m128i take_excess(__m128i first, __m128i& second) {
  const auto bytes = [](__m256i words) {
    return _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  };
  const __m256i one = _mm256_cvtepi8_epi16(first), sum = _mm256_add_epi16(one, _mm256_cvtepi8_epi16(second));
  const __m256i kept = _mm256_min_epi16(_mm256_max_epi16(sum, _mm256_set1_epi16(-kMost)), _mm256_set1_epi16(kMost));
  second = bytes(_mm256_sub_epi16(kept, one));
  return bytes(_mm256_sub_epi16(sum, kept));
}

// Whom each of `count` bytes, an even number, is paired with, such that few pairs do not fit.
void match(const __m256i* window, int count, int* by_size, int* partner) {
  // Large weights choose first, and large ones. The place of each is how many are larger.
  alignas(32) int16_t sizes[kWindow];
  for (int i = 0; i < kWindow; ++i) {
    const __m256i fours = i < count ? _mm256_sad_epu8(window[i], _mm256_setzero_si256()) : _mm256_setzero_si256();
    const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
    const int size = _mm_cvtsi128_si32(two) + _mm_extract_epi16(two, 4);
    // All differ.
    sizes[i] = static_cast<int16_t>(i < count ? size / 2 * kWindow + i : -1);
  }
  for (int i = 0; i < count; ++i) {
    const __m256i larger = _mm256_cmpgt_epi16(load32(sizes), _mm256_set1_epi16(sizes[i]));
    by_size[__builtin_popcount(static_cast<unsigned>(_mm256_movemask_epi8(larger))) / 2] = i;
    partner[i] = -1;
  }
  const auto join = [&](int i, int j) {
    partner[i] = j;
    partner[j] = i;
  };
  int left[kWindow], lefts = 0;
  for (int at = 0; at < count; ++at) {
    const int i = by_size[at];
    for (int next = at + 1; next < count && partner[i] < 0; ++next) {
      const int j = by_size[next];
      if (partner[j] < 0 && fit(window[i], window[j])) join(i, j);
    }
    if (partner[i] < 0) left[lefts++] = i;
  }
  // Two that are left take the halves of a pair, where each fits one; else they are a pair that does not fit.
  for (int at = 0; at < lefts; at += 2) {
    const int i = left[at], j = left[at + 1];
    for (int a = 0; a < count && partner[i] < 0; ++a) {
      const int b = partner[a];
      if (b < 0 || !fit(window[i], window[a]) || !fit(window[j], window[b])) continue;
      join(i, a);
      join(j, b);
    }
    if (partner[i] < 0) join(i, j);
  }
}

// Packs one panel after the other, as long as there are few rests.
class Packing {
 public:
  Packing(const MatmulSpec& spec, int64_t panels)
      : spec_(spec), total_(spec.segments * spec.depth), most_rests_(panels * total_ / kSlotsPerRest) {}

  // False where it is not worth it.
  bool pack(int64_t panel, int width, PairedPanel& to) {
    width_ = width;
    found_ = slots_ = 0;
    to.order = AlignedArray<uint8_t>(total_ + kWindow);
    while (slots_ < total_) {
      const int64_t begin = slots_;
      const auto count = static_cast<int>(std::min<int64_t>(kWindow, spec_.depth - begin % spec_.depth));
      WeightBlock window;
      load_block(spec_, panel, begin, count, window);
      pack_window(window, count, to.order.data() + begin);
      if (rests_ + found_ > most_rests_ || total_ + found_ > PairedWeights::kMostSlots) return false;
    }
    if (!pair_rests()) return false;
    const int64_t count = slots_ - total_;
    rests_ += count;
    arrange(to);
    to.rests = AlignedArray<int32_t>(count);
    std::copy_n(places_.data(), count, to.rests.data());
    to.rest_count = count;
    return rests_ <= most_rests_;
  }

 private:
  void pack_window(WeightBlock& window, int count, uint8_t* order) {
    __m256i sides[kWindow];
    for (int i = 0; i < count; ++i) sides[i] = magnitudes(window.bytes[i]);
    int by_size[kWindow], partner[kWindow];
    match(sides, count, by_size, partner);
    __m128i bytes[kWindow];
    int slots = 0;
    for (int at = 0; at < count; ++at) {
      const int i = by_size[at], j = partner[i];
      if (j < 0) continue;
      partner[j] = -1;
      if (!fit(sides[i], sides[j])) {
        store16(excess(found_), take_excess(window.bytes[i], window.bytes[j]));
        origins_.data()[found_++] = static_cast<int32_t>(slots_ + slots + 1);
      }
      for (const int byte : {i, j}) {
        bytes[slots] = window.bytes[byte];
        order[slots++] = static_cast<uint8_t>(kWindow - count + byte);
      }
    }
    for (int k = 0; k < count; k += 4) store(bytes + k);
  }

  // Four more slots.
  void store(const __m128i* bytes) {
    store_fours(bytes[0], bytes[1], bytes[2], bytes[3], width_, weights_.data() + slots_ * width_);
    uint8_t* loads = pairing_.loads(slots_ / 4);
    store32(loads, _mm256_adds_epu8(magnitudes(bytes[0]), magnitudes(bytes[1])));
    store32(loads + 32, _mm256_adds_epu8(magnitudes(bytes[2]), magnitudes(bytes[3])));
    slots_ += 4;
  }

  // Steps in their order.
  void arrange(PairedPanel& to) {
    to.step_count = slots_ / 4;
    to.weights = AlignedArray<int8_t>(slots_ * width_);
    to.steps = AlignedArray<int32_t>(to.step_count);
    int32_t* steps = to.steps.data();
    to.step_pairs = pairing_.arrange(to.step_count, steps);
    int8_t* next = to.weights.data();
    for (int64_t s = 0; s < to.step_count;) {
      const int together = s < 2 * to.step_pairs ? 2 : 1;
      for (int v = 0; v < width_ / 8; ++v) {
        for (int i = 0; i < together; ++i, next += 32) {
          store32(next, load32(weights_.data() + steps[s + i] * 4 * width_ + 32 * v));
        }
      }
      s += together;
    }
    for (int64_t s = 0; s < to.step_count; ++s) steps[s] *= 4;
  }

  // Rests by pairs that fit; false where there are too many slots.
  bool pair_rests() {
    __m128i bytes[4] = {};
    int64_t count = 0;
    const auto append = [&](__m128i weights, int32_t slot) {
      bytes[count % 4] = weights;
      places_.data()[count++] = slot;
      if (count % 4 == 0) store(bytes);
      return total_ + count + 4 <= PairedWeights::kMostSlots;
    };
    for (int64_t i = 0; i < found_; ++i) {
      if (origins_.data()[i] < 0) continue;
      if (!append(load16(excess(i)), origins_.data()[i])) return false;
      int64_t j = i + 1;
      const int64_t end = std::min(found_, i + kNear);
      const __m256i sides = magnitudes(load16(excess(i)));
      while (j < end && (origins_.data()[j] < 0 || !fit(sides, magnitudes(load16(excess(j)))))) ++j;
      const bool found = j < end;
      if (!append(found ? load16(excess(j)) : _mm_setzero_si128(), found ? origins_.data()[j] : 0)) return false;
      if (found) origins_.data()[j] = -1;
    }
    while (count % 4 != 0) append(_mm_setzero_si128(), 0);
    return true;
  }

  int8_t* excess(int64_t i) { return excess_.data() + i * PanelMatmul::kColumns; }

  const MatmulSpec& spec_;
  int64_t total_, most_rests_;
  int64_t rests_ = 0;  // of the panels before
  int width_ = 0;
  int64_t slots_ = 0, found_ = 0;  // of this panel
  AlignedArray<int8_t> weights_{PairedWeights::kMostSlots * PanelMatmul::kColumns};
  Pairing<4 * PanelMatmul::kColumns, kMost> pairing_{PairedWeights::kMostSlots / 4};  // by pairs of slots and signs
  AlignedArray<int8_t> excess_{PairedWeights::kMostSlots * PanelMatmul::kColumns};
  AlignedArray<int32_t> origins_{PairedWeights::kMostSlots};  // of what is too much; -1 once it has a slot
  AlignedArray<int32_t> places_{PairedWeights::kMostSlots};   // of rests
};

}  // namespace

PairedWeights pair_weights(const MatmulSpec& spec) {
  const int64_t panels = PanelMatmul::panels(spec.columns);
  PairedWeights result;
  if (spec.pairs || spec.depth < kWindow || spec.segments * spec.depth > PairedWeights::kMostSlots) return result;
  Packing packing(spec, panels);
  result.panels.reset(new PairedPanel[static_cast<size_t>(panels)]);
  for (int64_t panel = 0; panel < panels; ++panel) {
    if (!packing.pack(panel, PanelMatmul::width_of(spec.columns, panel), result.panels[panel])) {
      result.panels.reset();
      break;
    }
  }
  return result;
}

bool pairs_fit(const MatmulSpec& spec) {
  return for_blocks(spec, [&](int64_t, int64_t, int count, const WeightBlock& block) {
    bool all = true;
    for (int i = 0; i < count; i += 2) all = all && fit(magnitudes(block.bytes[i]), magnitudes(block.bytes[i + 1]));
    return all;
  });
}

}  // namespace bittrue::BITTRUE_ISA

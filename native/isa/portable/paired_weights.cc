#include "isa/portable/paired_weights.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace bittrue::portable {
namespace {

constexpr int kMost = 32767 / 255;  // of two weights with one sign; those with two signs always fit
constexpr int kWindow = PairedWeights::kWindow, kColumns = PairedWeights::kColumns;
// Among how many rests one looks for another that it fits.
constexpr size_t kNear = 32;

// Of one byte of depth: 128 more than each, so that sums of four fit one word.
struct Weights {
  static constexpr uint16_t kZero = 128;
  uint16_t values[kColumns];
  Weights() { std::fill(values, values + kColumns, kZero); }
};

bool fit(const Weights& first, const Weights& second) {
  constexpr uint64_t kEach = 0x0001000100010001, kLimit = 512, kLeast = 2 * Weights::kZero - kMost;
  uint64_t below = 0, above = 0;
  for (int n = 0; n < kColumns; n += 4) {
    uint64_t a, b;
    std::memcpy(&a, first.values + n, sizeof a);
    std::memcpy(&b, second.values + n, sizeof b);
    below |= ~(a + b + (kLimit - kLeast) * kEach);
    above |= a + b + (kLimit - kLeast - 2 * kMost - 1) * kEach;
  }
  return ((below | above) & kLimit * kEach) == 0;
}

// What is too much of two weights is taken off the second one.
Weights take_excess(const Weights& first, Weights& second) {
  Weights taken;
  for (int n = 0; n < kColumns; ++n) {
    const int sum = first.values[n] + second.values[n] - 2 * Weights::kZero, kept = std::clamp(sum, -kMost, kMost);
    taken.values[n] = static_cast<uint16_t>(Weights::kZero + sum - kept);
    second.values[n] = static_cast<uint16_t>(2 * Weights::kZero + kept - first.values[n]);
  }
  return taken;
}

// Whom each of `count` bytes, an even number, is paired with, such that few pairs do not fit.
void match(const Weights* window, int count, int* partner) {
  // Large weights choose first, and large ones.
  int by_size[kWindow], sizes[kWindow];
  for (int i = 0; i < count; ++i) {
    int size = 0;
    for (const uint16_t value : window[i].values) size += std::abs(value - Weights::kZero);
    sizes[i] = size;
    int place = i;
    for (; place > 0 && sizes[by_size[place - 1]] < size; --place) by_size[place] = by_size[place - 1];
    by_size[place] = i;
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

struct Rest {
  Weights weights;
  int32_t slot = 0;
};

// Rests by pairs that fit.
void append_rests(const std::vector<Rest>& rests, std::vector<Weights>& slots, std::vector<int32_t>& taken) {
  std::vector<bool> done(rests.size(), false);
  const auto append = [&](const Rest& rest) {
    slots.push_back(rest.weights);
    taken.push_back(rest.slot);
  };
  for (size_t i = 0; i < rests.size(); ++i) {
    if (done[i]) continue;
    append(rests[i]);
    size_t j = i + 1;
    const size_t end = std::min(rests.size(), i + kNear);
    while (j < end && (done[j] || !fit(rests[i].weights, rests[j].weights))) ++j;
    append(j < end ? rests[j] : Rest{});
    if (j < end) done[j] = true;
  }
  while (taken.size() % 4 != 0) append({});
}

PairedPanel arrange(const MatmulSpec& spec, const int64_t* columns, size_t width) {
  const int64_t total = spec.segments * spec.depth;
  PairedPanel panel;
  std::vector<Weights> slots;
  std::vector<Rest> rests;
  slots.reserve(static_cast<size_t>(total + total / 8));
  panel.order.reserve(static_cast<size_t>(total));
  while (static_cast<int64_t>(slots.size()) < total) {
    const auto begin = static_cast<int64_t>(slots.size());
    const auto count = static_cast<int>(std::min<int64_t>(kWindow, spec.depth - begin % spec.depth));
    Weights window[kWindow];
    for (size_t n = 0; n < width; ++n) {
      if (columns[n] < 0) continue;
      const int8_t* from = spec.weights + columns[n] * total + begin;
      for (int i = 0; i < count; ++i) window[i].values[n] = static_cast<uint16_t>(Weights::kZero + from[i]);
    }
    int partner[kWindow];
    match(window, count, partner);
    for (int i = 0; i < count; ++i) {
      const int j = partner[i];
      if (j < i) continue;
      if (!fit(window[i], window[j])) {
        rests.push_back({take_excess(window[i], window[j]), static_cast<int32_t>(slots.size() + 1)});
      }
      for (const int byte : {i, j}) {
        slots.push_back(window[byte]);
        panel.order.push_back(static_cast<uint8_t>(kWindow - count + byte));
      }
    }
  }
  append_rests(rests, slots, panel.rests);
  panel.weights.resize(width * slots.size());
  for (size_t k = 0; k < slots.size(); ++k) {
    int8_t* to = panel.weights.data() + k / 4 * 4 * width + k % 4;
    for (size_t n = 0; n < width; ++n) to[4 * n] = static_cast<int8_t>(slots[k].values[n] - Weights::kZero);
  }
  return panel;
}

}  // namespace

PairedWeights::PairedWeights(const MatmulSpec& spec, const int64_t* columns, int64_t panels, bool narrow) {
  for (int64_t panel = 0; panel < panels; ++panel) {
    panels_.push_back(
        arrange(spec, columns + panel * kColumns, narrow && panel == panels - 1 ? kColumns / 2 : kColumns));
    const auto rests = static_cast<int64_t>(panels_.back().rests.size());
    rests_ += rests;
    most_rests_ = std::max(most_rests_, rests);
  }
}

PairedWeights::~PairedWeights() = default;

bool pairs_fit(const MatmulSpec& spec) {
  const int64_t count = spec.columns * spec.segments * spec.depth;
  int most = 0;
  for (int64_t i = 0; i < count; i += 2) most = std::max(most, std::abs(spec.weights[i] + spec.weights[i + 1]));
  return most <= kMost;
}

}  // namespace bittrue::portable

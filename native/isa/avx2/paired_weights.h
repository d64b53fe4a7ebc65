// Weights of a product in an order in which neighbours fit 16 bits.
#pragma once

#include <cstdint>
#include <memory>

#include "isa/cores.h"
#include "isa/tools.h"

namespace bittrue::BITTRUE_ISA {

// The weights of 16 columns in slots, of which 2i and 2i + 1 are a pair: with unsigned bytes, |a w[2i] + b w[2i + 1]| fits
// 16 bits for every a and b. First come slots for the whole depth, whose bytes change places within windows of 16 of their
// segment. The last window of a segment ends with it; it may begin inside of the one before, and has slots for what is left.
// Then come slots of rests: what weights are too large by where no order makes them fit.
struct PairedPanel {
  // Of steps of four slots, whose place among all slots `steps` has. First come those of which two fit 16 bits even together,
  // [pair of steps][vector][step][accumulator of the vector][4], then others, [step][accumulator][4].
  AlignedArray<int8_t> weights;
  AlignedArray<int32_t> steps;
  int64_t step_count = 0, step_pairs = 0;
  AlignedArray<uint8_t> order;  // [segments * depth]: which byte of its window a slot takes; a window may be read there
  AlignedArray<int32_t> rests;  // whose byte each slot of a rest takes: a slot before
  int64_t rest_count = 0;       // a multiple of four
};

struct PairedWeights {
  static constexpr int64_t kWindow = 16;
  static constexpr int64_t kMostSlots = 6144;  // of a panel
  std::unique_ptr<PairedPanel[]> panels;       // null where that is not worth it, and where pairs are to saturate
};

PairedWeights pair_weights(const MatmulSpec& spec);

// Whether neighbours fit as they are.
bool pairs_fit(const MatmulSpec& spec);

}  // namespace bittrue::BITTRUE_ISA

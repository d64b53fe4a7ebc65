// Weights of a product in an order in which neighbours fit 16 bits, out of line for files of an instruction set.
#pragma once

#include <cstdint>
#include <vector>

#include "isa/cores.h"

namespace bittrue::portable {

// The weights of 16 columns in slots, of which 2i and 2i + 1 are a pair: with unsigned bytes, |a w[2i] + b w[2i + 1]| fits
// 16 bits for every a and b. First come slots for the whole depth, whose bytes change places within windows of 16 of their
// segment. The last window of a segment ends with it; it may begin inside of the one before, and has slots for what is left.
// Then come slots of rests: what weights are too large by where no order makes them fit.
struct PairedPanel {
  std::vector<int8_t> weights;  // [slots / 4][width][4]
  std::vector<uint8_t> order;   // [segments * depth]: which byte of its window a slot takes
  std::vector<int32_t> rests;   // whose byte each slot of a rest takes: a slot before; a multiple of four
};

// Every panel of a product by columns whose segments have at least a window.
class PairedWeights {
 public:
  static constexpr int64_t kWindow = 16, kColumns = 16;
  // `columns`: [panels][kColumns], -1 for none. The last panel is kept half as wide where it is narrow.
  PairedWeights(const MatmulSpec& spec, const int64_t* columns, int64_t panels, bool narrow);
  ~PairedWeights();
  const PairedPanel& panel(int64_t index) const { return panels_.data()[index]; }
  int64_t rests() const { return rests_; }            // of all panels
  int64_t most_rests() const { return most_rests_; }  // of a panel

 private:
  std::vector<PairedPanel> panels_;
  int64_t rests_ = 0, most_rests_ = 0;
};

// Whether neighbours fit as they are.
bool pairs_fit(const MatmulSpec& spec);

}  // namespace bittrue::portable

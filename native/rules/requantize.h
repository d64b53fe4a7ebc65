// From an accumulator to the stored integer: the slots `rescale` and `store` of one step, as a plan prepared them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "rules/rescale.h"

namespace bittrue::rules {

enum class StoreRule : uint8_t { zero_point_then_clamp, clamp_then_zero_point };

// One layer's way from accumulators to stored integers.
struct Requantize {
  RescaleRule rescale = RescaleRule::q31_two_step_up_away;
  StoreRule store = StoreRule::zero_point_then_clamp;
  std::vector<Multiplier> multipliers;  // one for all columns, or one per column
  // Proven: |acc| <= bound for every accumulator, in exact arithmetic. When the register is narrower than that the
  // accumulator wraps, so |acc| may be anything that the register holds.
  int64_t bound = std::numeric_limits<int64_t>::max();
  bool wraps = true;
  // In the range of the plan's type; `flip` is added at the very end (128 for s8, which is kept as u8).
  int32_t zero_point = 0, low = 0, high = 0, flip = 0;

  const Multiplier& at(size_t column) const { return multipliers[multipliers.size() == 1 ? 0 : column]; }
};

inline int64_t zero_point_then_clamp(int64_t rescaled, int64_t zero_point, int64_t low, int64_t high) {
  return std::min(std::max(arithmetic::wrap_s32(rescaled + zero_point), low), high);
}

inline int64_t clamp_then_zero_point(int64_t rescaled, int64_t zero_point, int64_t low, int64_t high) {
  return std::min(std::max(rescaled, low - zero_point), high - zero_point) + zero_point;
}

inline int64_t wrap_s16_then_clamp(int64_t rescaled, int64_t zero_point, int64_t low, int64_t high) {
  const auto moved = static_cast<int16_t>(static_cast<uint16_t>(static_cast<uint64_t>(rescaled + zero_point)));
  return std::min(std::max<int64_t>(moved, low), high);
}

// The stored integer of one accumulator; scalar, for every rule.
inline int64_t requantize(const Requantize& r, int64_t acc, size_t column) {
  const int64_t rescaled = apply(r.rescale, acc, r.at(column));
  const int64_t stored = r.store == StoreRule::zero_point_then_clamp
                             ? zero_point_then_clamp(rescaled, r.zero_point, r.low, r.high)
                             : clamp_then_zero_point(rescaled, r.zero_point, r.low, r.high);
  return stored + r.flip;
}

}  // namespace bittrue::rules

// From an accumulator to the stored integer: the slots `rescale` and `store` of one step, as a plan prepared them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "rules/rescale.h"

namespace bittrue::rules {

// Every rule, and whether it stores real numbers.
#define BITTRUE_STORE_RULES(RULE)                \
  RULE(zero_point_then_clamp, false)             \
  RULE(clamp_then_zero_point, false)             \
  RULE(zero_point_half_up_then_clamp, true)      \
  RULE(zero_point_plus_half_up_then_clamp, true) \
  RULE(zero_point_away_then_clamp, true)         \
  RULE(zero_point_half_away_then_clamp, true)

enum class StoreRule : uint8_t {
#define BITTRUE_RULE(name, real) name,
  BITTRUE_STORE_RULES(BITTRUE_RULE)
#undef BITTRUE_RULE
};

constexpr bool is_real(StoreRule rule) {
#define BITTRUE_RULE(name, real) \
  if (rule == StoreRule::name) return real;
  BITTRUE_STORE_RULES(BITTRUE_RULE)
#undef BITTRUE_RULE
  return false;
}

// The rule of a name; false where there is no twin.
bool find_rule(const std::string& name, RescaleRule& found);
bool find_rule(const std::string& name, StoreRule& found);

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
  return std::min(std::max(arithmetic::wrap_s32(arithmetic::wrapping_sum(rescaled, zero_point)), low), high);
}

inline int64_t clamp_then_zero_point(int64_t rescaled, int64_t zero_point, int64_t low, int64_t high) {
  return std::min(std::max(rescaled, low - zero_point), high - zero_point) + zero_point;
}

inline int64_t wrap_s16_then_clamp(int64_t rescaled, int64_t zero_point, int64_t low, int64_t high) {
  const auto moved = static_cast<int16_t>(static_cast<uint16_t>(static_cast<uint64_t>(rescaled + zero_point)));
  return std::min(std::max<int64_t>(moved, low), high);
}

// Both sums in the type of `rescaled`; what 32 bits do not hold becomes -2^31.
template <class Real>
int64_t store_real(StoreRule rule, Real rescaled, int64_t zero_point, int64_t low, int64_t high) {
  const bool apart = rule == StoreRule::zero_point_half_up_then_clamp;
  const bool up = apart || rule == StoreRule::zero_point_plus_half_up_then_clamp;
  const Real half = static_cast<Real>(0.5), end = static_cast<Real>(4294967296.0);
  const Real moved = rescaled + (static_cast<Real>(zero_point) + (up && !apart ? half : 0));
  const bool cut = rule == StoreRule::zero_point_half_away_then_clamp;
  const Real sum = apart ? moved + half : cut ? moved + std::copysign(half, moved) : moved;
  if (!(sum > -end && sum < end)) return std::min(std::max(int64_t{INT32_MIN}, low), high);
  // The fraction is dropped, and looked at unless that was all: floor, or ties away from zero.
  auto whole = static_cast<int64_t>(sum);
  const Real fraction = sum - static_cast<Real>(whole);
  if (!cut) whole += up ? -int64_t{fraction < 0} : int64_t{fraction >= half} - int64_t{fraction <= -half};
  if (whole < INT32_MIN || whole > INT32_MAX) whole = INT32_MIN;
  return std::min(std::max(whole, low), high);
}

inline int64_t requantize_real(const Requantize& r, int64_t acc, size_t column) {
  const double rescaled = kRescale[static_cast<int>(r.rescale)].real(acc, r.at(column));
  return r.rescale == RescaleRule::binary32_multiply
             ? store_real(r.store, static_cast<float>(rescaled), r.zero_point, r.low, r.high)
             : store_real(r.store, rescaled, r.zero_point, r.low, r.high);
}

// The stored integer of one accumulator; scalar, for every rule.
inline int64_t requantize(const Requantize& r, int64_t acc, size_t column) {
  if (is_real(r.rescale)) return requantize_real(r, acc, column) + r.flip;
  const int64_t rescaled = apply(r.rescale, acc, r.at(column));
  const int64_t stored = r.store == StoreRule::zero_point_then_clamp
                             ? zero_point_then_clamp(rescaled, r.zero_point, r.low, r.high)
                             : clamp_then_zero_point(rescaled, r.zero_point, r.low, r.high);
  return stored + r.flip;
}

// Whether a rule's twin is defined for these numbers, whatever the accumulators: plans never hold others.
bool takes(RescaleRule rule, const Multiplier& m);

// The same function of all accumulators within the bound, by a rule that vector cores know, where there is one.
void prefer_vector_form(Requantize& r);

}  // namespace bittrue::rules

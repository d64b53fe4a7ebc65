// Twins of src/bittrue/rules/mean.py: which rescale rule a mean rule is built on, and the rules for plain numbers.
#pragma once

#include <cstdint>

namespace bittrue::rules {

struct MeanRow {
  const char* name;
  const char* rescale;  // applied to the sum, the count being part of the multiplier
};

inline constexpr MeanRow kMean[] = {{"q31_count_folded_two_step_up_away", "q31_two_step_up_away"},
                                    {"q31_count_folded_one_step_up", "q31_one_step_up"}};

inline int64_t integer_trunc(int64_t total, int64_t count) { return total / count; }

}  // namespace bittrue::rules

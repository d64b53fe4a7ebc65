// What the slot `multiply_add` says; for factories of kernels.
#pragma once

#include "core/step.h"

namespace bittrue {

// A product and the sum that it enters have a rounding each: no kernel has fused ones.
inline void require_rounded_twice(const Step& step) {
  require(step.rule("multiply_add") == "rounded_twice", "no native rule for this slot");
}

}  // namespace bittrue

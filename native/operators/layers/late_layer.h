// Layers whose multipliers every run makes.
#pragma once

#include "core/kernel.h"

namespace bittrue {

[[gnu::cold]] bool needs_late_layer(const Step& step);
// `factory` makes the kernel of the layer's sums.
[[gnu::cold]] std::unique_ptr<Kernel> make_late_layer(const Step& step, const CoreSet& cores, Factory factory);

}  // namespace bittrue

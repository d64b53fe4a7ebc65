// What resizing shares.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

// resize_linear, slot `weighted`: in resize_by_factors.cc.
std::unique_ptr<Kernel> make_weighted_resize(const Step& step, const CoreSet& cores);

}  // namespace bittrue

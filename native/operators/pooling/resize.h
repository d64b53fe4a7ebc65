// What resizing shares.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

// resize_linear, slot `weighted`: in resize_by_factors.cc.
std::unique_ptr<Kernel> make_weighted_resize(const Step& step, const CoreSet& cores);

// Bytes, whose weights are multiples of 1 / `whole`, or binary32 numbers where that is 0; ties of the values away from zero,
// or up. Null where a sum need not be exact: in resize_exact.cc.
std::unique_ptr<Kernel> make_exact_resize(const Step& step, int whole, bool away);

}  // namespace bittrue

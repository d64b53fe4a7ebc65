// Kernels that read a table which the plan holds.
#pragma once

#include "operators/core/map.h"

namespace bittrue {

// The array `table` of the slot's rule: one entry per 8-bit value, or 513 entries to interpolate for 16 bits.
// A table of values that are kept in binary32 or 8 bits.
std::unique_ptr<Kernel> make_level_table(const Step& step, const CoreSet& cores);

// The same, or quantized values that real numbers hold: in level_functions.cc.
std::unique_ptr<Kernel> make_quantized_levels(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_rectified_levels(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_leaky_levels(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_logistic_levels(const Step& step, const CoreSet& cores);

std::unique_ptr<Kernel> make_table(const Step& step, const CoreSet& cores);

// 256 entries, one per value of the input's type.
std::unique_ptr<Kernel> make_direct_table(const Step& step, const CoreSet& cores, const Array& entries);

}  // namespace bittrue

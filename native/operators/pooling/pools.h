// Kernels of pools, each in the file of its arithmetic; pools.cc chooses.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

// Channels last: 8-bit and 16-bit integers and binary32 numbers.
std::unique_ptr<Kernel> make_max_of_pixels(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_average_of_pixels(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_scaled_average(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_affine_average(const Step& step);
std::unique_ptr<Kernel> make_average_of_levels(const Step& step);

// Channels first: largest elements of 8-bit integers and binary32 numbers, averages and lengths of the latter.
std::unique_ptr<Kernel> make_max_of_planes(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_average_of_planes(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_length_of_planes(const Step& step);
// Largest elements, of binary64 numbers as well, and where they are.
std::unique_ptr<Kernel> make_placed_maxima(const Step& step);

// Windows whose rows and columns the plan lists; integers of up to 32 bits, in either layout, along up to three axes.
std::unique_ptr<Kernel> make_max_over_grid(const Step& step);
std::unique_ptr<Kernel> make_average_of_any(const Step& step);
std::unique_ptr<Kernel> make_max_of_any(const Step& step);

}  // namespace bittrue

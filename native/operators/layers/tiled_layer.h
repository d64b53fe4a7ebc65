// Convolutions, transposed ones and fully-connected layers on binary32 numbers as products of matrices in tiles.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

std::unique_ptr<Kernel> make_tiled_convolution(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_tiled_fully_connected(const Step& step, const CoreSet& cores);
std::unique_ptr<Kernel> make_tiled_transposed(const Step& step, const CoreSet& cores);

}  // namespace bittrue

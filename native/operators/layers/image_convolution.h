// conv with filters [O, h, w, C / groups], whose images have their channels last.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

std::unique_ptr<Kernel> make_image_convolution(const Step& step, const CoreSet& cores);

}  // namespace bittrue

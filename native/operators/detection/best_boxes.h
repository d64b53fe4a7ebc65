// The form of non_max_suppression whose rows name image, class and box.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

std::unique_ptr<Kernel> make_best_boxes(const Step& step);

}  // namespace bittrue

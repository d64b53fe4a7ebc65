// Rows of a table, picked by position, whose narrow integers become real numbers.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

std::unique_ptr<Kernel> make_embedding_lookup(const Step& step);

}  // namespace bittrue

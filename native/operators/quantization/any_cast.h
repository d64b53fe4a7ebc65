// The kernel of casts between types that have no loop of their own.
#pragma once

#include <memory>

#include "core/kernel.h"

namespace bittrue {

[[gnu::cold]] std::unique_ptr<Kernel> make_any_cast(const Step& step);

}  // namespace bittrue

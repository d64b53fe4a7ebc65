// The native operators by stem.
#pragma once

#include <string>

#include "core/kernel.h"

namespace bittrue {

// Null when no native operator has this stem.
Factory find_factory(const std::string& stem);

// Stems of all native operators.
std::vector<std::string> native_operators();

}  // namespace bittrue

// The native operators by stem.
#pragma once

#include <string>
#include <vector>

#include "core/kernel.h"

namespace bittrue {

// Null when no native operator has this stem.
Factory find_factory(const std::string& stem);

// Stems of all native operators.
std::vector<std::string> native_operators();

// Makes a factory known before main begins; an operator's file says so with BITTRUE_OPERATOR(stem, factory).
struct Registration {
  Registration(const char* stem, Factory factory);
};

#define BITTRUE_OPERATOR(stem, factory) static const Registration registered_##stem(#stem, factory);

}  // namespace bittrue

// 3 x 3 windows by fewer multiplications.
#pragma once

#include <memory>

#include "isa/cores.h"

namespace bittrue::avx512vnni {

// Null where MatmulSpec::window_line is 0, or where this is no faster or not exact.
std::unique_ptr<Matmul> make_winograd(const MatmulSpec& spec);

}  // namespace bittrue::avx512vnni

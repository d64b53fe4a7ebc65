// The aligned operands of an addition, out of line for files of an instruction set (see scalar_requantize.h).
#pragma once

#include <cstdint>

namespace bittrue {
struct AddSpec;
}

namespace bittrue::portable {

// What each of the 256 stored values of either operand adds to the sum; the second one's is negated when subtracting.
struct AlignedOperands {
  int64_t first[256], second[256];
};

void align_operands(const AddSpec& spec, AlignedOperands& aligned);

}  // namespace bittrue::portable

// What an addition reads its operands as, out of line for files of an instruction set: an inline function compiled
// there would be emitted with that set's instructions, and the linker might keep that copy for the whole program.
#pragma once

#include <cstdint>

namespace bittrue {
struct AddSpec;
}

namespace bittrue::portable {

// first[q] = A(q) and second[q] = sign * B(q) for every stored byte q.
void aligned_values(const AddSpec& spec, int64_t* first, int64_t* second);

}  // namespace bittrue::portable

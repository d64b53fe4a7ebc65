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

// table[256 * a + b] = the stored sum of bytes a and b; sums are taken modulo 2^32 as signed numbers.
void add_table(const AddSpec& spec, uint8_t* table);

}  // namespace bittrue::portable

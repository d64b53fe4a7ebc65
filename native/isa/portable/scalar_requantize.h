// rules::requantize out of line, for files of an instruction set: an inline function compiled there would be emitted
// with that set's instructions, and the linker might then keep that copy for the whole program.
#pragma once

#include <cstdint>

#include "rules/rescale.h"

namespace bittrue {
struct MatmulSpec;
namespace rules {
struct Requantize;
}
}  // namespace bittrue

namespace bittrue::portable {

uint8_t requantize_one(const rules::Requantize& requantize, int32_t acc, int64_t column);

// What accumulators are multiplied by, as a real number.
double real_multiplier(rules::RescaleRule rule, const rules::Multiplier& m);

// That of a product; where sums are its result, one multiplier of 0.
const rules::Requantize& requantize_of(const MatmulSpec& spec);

// A copy of `requantize` for those who keep it; to be given back to `release`.
const rules::Requantize* copy(const rules::Requantize& requantize);
void release(const rules::Requantize* requantize);

}  // namespace bittrue::portable

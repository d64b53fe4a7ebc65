// What the files of this folder offer to its table. What is missing here is taken from the portable set.
//
// Nothing here calls inline functions of other folders that compute something: compiled with this folder's flags they
// could replace the portable copy at link time.
#pragma once

#include <memory>

#include "isa/cores.h"

namespace bittrue::neon_dotprod {

std::unique_ptr<Matmul> make_matmul(const MatmulSpec& spec);
std::unique_ptr<Depthwise> make_depthwise(const DepthwiseSpec& spec);
void max_rows(const uint8_t* const* taps, int64_t taps_count, uint8_t* out, int64_t count, int low, int high);
void sum_rows(const uint8_t* const* taps, int64_t taps_count, int32_t* sums, int64_t count);
void lookup(const uint8_t* table, const uint8_t* in, uint8_t* out, int64_t count);
void requantize_row(const rules::Requantize& requantize, const int32_t* acc, uint8_t* out, int64_t count);

}  // namespace bittrue::neon_dotprod

// What the files of this folder offer to its table, and to other sets that leave a rare case to it.
#pragma once

#include <memory>

#include "isa/cores.h"

namespace bittrue::portable {

std::unique_ptr<Matmul> make_matmul(const MatmulSpec& spec);
std::unique_ptr<Depthwise> make_depthwise(const DepthwiseSpec& spec);
std::unique_ptr<Elementwise> make_add(const AddSpec& spec);
std::unique_ptr<Elementwise> make_mul(const MulSpec& spec);
void max_rows(const uint8_t* const* taps, int64_t taps_count, uint8_t* out, int64_t count, int low, int high);
void sum_rows(const uint8_t* const* taps, int64_t taps_count, int32_t* sums, int64_t count);
void lookup(const uint8_t* table, const uint8_t* in, uint8_t* out, int64_t count);
void requantize_row(const rules::Requantize& requantize, const int32_t* acc, uint8_t* out, int64_t count);
int64_t peak_multiply_adds(int64_t rounds);
void row_terms(const uint8_t* const* rows, int64_t capacity, int64_t segments, int64_t bytes, int64_t count,
               int32_t factor, int32_t* terms);

}  // namespace bittrue::portable

// What the files of this folder offer to its table. BITTRUE_ISA is the namespace: the folder is built as `avx2` and,
// where a core profits from the dot-product instruction, once more as `avxvnni`.
//
// Nothing here calls inline functions of other folders that compute something: compiled with this folder's flags they
// could replace the portable copy at link time.
#pragma once

#include <memory>

#include "isa/cores.h"

namespace bittrue::BITTRUE_ISA {

std::unique_ptr<Matmul> make_matmul(const MatmulSpec& spec);
std::unique_ptr<Depthwise> make_depthwise(const DepthwiseSpec& spec);
std::unique_ptr<Elementwise> make_add(const AddSpec& spec);
void max_rows(const uint8_t* const* taps, int64_t taps_count, uint8_t* out, int64_t count, int low, int high);
void sum_rows(const uint8_t* const* taps, int64_t taps_count, int32_t* sums, int64_t count);
void lookup(const uint8_t* table, const uint8_t* in, uint8_t* out, int64_t count);
void requantize_row(const rules::Requantize& requantize, const int32_t* acc, uint8_t* out, int64_t count);
int64_t peak_multiply_adds(int64_t rounds);

}  // namespace bittrue::BITTRUE_ISA

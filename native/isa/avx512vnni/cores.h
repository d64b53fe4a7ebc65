// What the files of this folder offer to its table.
#pragma once

#include <memory>

#include "isa/cores.h"

namespace bittrue::avx512vnni {

std::unique_ptr<Matmul> make_matmul(const MatmulSpec& spec);
std::unique_ptr<Depthwise> make_depthwise(const DepthwiseSpec& spec);
void requantize_row(const rules::Requantize& requantize, const int32_t* acc, uint8_t* out, int64_t count);
int64_t peak_multiply_adds(int64_t rounds);

}  // namespace bittrue::avx512vnni

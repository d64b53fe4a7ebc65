// Depthwise convolution whose pixels step by two columns, without storing interleaved columns.
#pragma once

#include <memory>

#include "isa/cores.h"

namespace bittrue::avx512vnni {

// Of the first `channels` channels, a multiple of 64; null where only the general way of depthwise.cc will do.
std::unique_ptr<Depthwise> make_strided_depthwise(const DepthwiseSpec& spec, int64_t channels);

}  // namespace bittrue::avx512vnni

// Depthwise convolution with three taps in a row, without storing interleaved columns.
#pragma once

#include <memory>

#include "isa/cores.h"

namespace bittrue::avx512vnni {

// How many of the first channels it does better than depthwise.cc.
int64_t channels_by_columns(const DepthwiseSpec& spec);

// Of the first `channels` channels, as many as that; null where their rescaling has no fast form.
std::unique_ptr<Depthwise> make_columns_depthwise(const DepthwiseSpec& spec, int64_t channels);

}  // namespace bittrue::avx512vnni

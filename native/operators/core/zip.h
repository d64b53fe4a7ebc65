// Functions of two elements, with broadcasting.
#pragma once

#include <memory>

#include "core/core_set.h"
#include "core/kernel.h"
#include "operators/core/blocks.h"

namespace bittrue {

// Function: Out operator()(In, In) const, on stored elements.
template <class In, class Out, class Function>
std::unique_ptr<Kernel> make_zip(const Step& step, const Function& function) {
  require(step.input(0).type == step.input(1).type, "no native kernel for these types");
  const auto block = [function](const uint8_t* const* in, uint8_t* out, int64_t count) {
    const auto* first = reinterpret_cast<const In*>(in[0]);
    const auto* second = reinterpret_cast<const In*>(in[1]);
    auto* target = reinterpret_cast<Out*>(out);
    const OwnFunction<Function> own = function;
    for (int64_t i = 0; i < count; ++i) target[i] = own(first[i], second[i]);
  };
  return make_blocks(step, {sizeof(In), sizeof(In)}, sizeof(Out), BlockFunction(block));
}

// Function: Out operator()(In, In, bool* defined) const; clearing `defined` leaves the whole step to the reference.
template <class In, class Out, class Function>
std::unique_ptr<Kernel> make_checked_zip(const Step& step, const Function& function) {
  require(step.input(0).type == step.input(1).type, "no native kernel for these types");
  const auto block = [function](const uint8_t* const* in, uint8_t* out, int64_t count) {
    const auto* first = reinterpret_cast<const In*>(in[0]);
    const auto* second = reinterpret_cast<const In*>(in[1]);
    auto* target = reinterpret_cast<Out*>(out);
    const OwnFunction<Function> own = function;
    bool all = true;
    for (int64_t i = 0; i < count; ++i) target[i] = own(first[i], second[i], &all);
    return all;
  };
  return make_checked_blocks(step, {sizeof(In), sizeof(In)}, sizeof(Out), CheckedBlockFunction(block));
}

// Numbers without scales, or with `low` and `high` of the step: what the core makes of two of one type, then the fused clamp;
// results are truth values where the operation compares. NaN of binary32, which is rare, is looked for block by block and
// made anew; that of binary64 is the reference's. With `exchanged`, the second operand comes first.
[[gnu::cold]] std::unique_ptr<Kernel> make_pair_loop(const Step& step, const CoreSet& cores,
                                                     PairLoop::Operation operation, bool exchanged = false);

}  // namespace bittrue

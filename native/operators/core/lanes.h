// Element-wise kernels in which the place of an element decides between two functions: whole vectors of a run of
// neighbours have one, what is left at its end has the other (src/bittrue/rules/lanes.py).
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "core/kernel.h"
#include "operators/core/blocks.h"

namespace bittrue {

// The first `body` elements of a dense tensor by one function, the others by the other: Out operator()(In) const.
template <class In, class Out, class Body, class Tail>
class LaneMap final : public Kernel {
 public:
  LaneMap(const Step& step, Body body, Tail tail) : body_(std::move(body)), tail_(std::move(tail)) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.elements == out.elements && in.dense() && out.dense(), "both sides must be dense");
    require(type_bytes(in.type) == sizeof(In) && type_bytes(out.type) == sizeof(Out),
            "no native kernel for these types");
    elements_ = out.elements;
    split_ = step.integer("body", 0, elements_);
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const In*>(run.inputs[0]);
    auto* out = reinterpret_cast<Out*>(run.outputs[0]);
    const int64_t blocks = (split_ + kBlock - 1) / kBlock;
    const auto block = [&](int64_t index, int) {
      const int64_t last = std::min(split_, (index + 1) * kBlock);
      for (int64_t i = index * kBlock; i < last; ++i) out[i] = body_(in[i]);
    };
    if (blocks < 2) {
      if (blocks == 1) block(0, 0);
    } else {
      run.pool.parallel(blocks, block);
    }
    for (int64_t i = split_; i < elements_; ++i) out[i] = tail_(in[i]);
  }
  std::string note() const override { return "vectors, then scalars"; }

 private:
  static constexpr int64_t kBlock = 16384;
  Body body_;
  Tail tail_;
  int64_t elements_ = 0, split_ = 0;
};

template <class In, class Out, class Body, class Tail>
std::unique_ptr<Kernel> make_lane_map(const Step& step, Body body, Tail tail) {
  return std::make_unique<LaneMap<In, Out, Body, Tail>>(step, std::move(body), std::move(tail));
}

// Two inputs that broadcast to bytes; element i of the output has the body's function where i mod run < body:
// void operator()(first, second, out, count) const, of neighbours. The tail's is one of two elements.
template <class Body, class Tail>
class LaneZip final : public Kernel {
 public:
  LaneZip(const Step& step, Body body, Tail tail)
      : blocks_({&step.input(0), &step.input(1)}, step.output()), body_(std::move(body)), tail_(std::move(tail)) {
    require(is_8bit(step.input(0).type) && is_8bit(step.input(1).type) && is_8bit(step.output().type) &&
                step.output().dense(),
            "no native kernel for these types");
    run_ = step.integer("run", 1, std::max<int64_t>(1, step.output().elements));
    inside_ = step.integer("body", 0, run_);
  }

  void run(const Run& run) const override {
    blocks_.run(run, [&](const uint8_t* const* in, uint8_t* out, int64_t count) {
      int64_t place = (out - run.outputs[0]) % run_;
      for (int64_t i = 0; i < count; place = 0) {
        // The rest of this run, or of the block.
        const int64_t last = std::min(count, i + run_ - place);
        const int64_t vectors = std::min(last, i + std::max<int64_t>(0, inside_ - place));
        if (i < vectors) body_(in[0] + i, in[1] + i, out + i, vectors - i);
        for (i = std::max(i, vectors); i < last; ++i) out[i] = tail_(in[0][i], in[1][i]);
      }
    });
  }
  int64_t scratch_bytes(int threads) const override { return blocks_.scratch_bytes(threads); }
  std::string note() const override { return "vectors, then scalars"; }

 private:
  Blocks blocks_;
  Body body_;
  Tail tail_;
  int64_t run_ = 1, inside_ = 0;
};

template <class Body, class Tail>
std::unique_ptr<Kernel> make_lane_zip(const Step& step, Body body, Tail tail) {
  return std::make_unique<LaneZip<Body, Tail>>(step, std::move(body), std::move(tail));
}

}  // namespace bittrue

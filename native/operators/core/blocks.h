// Element-wise walks: inputs that broadcast to one output, handed to a body in dense blocks.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/kernel.h"
#include "isa/cores.h"

namespace bittrue {

// The output is cut into blocks that are contiguous in memory. An input that is dense over a block is read where it
// lies; one that is broadcast or strided inside a block is first spread out in scratch memory, and only again when its
// place in the input changes, so that an operand of one value, or of one value per channel, is spread once.
class Blocks {
 public:
  static constexpr int kMaxInputs = 3;
  // Steps with fewer elements than this run on the calling thread.
  static constexpr int64_t kParallel = 20000;

  Blocks() = default;
  // NoKernel when the shapes do not broadcast, or when rows are strided element by element.
  [[gnu::cold]] Blocks(const std::vector<const Operand*>& inputs, const Operand& output, int64_t block_elements = 2048);

  int64_t scratch_bytes(int threads) const { return threads * worker_bytes_; }
  // From now on, inputs that are one number all over a block are not spread out: their pointers lead to that one. Bit k
  // says whether input k is such a one.
  unsigned keep_singles();

  // body(inputs, out, count): `count` elements, one pointer per input.
  template <class Body>
  void run(const Run& run, const Body& body) const {
    each(run, &body, [](const void* f, const uint8_t* const* in, uint8_t* out, int64_t count) {
      (*static_cast<const Body*>(f))(in, out, count);
    });
  }

 private:
  struct Axis {
    int64_t dimension = 0;
    int64_t strides[kMaxInputs + 1] = {};  // bytes; the output's comes last
  };
  struct State;

  using Call = void (*)(const void* body, const uint8_t* const* in, uint8_t* out, int64_t count);
  void each(const Run& run, const void* body, Call call) const;
  int64_t place(const Run& run, int64_t block, State& state, uint8_t** out) const;
  void spread(int input, size_t axis, int64_t dimension, const uint8_t* source, uint8_t* target) const;
  int64_t inner_elements(size_t axis) const;

  int inputs_ = 0;
  int item_[kMaxInputs] = {};
  bool direct_[kMaxInputs] = {};
  int64_t scratch_offset_[kMaxInputs] = {};
  std::vector<Axis> axes_;
  size_t cut_ = 0;  // blocks hold `step_` positions of this axis and everything inside
  int64_t step_ = 1, inner_ = 1, chunks_ = 1;
  int64_t blocks_ = 0, elements_ = 0, worker_bytes_ = 0;
};

// A kernel of nothing but such a walk, over the first operands of a step.
class BlockKernel : public Kernel {
 public:
  void run(const Run& run) const override;
  int64_t scratch_bytes(int threads) const final { return blocks_.scratch_bytes(threads); }

 protected:
  [[gnu::cold]] BlockKernel(const Step& step, int inputs, int64_t block_elements = 2048);
  // The same; NoKernel unless elements have these sizes.
  [[gnu::cold]] BlockKernel(const Step& step, std::initializer_list<size_t> input_bytes, size_t output_bytes);
  // `count` elements, one pointer per input.
  virtual void block(const uint8_t* const* in, uint8_t* out, int64_t count) const = 0;

  Blocks blocks_;
};

// The same with values that have no defined result: the reference then does the whole step.
class CheckedBlockKernel : public Kernel {
 public:
  void run(const Run& run) const final;
  int64_t scratch_bytes(int threads) const final { return blocks_.scratch_bytes(threads); }

 protected:
  [[gnu::cold]] CheckedBlockKernel(const Step& step, std::initializer_list<size_t> input_bytes, size_t output_bytes);
  // Whether all results of the block are.
  virtual bool defined(const uint8_t* const* in, uint8_t* out, int64_t count) const = 0;

  Blocks blocks_;
};

// A function with what it holds, of any class: kernels that call it need no class for each.
template <class Signature>
class HeldFunction;
template <class Result, class... Arguments>
class HeldFunction<Result(Arguments...)> {
 public:
  template <class Function>
  explicit HeldFunction(Function function)
      : held_(new Function(std::move(function)), [](void* f) { delete static_cast<Function*>(f); }),
        call_([](const void* f, Arguments... arguments) { return (*static_cast<const Function*>(f))(arguments...); }) {}

  Result operator()(Arguments... arguments) const { return call_(held_.get(), arguments...); }

 private:
  std::unique_ptr<void, void (*)(void*)> held_;
  Result (*call_)(const void* held, Arguments... arguments);
};
// A function as a loop over results calls it: a copy, as results may not lie in that, so that what it holds is not read
// again for each; where copies would take memory, itself.
template <class Function>
using OwnFunction = std::conditional_t<std::is_trivially_copyable_v<Function>, Function, const Function&>;
using BlockFunction = HeldFunction<void(const uint8_t* const* in, uint8_t* out, int64_t count)>;
using CheckedBlockFunction = HeldFunction<bool(const uint8_t* const* in, uint8_t* out, int64_t count)>;

// The kernel of a walk that hands blocks to `function`, whose result says, with the second one, whether all are defined.
[[gnu::cold]] std::unique_ptr<Kernel> make_blocks(const Step& step, std::initializer_list<size_t> input_bytes,
                                                  size_t output_bytes, BlockFunction function);
[[gnu::cold]] std::unique_ptr<Kernel> make_checked_blocks(const Step& step, std::initializer_list<size_t> input_bytes,
                                                          size_t output_bytes, CheckedBlockFunction function);

// A core over two operands that broadcast to one output, all of them 8-bit.
class ElementwiseBytes final : public BlockKernel {
 public:
  ElementwiseBytes(const Step& step, std::unique_ptr<Elementwise> core)
      : BlockKernel(step, 2, 4096), core_(std::move(core)) {}

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    core_->run(in[0], in[1], out, count);
  }

  std::unique_ptr<Elementwise> core_;
};

}  // namespace bittrue

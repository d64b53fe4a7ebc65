#include "operators/core/blocks.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace bittrue {
namespace {

// Bytes between neighbours along every axis of `shape`, aligned to the right; 0 where the operand is broadcast.
std::vector<int64_t> byte_strides(const Operand& operand, const std::vector<int64_t>& shape) {
  const size_t rank = operand.shape.size();
  require(rank <= shape.size(), "an input has more axes than the output");
  std::vector<int64_t> strides(shape.size(), 0);
  int64_t stride = type_bytes(operand.type);
  for (size_t i = 0; i < rank; ++i) {
    const size_t axis = rank - 1 - i;
    const size_t target = shape.size() - 1 - i;
    require(operand.shape[axis] == shape[target] || operand.shape[axis] == 1, "the shapes do not broadcast");
    strides[target] = operand.shape[axis] == 1 ? 0 : stride;
    stride = i == 0 ? operand.row_stride : stride * operand.shape[axis];
  }
  return strides;
}

template <class T>
void repeat_one(uint8_t* target, int64_t total) {
  T one;
  std::memcpy(&one, target, sizeof one);
  std::fill_n(reinterpret_cast<T*>(target), total / static_cast<int64_t>(sizeof one), one);
}

void repeat(uint8_t* target, int64_t filled, int64_t total) {
  if (filled == 1) return repeat_one<uint8_t>(target, total);
  if (filled == 2) return repeat_one<uint16_t>(target, total);
  if (filled == 4) return repeat_one<uint32_t>(target, total);
  if (filled == 8) return repeat_one<uint64_t>(target, total);
  while (filled < total) {
    const int64_t more = std::min(filled, total - filled);
    std::memcpy(target + filled, target, static_cast<size_t>(more));
    filled += more;
  }
}

std::vector<const Operand*> first_inputs(const Step& step, int count) {
  std::vector<const Operand*> inputs;
  for (int k = 0; k < count; ++k) inputs.push_back(&step.input(k));
  return inputs;
}

void require_sizes(const Step& step, std::initializer_list<size_t> input_bytes, size_t output_bytes) {
  bool fits = static_cast<size_t>(type_bytes(step.output().type)) == output_bytes;
  size_t k = 0;
  for (const size_t bytes : input_bytes) fits = fits && static_cast<size_t>(type_bytes(step.input(k++).type)) == bytes;
  require(fits, "no native kernel for these types");
}

}  // namespace

struct Blocks::State {
  const uint8_t* pointers[kMaxInputs] = {};
  const uint8_t* spread_from[kMaxInputs] = {};
  int64_t spread_count[kMaxInputs] = {};
  uint8_t* scratch = nullptr;
};

Blocks::Blocks(const std::vector<const Operand*>& inputs, const Operand& output, int64_t block_elements)
    : inputs_(static_cast<int>(inputs.size())), elements_(output.elements) {
  require(inputs.size() <= kMaxInputs, "too many inputs");
  std::vector<std::vector<int64_t>> strides;
  for (int k = 0; k < inputs_; ++k) {
    item_[k] = type_bytes(inputs[k]->type);
    strides.push_back(byte_strides(*inputs[k], output.shape));
  }
  strides.push_back(byte_strides(output, output.shape));
  if (elements_ == 0) return;
  for (size_t i = 0; i < output.shape.size(); ++i) {
    if (output.shape[i] == 1) continue;
    Axis axis;
    axis.dimension = output.shape[i];
    for (int k = 0; k <= inputs_; ++k) axis.strides[k] = strides[k][i];
    bool merges = !axes_.empty();
    for (int k = 0; k <= inputs_ && merges; ++k) merges = axes_.back().strides[k] == axis.strides[k] * axis.dimension;
    if (merges) {
      axis.dimension *= axes_.back().dimension;
      axes_.back() = axis;
    } else {
      axes_.push_back(axis);
    }
  }
  if (axes_.empty()) {
    Axis axis;
    axis.dimension = 1;
    for (int k = 0; k < inputs_; ++k) axis.strides[k] = item_[k];
    axis.strides[inputs_] = type_bytes(output.type);
    axes_.push_back(axis);
  }
  const Axis& last = axes_.back();
  require(last.strides[inputs_] == type_bytes(output.type), "the output's elements are apart");
  for (int k = 0; k < inputs_; ++k) {
    require(last.strides[k] == item_[k] || last.strides[k] == 0, "an input's elements are apart");
  }
  // Take axes in, from the last one on, while the output stays contiguous and a block is small.
  cut_ = axes_.size() - 1;
  inner_ = 1;
  while (cut_ > 0) {
    const int64_t inside = inner_ * axes_[cut_].dimension;
    if (inside >= block_elements || axes_[cut_ - 1].strides[inputs_] != inside * last.strides[inputs_]) break;
    inner_ = inside;
    --cut_;
  }
  step_ = std::min(axes_[cut_].dimension, std::max<int64_t>(1, block_elements / inner_));
  chunks_ = (axes_[cut_].dimension + step_ - 1) / step_;
  blocks_ = chunks_;
  for (size_t i = 0; i < cut_; ++i) blocks_ *= axes_[i].dimension;
  for (int k = 0; k < inputs_; ++k) {
    direct_[k] = true;
    int64_t stride = item_[k];
    for (size_t i = axes_.size(); i-- > cut_;) {
      direct_[k] = direct_[k] && (axes_[i].strides[k] == stride || axes_[i].dimension == 1);
      stride *= axes_[i].dimension;
    }
    scratch_offset_[k] = worker_bytes_;
    if (!direct_[k]) worker_bytes_ += (step_ * inner_ * item_[k] + 63) / 64 * 64;
  }
}

unsigned Blocks::keep_singles() {
  unsigned singles = 0;
  for (int k = 0; k < inputs_; ++k) {
    bool single = step_ * inner_ > 1;
    for (size_t i = cut_; i < axes_.size(); ++i) single = single && axes_[i].strides[k] == 0;
    if (single) direct_[k] = true, singles |= 1u << k;
  }
  return singles;
}

int64_t Blocks::inner_elements(size_t axis) const {
  int64_t elements = 1;
  for (size_t i = axis + 1; i < axes_.size(); ++i) elements *= axes_[i].dimension;
  return elements;
}

void Blocks::spread(int input, size_t axis, int64_t dimension, const uint8_t* source, uint8_t* target) const {
  const int64_t stride = axes_[axis].strides[input];
  const int64_t bytes = inner_elements(axis) * item_[input];
  if (stride == bytes && axis + 1 == axes_.size()) {
    std::memcpy(target, source, static_cast<size_t>(dimension * bytes));
    return;
  }
  const int64_t positions = stride == 0 ? 1 : dimension;
  for (int64_t i = 0; i < positions; ++i) {
    if (axis + 1 == axes_.size()) {
      std::memcpy(target + i * bytes, source + i * stride, static_cast<size_t>(bytes));
    } else {
      spread(input, axis + 1, axes_[axis + 1].dimension, source + i * stride, target + i * bytes);
    }
  }
  if (stride == 0) repeat(target, bytes, dimension * bytes);
}

void Blocks::each(const Run& run, const void* body, Call call) const {
  if (blocks_ == 0) return;
  const int64_t tasks = elements_ < kParallel ? 1 : std::min<int64_t>(blocks_, run.pool.threads() * 4);
  run.pool.parallel(tasks, [&](int64_t task, int worker) {
    State state;
    state.scratch = run.scratch + worker * worker_bytes_;
    const int64_t last = blocks_ * (task + 1) / tasks;
    for (int64_t block = blocks_ * task / tasks; block < last; ++block) {
      run.check(worker);
      uint8_t* out = nullptr;
      const int64_t count = place(run, block, state, &out);
      call(body, state.pointers, out, count);
    }
  });
}

int64_t Blocks::place(const Run& run, int64_t block, State& state, uint8_t** out) const {
  int64_t offsets[kMaxInputs + 1] = {};
  const int64_t first = block % chunks_ * step_;
  for (int k = 0; k <= inputs_; ++k) offsets[k] = first * axes_[cut_].strides[k];
  int64_t rest = block / chunks_;
  for (size_t i = cut_; i-- > 0;) {
    const int64_t position = rest % axes_[i].dimension;
    rest /= axes_[i].dimension;
    for (int k = 0; k <= inputs_; ++k) offsets[k] += position * axes_[i].strides[k];
  }
  const int64_t dimension = std::min(step_, axes_[cut_].dimension - first);
  const int64_t count = dimension * inner_;
  *out = run.outputs[0] + offsets[inputs_];
  for (int k = 0; k < inputs_; ++k) {
    const uint8_t* source = run.inputs[k] + offsets[k];
    if (direct_[k]) {
      state.pointers[k] = source;
      continue;
    }
    uint8_t* target = state.scratch + scratch_offset_[k];
    if (state.spread_from[k] != source || state.spread_count[k] < count) {
      spread(k, cut_, dimension, source, target);
      state.spread_from[k] = source;
      state.spread_count[k] = count;
    }
    state.pointers[k] = target;
  }
  return count;
}

BlockKernel::BlockKernel(const Step& step, int inputs, int64_t block_elements)
    : blocks_(first_inputs(step, inputs), step.output(), block_elements) {}

BlockKernel::BlockKernel(const Step& step, std::initializer_list<size_t> input_bytes, size_t output_bytes)
    : BlockKernel(step, static_cast<int>(input_bytes.size())) {
  require_sizes(step, input_bytes, output_bytes);
}

void BlockKernel::run(const Run& run) const {
  blocks_.run(run, [this](const uint8_t* const* in, uint8_t* out, int64_t count) { block(in, out, count); });
}

CheckedBlockKernel::CheckedBlockKernel(const Step& step, std::initializer_list<size_t> input_bytes, size_t output_bytes)
    : blocks_(first_inputs(step, static_cast<int>(input_bytes.size())), step.output()) {
  require_sizes(step, input_bytes, output_bytes);
}

void CheckedBlockKernel::run(const Run& run) const {
  std::atomic<bool> all{true};
  blocks_.run(run, [&](const uint8_t* const* in, uint8_t* out, int64_t count) {
    if (!defined(in, out, count)) all.store(false, std::memory_order_relaxed);
  });
  if (!all.load(std::memory_order_relaxed)) throw Undefined();
}

namespace {

class FunctionKernel final : public BlockKernel {
 public:
  FunctionKernel(const Step& step, std::initializer_list<size_t> input_bytes, size_t output_bytes,
                 BlockFunction function)
      : BlockKernel(step, input_bytes, output_bytes), function_(std::move(function)) {}

  bool bears_changes() const override { return true; }

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override { function_(in, out, count); }

  BlockFunction function_;
};

class CheckedFunctionKernel final : public CheckedBlockKernel {
 public:
  CheckedFunctionKernel(const Step& step, std::initializer_list<size_t> input_bytes, size_t output_bytes,
                        CheckedBlockFunction function)
      : CheckedBlockKernel(step, input_bytes, output_bytes), function_(std::move(function)) {}

 private:
  bool defined(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    return function_(in, out, count);
  }

  CheckedBlockFunction function_;
};

}  // namespace

std::unique_ptr<Kernel> make_blocks(const Step& step, std::initializer_list<size_t> input_bytes, size_t output_bytes,
                                    BlockFunction function) {
  return std::make_unique<FunctionKernel>(step, input_bytes, output_bytes, std::move(function));
}

std::unique_ptr<Kernel> make_checked_blocks(const Step& step, std::initializer_list<size_t> input_bytes,
                                            size_t output_bytes, CheckedBlockFunction function) {
  return std::make_unique<CheckedFunctionKernel>(step, input_bytes, output_bytes, std::move(function));
}

}  // namespace bittrue

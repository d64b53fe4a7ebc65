#include "core/program.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>

#include "core/cpu.h"
#include "core/memory.h"
#include "core/written.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

// Copies `rows` rows of `row` bytes between two strides, flipping the top bit of every byte when asked to.
void copy_rows(const uint8_t* source, int64_t source_stride, uint8_t* target, int64_t target_stride, int64_t rows,
               int64_t row, bool flip) {
  if (source_stride == row && target_stride == row) {
    row *= rows;
    rows = 1;
  }
  for (int64_t r = 0; r < rows; ++r, source += source_stride, target += target_stride) {
    if (flip) {
      for (int64_t i = 0; i < row; ++i) target[i] = source[i] ^ 0x80;
    } else if (row > 0) {
      std::memcpy(target, source, static_cast<size_t>(row));
    }
  }
}

int64_t row_count(const Operand& operand) {
  if (operand.shape.empty()) return 1;
  return operand.shape.back() == 0 ? 0 : operand.elements / operand.shape.back();
}

// Bytes from the first to the last byte of an operand.
int64_t dimension(const Operand& operand) {
  const int64_t rows = row_count(operand);
  return rows == 0 ? 0 : (rows - 1) * operand.row_stride + operand.row_bytes();
}

// The end of a tensor's memory in the arena.
int64_t end(const TensorSpec& tensor) { return tensor.offset + dimension(tensor.operand); }

void check_operand(const TensorSpec& tensor, int64_t arena) {
  const Operand& operand = tensor.operand;
  int64_t elements = 1;
  for (const int64_t size : operand.shape) {
    if (size < 0 || (size > 0 && elements > (int64_t{1} << 48) / size)) throw std::invalid_argument("impossible shape");
    elements *= size;
  }
  if (elements != operand.elements) throw std::invalid_argument("shape and element count differ");
  if (tensor.home != Home::arena) return;
  if (operand.row_stride < operand.row_bytes() || tensor.offset < 0 || dimension(operand) > arena - tensor.offset) {
    throw std::invalid_argument("a tensor leaves the arena");
  }
}

// About how many nanoseconds a step takes, from below: enough to know when to look at the clock.
int64_t weight(const Step& step) {
  int64_t total = std::max<int64_t>(step.work, 0) / 16;
  for (const auto* list : {&step.inputs, &step.outputs}) {
    for (const Operand* operand : *list) total += operand == nullptr ? 0 : operand->bytes();
  }
  return total;
}

// Whether all results are empty. Kernels need not think of such steps: what is left is to find fault with the other
// operands, as the reference does.
bool only_checks(const ProgramStep& step, const std::vector<TensorSpec>& tensors) {
  for (const int i : step.inputs) {
    if (i >= 0 && tensors[i].home == Home::variable) return false;
  }
  for (const int i : step.outputs) {
    if (tensors[i].operand.elements != 0) return false;
  }
  return true;
}

// Operators that add up products of real numbers. Where several NaN meet in a sum, which of them is kept depends on the
// order inside of vectors; then the reference, whose order is one, gives the result.
bool sums_reals(const ProgramStep& step, const std::vector<TensorSpec>& tensors) {
  static const std::set<std::string> kSums = {"conv", "conv_transpose", "fully_connected", "lstm", "matmul", "svdf"};
  return kSums.count(step.step.name) != 0 && step.step.then == nullptr && !step.outputs.empty() &&
         tensors[step.outputs[0]].operand.type == Type::f32;
}

bool holds_nan(const Operand& operand, const uint8_t* data) {
  if (operand.type != Type::f32 || data == nullptr) return false;
  const int64_t bytes = operand.row_bytes(), rows = bytes == 0 ? 0 : operand.elements * int64_t{sizeof(float)} / bytes;
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* row = data + r * operand.row_stride;
    uint32_t found = 0;
    for (int64_t i = 0; i < bytes; i += sizeof(float)) {
      uint32_t bits;
      std::memcpy(&bits, row + i, sizeof bits);
      // What is above infinity carries into the highest bit; so the loop becomes vectors.
      found |= (bits & 0x7FFFFFFFu) + 0x007FFFFFu;
    }
    if (found >> 31 != 0) return true;
  }
  return false;
}

bool has_state(const ProgramStep& step, const std::vector<TensorSpec>& tensors) {
  return std::any_of(step.inputs.begin(), step.inputs.end(),
                     [&](int i) { return i >= 0 && tensors[i].home == Home::variable; });
}

// Whether a NaN is among the constants of a sum whose state keeps it from being done twice.
bool constant_nan(const ProgramStep& step, const std::vector<TensorSpec>& tensors) {
  if (!sums_reals(step, tensors) || !has_state(step, tensors)) return false;
  return std::any_of(step.inputs.begin(), step.inputs.end(), [&](int i) {
    return i >= 0 && tensors[i].home == Home::constant &&
           holds_nan(tensors[i].operand, static_cast<const uint8_t*>(tensors[i].operand.constant));
  });
}

// Whether all steps bear that values of a type change while they run. Integers may be places, which a kernel checks before
// it uses them.
bool bears_changes(Type type) { return type == Type::f32 || type == Type::f64 || is_half(type); }

// What became of a step.
struct Made {
  std::unique_ptr<Kernel> kernel;
  std::string reason;  // why there is no kernel
  std::exception_ptr error;
};

// Lets nothing pass: it runs in tasks.
Made make_kernel(const ProgramStep& step, const std::vector<TensorSpec>& tensors, const CoreSet& cores) noexcept {
  Made made;
  try {
    try {
      if (only_checks(step, tensors)) {
        made.reason = "its results hold no elements";
      } else if (constant_nan(step, tensors)) {
        made.reason = "a constant holds NaN";
      } else if (const Factory factory = find_factory(step.step.name)) {
        made.reason = "no native kernel for these types";
        made.kernel = factory(step.step, cores);
      } else {
        made.reason = "no native kernel for this operator";
      }
    } catch (const NoKernel& error) {
      made.reason = error.what();
    }
  } catch (...) {
    made.error = std::current_exception();
  }
  return made;
}

// Whether there are so many weights that two threads pack them, though one shall run the program.
bool worth_two(const std::vector<TensorSpec>& tensors) {
  constexpr int64_t kWorth = int64_t{1} << 20;
  int64_t bytes = 0;
  for (const TensorSpec& tensor : tensors) bytes += tensor.home == Home::constant ? tensor.operand.bytes() : 0;
  return bytes >= kWorth && available_processors() > 1;
}

std::vector<Made> make_kernels(const std::vector<ProgramStep>& steps, const std::vector<TensorSpec>& tensors,
                               const CoreSet& cores, ThreadPool& pool) {
  pool.stop().begin(std::numeric_limits<double>::infinity(), nullptr, -1);
  const ThreadPool::Awake awake(pool);
  // The last steps have the most weights.
  const auto count = static_cast<int64_t>(steps.size());
  std::vector<Made> made(steps.size());
  pool.parallel(count, [&](int64_t task, int) {
    const int64_t i = count - 1 - task;
    made[i] = make_kernel(steps[i], tensors, cores);
  });
  return made;
}

}  // namespace

AlignedBytes::AlignedBytes(int64_t size) {
  constexpr int64_t kRoom = 64;
  data_.reset(static_cast<uint8_t*>(lasting_memory(static_cast<size_t>(size + kRoom))));
}

void AlignedBytes::Free::operator()(uint8_t* p) const { std::free(p); }

Program::Program(std::vector<TensorSpec> tensors, std::vector<ProgramStep> steps, int64_t arena, int threads,
                 const std::string& isa, const int64_t* interrupts)
    : cores_(isa), pool_(threads), interrupts_(interrupts), tensors_(std::move(tensors)), arena_(arena) {
  for (const TensorSpec& tensor : tensors_) {
    check_operand(tensor, arena);
    if (tensor.root < 0 || tensor.root >= static_cast<int>(tensors_.size())) {
      throw std::invalid_argument("a tensor lies in one that does not exist");
    }
  }
  for (ProgramStep& step : steps) {
    check_step(step);
    const auto operands = [&](const std::vector<int>& indices) {
      std::vector<const Operand*> list;
      for (const int i : indices) list.push_back(i < 0 ? nullptr : &tensors_[i].operand);
      return list;
    };
    step.step.inputs = operands(step.inputs);
    step.step.outputs = operands(step.outputs);
    if (step.step.then != nullptr) {
      if (step.step.inputs.empty() || step.step.outputs.empty()) throw std::invalid_argument("a step adds nothing");
      step.step.then->inputs = operands(step.then_inputs);
      step.step.then->outputs = step.step.outputs;
    }
  }
  std::vector<Made> made;
  if (threads == 1 && worth_two(tensors_)) {
    ThreadPool two(2);
    made = make_kernels(steps, tensors_, cores_, two);
  } else {
    made = make_kernels(steps, tensors_, cores_, pool_);
  }
  std::vector<bool> needed(tensors_.size(), false);
  int64_t scratch = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    if (made[s].error != nullptr) std::rethrow_exception(made[s].error);
    std::unique_ptr<Kernel> kernel = std::move(made[s].kernel);
    if (kernel != nullptr && steps[s].step.then != nullptr && !kernel->does_then()) {
      kernel = nullptr;
      made[s].reason = "no native kernel that adds as well";
    }
    if (kernel == nullptr) missing_.emplace_back(static_cast<int>(s), made[s].reason);
    const std::vector<int>& inputs = steps[s].inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (kernel != nullptr && inputs[i] >= 0 && !kernel->packs(i)) needed[inputs[i]] = true;
    }
    weights_.push_back(weight(steps[s].step));
    if (kernel != nullptr) scratch = std::max(scratch, kernel->scratch_bytes(threads));
    kernels_.push_back(std::move(kernel));
  }
  check_written(tensors_, steps, arena);
  scratch_ = AlignedBytes(scratch);
  scratch_size_ = scratch;
  const char* fill = std::getenv("BITTRUE_DEBUG_FILL");
  if (fill != nullptr && std::strcmp(fill, "none") != 0) {
    fill_ = static_cast<int>(std::strtol(fill, nullptr, 10) & 0xFF);
    for (const ProgramStep& step : steps) {
      targets_.emplace_back();
      for (const int target : step.outputs) {
        // Parts of a concatenation may lie in its result already.
        const auto shares = [&](int i) {
          return i >= 0 && tensors_[i].home == Home::arena && tensors_[i].offset < end(tensors_[target]) &&
                 tensors_[target].offset < end(tensors_[i]);
        };
        const bool alone = std::none_of(step.inputs.begin(), step.inputs.end(), shares);
        if (alone && tensors_[target].home == Home::arena) targets_.back().push_back(target);
      }
    }
  }
  if (fill == nullptr || fill_ >= 0) {
    // Whatever a kernel did wrong, nobody gets to see what was on the heap before.
    std::memset(arena_.data(), std::max(fill_, 0), static_cast<size_t>(arena));
    std::memset(scratch_.data(), std::max(fill_, 0), static_cast<size_t>(scratch));
  }
  memory_ += arena + scratch;
  place(needed);
  for (const ProgramStep& step : steps) {
    Operands operands;
    for (const int i : step.inputs) operands.inputs.push_back(i < 0 ? nullptr : addresses_[i]);
    for (const int i : step.outputs) operands.outputs.push_back(addresses_[i]);
    operands_.push_back(std::move(operands));
    NanWatch watch;
    if (sums_reals(step, tensors_)) {
      if (has_state(step, tensors_)) {
        watch.before = step.inputs;
        // Constants are not kept; `constant_nan` has looked at them.
        for (int& i : watch.before) i = i >= 0 && tensors_[i].home == Home::constant ? -1 : i;
      } else {
        const Kernel* kernel = kernels_[watches_.size()].get();
        if (kernel != nullptr && !kernel->tells_nan()) watch.after = step.outputs;
      }
    }
    watches_.push_back(std::move(watch));
  }
  find_places(steps);
  // Constants were borrowed.
  for (TensorSpec& tensor : tensors_) tensor.operand.constant = nullptr;
}

// Of dense tensors that are the whole of their memory. Nobody else sees the results of a run before its end. What a caller
// gives may change meanwhile: integers are used where they lie only by steps that bear it.
void Program::find_places(const std::vector<ProgramStep>& steps) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorSpec &tensor = tensors_[i], &root = tensors_[tensor.root];
    const bool own = tensor.offset == root.offset && dimension(tensor.operand) == dimension(root.operand);
    if (tensor.given == tensor.wanted || tensor.home != Home::arena || root.home != Home::arena || !own ||
        !tensor.operand.dense() || tensor.operand.elements == 0 || flip_of(tensor.operand.type) != 0) {
      continue;
    }
    std::vector<bool> inside(tensors_.size());
    bool alone = true;
    const bool unchecked = tensor.given && !bears_changes(tensor.operand.type);
    Places places;
    for (size_t k = 0; k < tensors_.size(); ++k) {
      const TensorSpec& other = tensors_[k];
      if (other.home != Home::arena || other.root != tensor.root) continue;
      inside[k] = true;
      alone =
          alone && (k == i || !(other.given || other.wanted)) && other.offset >= root.offset && end(other) <= end(root);
      places.emplace_back(&addresses_[k], addresses_[k]);
    }
    for (size_t s = 0; s < steps.size(); ++s) {
      Operands& operands = operands_[s];
      for (size_t k = 0; k < operands.inputs.size(); ++k) {
        const int index = steps[s].inputs[k];
        if (index < 0 || !inside[index]) continue;
        places.emplace_back(&operands.inputs[k], operands.inputs[k]);
        alone = alone && !(unchecked && (kernels_[s] == nullptr || !kernels_[s]->bears_changes()));
      }
      for (size_t k = 0; k < operands.outputs.size(); ++k) {
        if (!inside[steps[s].outputs[k]]) continue;
        alone = alone && !tensor.given;
        places.emplace_back(&operands.outputs[k], operands.outputs[k]);
      }
    }
    if (alone) places_.emplace(static_cast<int>(i), std::move(places));
  }
}

void Program::check_step(const ProgramStep& step) const {
  const auto check = [&](int i, bool may_be_absent) {
    if ((i < 0 && !may_be_absent) || i >= static_cast<int>(tensors_.size())) {
      throw std::invalid_argument("a step names a tensor that does not exist");
    }
    if (i >= 0 && tensors_[i].home == Home::none) throw std::invalid_argument("a step uses a tensor without a home");
  };
  for (const int i : step.inputs) check(i, true);
  for (const int i : step.then_inputs) {
    if (i >= static_cast<int>(tensors_.size())) throw std::invalid_argument("a step adds what does not exist");
  }
  for (const int i : step.outputs) {
    check(i, false);
    if (tensors_[i].home == Home::constant) throw std::invalid_argument("a step writes a constant");
  }
}

void Program::place(const std::vector<bool>& needed) {
  addresses_.assign(tensors_.size(), nullptr);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorSpec& tensor = tensors_[i];
    const Operand& operand = tensor.operand;
    if (tensor.home == Home::arena) {
      addresses_[i] = arena_.data() + tensor.offset;
    } else if (tensor.home == Home::variable || (tensor.home == Home::constant && needed[i])) {
      if (tensor.home == Home::constant && operand.constant == nullptr) {
        throw std::invalid_argument("a constant has no value");
      }
      owned_.emplace_back(operand.bytes());
      memory_ += operand.bytes();
      addresses_[i] = owned_.back().data();
      if (operand.constant != nullptr) {
        write(static_cast<int>(i), operand.constant);
      } else {
        std::memset(addresses_[i], 0, static_cast<size_t>(operand.bytes()));
        if (flip_of(operand.type) != 0) std::memset(addresses_[i], 0x80, static_cast<size_t>(operand.bytes()));
      }
      if (tensor.home == Home::variable && operand.bytes() > 0) {
        first_values_.emplace_back(static_cast<int>(i),
                                   std::vector<uint8_t>(addresses_[i], addresses_[i] + operand.bytes()));
      }
    }
  }
}

void Program::run(int first, int last, double* seconds) {
  if (first < 0 || last > static_cast<int>(kernels_.size())) throw std::invalid_argument("no such steps");
  Stop& stop = pool_.stop();
  ThreadPool::Awake awake(pool_);
  using Clock = std::chrono::steady_clock;
  Clock::time_point before = seconds != nullptr ? Clock::now() : Clock::time_point();
  for (int i = first; i < last; ++i) {
    if (kernels_[i] == nullptr) throw std::invalid_argument("a step without a native kernel");
    const Operands& operands = operands_[i];
    // Steps with a state look ahead of the run, which changes it. While timing, the results do not matter.
    const NanWatch& watch = watches_[i];
    const auto any_nan = [&](const std::vector<int>& indices, const std::vector<uint8_t*>& addresses) {
      for (size_t k = 0; k < indices.size(); ++k) {
        if (indices[k] >= 0 && holds_nan(tensors_[indices[k]].operand, addresses[k])) return true;
      }
      return false;
    };
    if (fill_ >= 0) spoil(i);
    try {
      stop.spend(weights_[i]);
      if (stop.asked()) throw Stopped();
      if (seconds == nullptr && any_nan(watch.before, operands.inputs)) throw Undefined();
      kernels_[i]->run({operands.inputs.data(), operands.outputs.data(), scratch_.data(), pool_});
      if (seconds == nullptr && any_nan(watch.after, operands.outputs)) throw Undefined();
    } catch (const Undefined&) {
      throw StepUndefined(i);
    } catch (const Stopped&) {
      throw StepStopped(i, stop.reason());
    }
    if (seconds != nullptr) {
      const Clock::time_point now = Clock::now();
      seconds[i - first] = std::chrono::duration<double>(now - before).count();
      before = now;
    }
  }
  if (last == static_cast<int>(kernels_.size())) awake.finish();
}

void Program::spoil(int step) {
  std::memset(scratch_.data(), fill_, static_cast<size_t>(scratch_size_));
  for (const int i : targets_[step]) {
    const TensorSpec& tensor = tensors_[i];
    for (int64_t r = 0; r < row_count(tensor.operand); ++r) {
      std::memset(addresses_[i] + r * tensor.operand.row_stride, fill_,
                  static_cast<size_t>(tensor.operand.row_bytes()));
    }
  }
}

void Program::write(int tensor, const void* value) {
  const Operand& operand = tensors_.at(tensor).operand;
  if (addresses_[tensor] == nullptr) throw std::invalid_argument("the tensor has no memory");
  copy_rows(static_cast<const uint8_t*>(value), operand.row_bytes(), addresses_[tensor], operand.row_stride,
            row_count(operand), operand.row_bytes(), flip_of(operand.type) != 0);
}

void Program::read(int tensor, void* value) const {
  const Operand& operand = tensors_.at(tensor).operand;
  if (addresses_[tensor] == nullptr) throw std::invalid_argument("the tensor has no memory");
  if (addresses_[tensor] == value) return;
  copy_rows(addresses_[tensor], operand.row_stride, static_cast<uint8_t*>(value), operand.row_bytes(),
            row_count(operand), operand.row_bytes(), flip_of(operand.type) != 0);
}

bool Program::lend(int tensor, void* memory) {
  constexpr uintptr_t kMemoryAlignment = 16;
  const auto found = places_.find(tensor);
  if (found == places_.end() || reinterpret_cast<uintptr_t>(memory) % kMemoryAlignment != 0) return false;
  const auto& [first, home] = found->second.front();
  if (*first != home) return false;  // lent already
  const uint8_t* own = addresses_[tensor];
  for (auto& [place, address] : found->second) *place = static_cast<uint8_t*>(memory) + (address - own);
  return true;
}

void Program::set(const Values& values) {
  for (const auto& [tensor, value] : values) std::memcpy(addresses_[tensor], value.data(), value.size());
}

void Program::reset() { set(first_values_); }

void Program::keep() {
  if (first_values_.empty()) return;
  if (kept_values_.empty()) kept_values_ = first_values_;
  kept_ = false;
  for (auto& [tensor, value] : kept_values_) std::memcpy(value.data(), addresses_[tensor], value.size());
  kept_ = true;
}

void Program::undo() {
  // All of them: the child of a fork finds a run as its thread was when it was gone, perhaps between two of them.
  for (auto& [tensor, places] : places_) {
    for (auto& [place, address] : places) *place = address;
  }
  if (kept_) set(kept_values_);
  kept_ = false;
}

}  // namespace bittrue

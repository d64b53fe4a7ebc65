// Reductions along any axes of a dense tensor: which elements meet, and in which order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/kernel.h"

namespace bittrue {

class Reduction {
 public:
  // Reads `axes`; NoKernel when axes and shapes do not fit, or without elements.
  explicit Reduction(const Step& step);

  int64_t count() const { return count_; }                        // elements per output
  bool whole() const { return whole_; }                           // every axis is reduced
  bool rows() const { return !inner_kept_ && inner_ == count_; }  // the elements of an output are neighbours
  int64_t scratch_bytes(int threads) const { return threads * kScratch; }

  // For every output, the operation over its elements in row-major order: acc = operation.start, or the first element
  // when `from_first`; acc = operation(acc, x). Then finish(acc, first output, outputs) for stretches of outputs.
  template <class In, class Acc, class Operation, class Finish>
  void run(const Run& run, const Operation& operation, bool from_first, const Finish& finish) const {
    const auto* in = reinterpret_cast<const In*>(run.inputs[0]);
    const int64_t chunk = inner_kept_ ? std::min(inner_, kChunk) : std::min(outputs_, std::max<int64_t>(1, kChunk / 8));
    const int64_t chunks = inner_kept_ ? (inner_ + chunk - 1) / chunk : 1;
    const int64_t tasks = inner_kept_ ? outputs_ / inner_ * chunks : (outputs_ + chunk - 1) / chunk;
    const auto one = [&](int64_t task, int worker) {
      auto* acc = reinterpret_cast<Acc*>(run.scratch + worker * kScratch);
      if (inner_kept_) {
        const int64_t row = task / chunks, first = task % chunks * chunk, size = std::min(chunk, inner_ - first);
        const In* base = in + offset(kept_, row) + first;
        if (from_first) {
          for (int64_t i = 0; i < size; ++i) acc[i] = static_cast<Acc>(base[i]);
        } else {
          for (int64_t i = 0; i < size; ++i) acc[i] = operation.start;
        }
        for (int64_t r = from_first ? 1 : 0; r < count_; ++r) {
          run.check(worker);
          const In* source = base + offset(reduced_, r);
          for (int64_t i = 0; i < size; ++i) acc[i] = operation(acc[i], static_cast<Acc>(source[i]));
        }
        finish(acc, row * inner_ + first, size);
        return;
      }
      const int64_t first = task * chunk, size = std::min(chunk, outputs_ - first);
      int64_t i = 0;
      if constexpr (std::is_floating_point_v<Acc>) {
        for (; i + kTogether <= size; i += kTogether) {
          neighbours<kTogether, In>(run, worker, operation, from_first, first + i, acc + i);
        }
      }
      for (; i < size; ++i) neighbours<1, In>(run, worker, operation, from_first, first + i, acc + i);
      finish(acc, first, size);
    };
    parallel(run, tasks, one);
  }

  // For every output over rows of memory, part after part of `length` neighbours: acc = part(acc, elements), from `start`;
  // then finish(output, acc).
  template <class T, class Acc, class Part, class Finish>
  void run_parts(const Run& run, int64_t length, Acc start, const Part& part, const Finish& finish) const {
    const auto* in = reinterpret_cast<const T*>(run.inputs[0]);
    parallel(run, outputs_, [&](int64_t index, int worker) {
      const T* base = in + offset(kept_, index);
      Acc acc = start;
      for (int64_t r = 0; r < count_; r += length) {
        run.check(worker);
        acc = part(acc, base + offset(reduced_, r / inner_) + r % inner_);
      }
      finish(index, acc);
    });
  }

  // For every output: acc = element(acc, x) for its elements in row-major order, from start(output) on; then finish(output, acc).
  template <class T, class Start, class Element, class Finish>
  void run_elements(const Run& run, const Start& start, const Element& element, const Finish& finish) const {
    using Acc = decltype(start(int64_t{0}));
    const auto* in = reinterpret_cast<const T*>(run.inputs[0]);
    // Neighbours that are kept are worked on side by side.
    constexpr int64_t kBeside = 16;
    const int64_t kept = inner_kept_ ? inner_ : 1, length = inner_kept_ ? 1 : inner_;
    const int64_t chunks = (kept + kBeside - 1) / kBeside;
    parallel(run, outputs_ / kept * chunks, [&](int64_t task, int worker) {
      const int64_t row = task / chunks, first = task % chunks * kBeside, size = std::min(kBeside, kept - first);
      const int64_t output = row * kept + first;
      Acc acc[kBeside];
      for (int64_t k = 0; k < size; ++k) acc[k] = start(output + k);
      const T* base = in + offset(kept_, row) + first;
      for (int64_t r = 0; r < count_ / length; ++r) {
        const T* part = base + offset(reduced_, r);
        for (int64_t begin = 0; begin < length; begin += kPiece) {
          if ((r * length + begin) % kPiece < length) run.check(worker);
          const int64_t end = std::min(length, begin + kPiece);
          for (int64_t i = begin; i < end; ++i) {
            for (int64_t k = 0; k < size; ++k) acc[k] = element(acc[k], part[i + k]);
          }
        }
      }
      for (int64_t k = 0; k < size; ++k) finish(output + k, acc[k]);
    });
  }

  // The same where what remains is the output.
  template <class T, class Part>
  void run_parts(const Run& run, int64_t length, T start, const Part& part) const {
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    run_parts<T>(run, length, start, part, [&](int64_t index, T acc) { out[index] = acc; });
  }

  // The sums of bytes modulo 2^32, by the core when whole rows are added.
  template <class Finish>
  void run_byte_sums(const Run& run, SumRows sum_rows, const Finish& finish) const {
    if (!inner_kept_) {
      this->run<uint8_t, uint32_t>(run, Sum(), false, finish);
      return;
    }
    const int64_t chunk = std::min(inner_, kChunk), chunks = (inner_ + chunk - 1) / chunk;
    parallel(run, outputs_ / inner_ * chunks, [&](int64_t task, int worker) {
      auto* acc = reinterpret_cast<uint32_t*>(run.scratch + worker * kScratch);
      auto* more = reinterpret_cast<int32_t*>(acc + kChunk);
      const int64_t row = task / chunks, first = task % chunks * chunk, size = std::min(chunk, inner_ - first);
      const uint8_t* base = run.inputs[0] + offset(kept_, row) + first;
      constexpr int64_t kRows = 64;
      const uint8_t* rows[kRows];
      for (int64_t r = 0; r < count_; r += kRows) {
        const int64_t taken = std::min(kRows, count_ - r);
        run.check(worker);
        for (int64_t i = 0; i < taken; ++i) rows[i] = base + offset(reduced_, r + i);
        sum_rows(rows, taken, r == 0 ? reinterpret_cast<int32_t*>(acc) : more, size);
        if (r == 0) continue;
        for (int64_t i = 0; i < size; ++i) acc[i] += static_cast<uint32_t>(more[i]);
      }
      finish(acc, row * inner_ + first, size);
    });
  }

  struct Sum {
    uint32_t start = 0;
    uint32_t operator()(uint32_t a, uint32_t b) const { return a + b; }
  };

 private:
  static constexpr int64_t kChunk = 2048;
  static constexpr int64_t kScratch = kChunk * 8;
  static constexpr int64_t kParallel = 100000;
  static constexpr int64_t kPiece = 1 << 16;
  static constexpr int kTogether = 8;

  struct Axis {
    int64_t dimension, stride;  // elements
  };

  // Where position `index` of the product of `axes` begins.
  static int64_t offset(const std::vector<Axis>& axes, int64_t index) {
    int64_t result = 0;
    for (size_t i = axes.size(); i-- > 1;) {
      result += index % axes[i].dimension * axes[i].stride;
      index /= axes[i].dimension;
    }
    return axes.empty() ? 0 : result + index * axes[0].stride;
  }

  // Outputs from `first` on, each over neighbouring elements: several at once do not wait for one another. Not inlined:
  // GCC keeps all of them in registers only in a function of their own.
  template <int kOutputs, class In, class Acc, class Operation>
  [[gnu::noinline]] void neighbours(const Run& run, int worker, const Operation& operation, bool from_first,
                                    int64_t first, Acc* acc) const {
    const In* base[kOutputs];
    Acc value[kOutputs];
    for (int k = 0; k < kOutputs; ++k) {
      base[k] = reinterpret_cast<const In*>(run.inputs[0]) + offset(kept_, first + k);
      value[k] = from_first ? static_cast<Acc>(base[k][0]) : static_cast<Acc>(operation.start);
    }
    for (int64_t r = 0; r < count_ / inner_; ++r) {
      const int64_t at = offset(reduced_, r);
      for (int64_t begin = from_first && r == 0 ? 1 : 0; begin < inner_; begin += kPiece) {
        run.check(worker);
        const int64_t end = at + std::min(inner_, begin + kPiece);
        if constexpr (kOutputs == 1) {  // sums of integers become vectors
          Acc kept = value[0];
          for (int64_t j = at + begin; j < end; ++j) kept = operation(kept, static_cast<Acc>(base[0][j]));
          value[0] = kept;
          continue;
        }
        for (int64_t j = at + begin; j < end; ++j) {
          for (int k = 0; k < kOutputs; ++k) value[k] = operation(value[k], static_cast<Acc>(base[k][j]));
        }
      }
    }
    std::copy(value, value + kOutputs, acc);
  }

  template <class Function>
  void parallel(const Run& run, int64_t tasks, const Function& function) const {
    run.pool.parallel(tasks, outputs_ * count_ < kParallel ? 1 : run.pool.threads(), function);
  }

  std::vector<Axis> kept_, reduced_;  // without the innermost axis
  int64_t inner_ = 1;                 // dimension of the innermost axis, neighbours merged
  bool inner_kept_ = true, whole_ = false;
  int64_t count_ = 1, outputs_ = 1;
};

// How many elements of an output lie side by side: the last axes, up to one that is kept; 1 if that is the last.
int64_t neighbours(const Step& step);

// Sums and means in the orders of the slot `real_sum`.
std::unique_ptr<Kernel> make_real_sum(const Step& step, const CoreSet& cores);

}  // namespace bittrue

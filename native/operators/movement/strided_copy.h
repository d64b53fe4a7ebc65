// Copies between two strided views of the same shape: what most operators that only move elements come down to.
#pragma once

#include <cstdint>
#include <vector>

#include "core/share.h"
#include "core/step.h"
#include "core/thread_pool.h"

namespace bittrue {

// Bytes from one element to the next along each axis of an operand.
std::vector<int64_t> byte_strides(const Operand& operand);

// Both operands hold elements of one type, which has a size.
void require_same_type(const Operand& first, const Operand& second);

// target[i * target_step + j] = source[j * source_step + i] for i < across and j < along.
void transpose_numbers(const float* source, int64_t source_step, float* target, int64_t target_step, int64_t across,
                       int64_t along);

// One axis of a copy: strides in bytes. The source may repeat (0) or run backwards (negative), the target may not.
struct CopyAxis {
  int64_t dimension;
  int64_t source;
  int64_t target;
};

// target[i0 * t0 + i1 * t1 + ...] = source[i0 * s0 + i1 * s1 + ...] for all indices, `element` bytes each.
// Axes that are contiguous on both sides are merged when the copy is made.
class StridedCopy {
 public:
  StridedCopy(const std::vector<CopyAxis>& axes, int64_t element, int64_t source_offset = 0, int64_t target_offset = 0);

  void run(const uint8_t* source, uint8_t* target, ThreadPool& pool) const;
  // The same, with function(source, target, bytes) in place of each copy of contiguous bytes.
  template <class Function>
  void transform(const uint8_t* source, uint8_t* target, ThreadPool& pool, const Function& function) const {
    share(pool, units(), [&](int64_t begin, int64_t end) {
      visit(begin, end, [&](int64_t from, int64_t to, int64_t, int64_t count) {
        const CopyAxis& row = axes_.back();
        for (int64_t i = 0; i < count; ++i, from += row.source, to += row.target) {
          function(source + source_offset_ + from, target + target_offset_ + to, chunk_);
        }
      });
    });
  }
  // Whether `transform` may be called: copies that exchange axes have no contiguous pieces.
  bool transforms() const { return !blocks_; }
  // Whether source and target would be the same bytes.
  bool in_place(const uint8_t* source, const uint8_t* target) const;

 private:
  // Copies `count` pieces of `chunk` bytes.
  using Rows = void (*)(const uint8_t* source, int64_t source_stride, uint8_t* target, int64_t target_stride,
                        int64_t count, int64_t chunk);

  int64_t units() const;
  void choose();
  void run_blocks(const uint8_t* source, uint8_t* target, int64_t begin, int64_t end) const;

  // Shares [0, units) out among the pool's threads, when there are enough bytes to be worth it.
  template <class Function>
  void share(ThreadPool& pool, int64_t count, const Function& function) const {
    constexpr int64_t kTaskBytes = 32 << 10;
    if (count == 0) return;
    int64_t tasks = pool.threads() > 1 ? bytes_ / kTaskBytes : 1;
    tasks = cut(std::min<int64_t>(tasks, 4 * pool.threads()), bytes_, kTaskMostBytes, count);
    pool.parallel(tasks, [&](int64_t task, int) { function(count * task / tasks, count * (task + 1) / tasks); });
  }

  // function(source offset, target offset, first, count) for stretches [first, first + count) of the last axis that
  // together cover units [begin, end).
  template <class Function>
  void visit(int64_t begin, int64_t end, const Function& function) const {
    const int last = static_cast<int>(axes_.size()) - 1;
    int64_t index[kMostAxes], from = 0, to = 0, rest = begin;
    for (int a = last; a >= 0; --a) {
      index[a] = rest % axes_[a].dimension;
      rest /= axes_[a].dimension;
      from += index[a] * axes_[a].source;
      to += index[a] * axes_[a].target;
    }
    while (begin < end) {
      const int64_t left = axes_[last].dimension - index[last];
      const int64_t count = left < end - begin ? left : end - begin;
      function(from, to, index[last], count);
      begin += count;
      from -= index[last] * axes_[last].source;
      to -= index[last] * axes_[last].target;
      index[last] = 0;
      for (int a = last - 1; a >= 0; --a) {
        from += axes_[a].source;
        to += axes_[a].target;
        if (++index[a] < axes_[a].dimension) break;
        from -= axes_[a].dimension * axes_[a].source;
        to -= axes_[a].dimension * axes_[a].target;
        index[a] = 0;
      }
    }
  }

  static constexpr int kMostAxes = 64;

  std::vector<CopyAxis> axes_;  // merged; at least one unless the copy is empty
  int64_t chunk_ = 0;           // contiguous bytes on both sides
  int64_t source_offset_ = 0, target_offset_ = 0, bytes_ = 0;
  bool aligned_ = true;  // all strides agree
  Rows rows_ = nullptr;
  // For transpositions: two axes handled together in blocks, `across` contiguous in the source, the other in the target.
  bool blocks_ = false;
  CopyAxis across_{}, along_{};
};

// One axis of a copy into the middle of a larger target.
struct PaddedAxis {
  int64_t dimension;  // of the source
  int64_t before;     // elements of the target ahead of it
  int64_t padded;     // of the target
  int64_t source;     // strides in bytes
  int64_t target;
};

// A box inside a larger target; everything around it becomes one value.
class PaddedCopy {
 public:
  PaddedCopy(const std::vector<PaddedAxis>& axes, int64_t element, int64_t source_offset = 0,
             int64_t target_offset = 0);
  // `value` points to one element.
  void run(const uint8_t* source, const uint8_t* value, uint8_t* target, ThreadPool& pool) const;

 private:
  std::vector<StridedCopy> box_;  // one, or none when the box is empty
  std::vector<StridedCopy> border_;
};

// Stores `value` of the plan as one element of `type` in native memory (sizes of 1, 2, 4 and 8 bytes, and 0 in any).
// NoKernel for values that the type cannot hold.
void store_element(Type type, int64_t value, uint8_t* element);

// Bytes of the largest element type.
inline constexpr int kLargestElement = 16;

}  // namespace bittrue

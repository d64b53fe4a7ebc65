// Functions of real numbers that whole groups of 16 bytes compute in one way, and the rest of a tensor in another.
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "core/kernel.h"
#include "core/thread_pool.h"

namespace bittrue {

// Both functions: T operator()(T) const; the first one may take (from, to, count) instead.
template <class T, class Grouped, class Rest>
class GroupedMap final : public Kernel {
 public:
  GroupedMap(const Step& step, Grouped grouped, Rest rest)
      : grouped_(std::move(grouped)), rest_(std::move(rest)), count_(step.input(0).elements) {
    const Operand &in = step.input(0), &out = step.output();
    constexpr Type kType = std::is_same_v<T, double> ? Type::f64 : Type::f32;
    require(in.type == kType && out.type == kType && in.elements == out.elements && in.dense() && out.dense(),
            "no native kernel for these operands");
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const T*>(run.inputs[0]);
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    const int64_t all = count_ / kLanes * kLanes;
    run.pool.parallel((count_ + kBlock - 1) / kBlock, [&](int64_t block, int) {
      const int64_t end = std::min(count_, (block + 1) * kBlock), grouped = std::min(end, all);
      if constexpr (std::is_invocable_v<const Grouped&, const T*, T*, int64_t>) {
        const int64_t begin = block * kBlock;
        if (grouped > begin) grouped_(in + begin, out + begin, grouped - begin);
      } else {
        for (int64_t i = block * kBlock; i < grouped; ++i) out[i] = grouped_(in[i]);
      }
      for (int64_t i = grouped; i < end; ++i) out[i] = rest_(in[i]);
    });
  }

 private:
  static constexpr int64_t kLanes = 16 / sizeof(T), kBlock = 1024 * kLanes;

  Grouped grouped_;
  Rest rest_;
  int64_t count_;
};

template <class T = float, class Grouped, class Rest>
std::unique_ptr<Kernel> make_grouped_map(const Step& step, Grouped grouped, Rest rest) {
  return std::make_unique<GroupedMap<T, Grouped, Rest>>(step, std::move(grouped), std::move(rest));
}

}  // namespace bittrue

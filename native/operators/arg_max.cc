// arg_max and arg_min: the position of the first extreme value along one axis; numbers are beyond NaN.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/kernel.h"

namespace bittrue {
namespace {

// What is compared: integers in whose order the first largest is wanted.
template <class T, bool Largest>
inline auto key(T x) {
  if constexpr (std::is_same_v<T, float>) {
    // Negative numbers turn their bits round, so that integers order like the numbers; -0 equals +0; NaN is below all.
    int32_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    const int32_t size = bits & 0x7fffffff;
    int32_t ordered = bits < 0 ? -size : size;
    if (!Largest) ordered = -ordered;
    return size > 0x7f800000 ? std::numeric_limits<int32_t>::min() : ordered;
  } else {
    return static_cast<T>(Largest ? x : ~x);
  }
}

template <class T, bool Largest>
using Key = decltype(key<T, Largest>(T{}));

// The last axis, contiguous: the largest key, then its first place.
template <class T, bool Largest>
int64_t place_in_row(const T* row, int64_t extent) {
  using K = Key<T, Largest>;
  if (sizeof(T) == 1 && extent <= 256) {
    // Value and place in one number: the largest value, and of equal ones the first.
    int16_t best = std::numeric_limits<int16_t>::min();
    for (int64_t k = 0; k < extent; ++k) {
      const int joined = ((static_cast<int>(static_cast<uint8_t>(key<T, Largest>(row[k]))) - 128) * 256) + 255;
      const auto candidate = static_cast<int16_t>(joined - static_cast<int>(k));
      best = best < candidate ? candidate : best;
    }
    return 255 - (best & 255);
  }
  K best = key<T, Largest>(row[0]);
  for (int64_t k = 1; k < extent; ++k) {
    const K candidate = key<T, Largest>(row[k]);
    best = best < candidate ? candidate : best;
  }
  int64_t k = 0;
  while (key<T, Largest>(row[k]) != best) ++k;
  return k;
}

// `count` neighbouring positions of the inner axes, scanned together along the axis.
template <class T, bool Largest, class Position>
void places_beside(const T* x, int64_t extent, int64_t inner, int64_t count, Position* out) {
  constexpr int64_t kTogether = 256;
  Key<T, Largest> best[kTogether];
  for (int64_t i = 0; i < count; i += kTogether) {
    const int64_t some = std::min(kTogether, count - i);
    for (int64_t j = 0; j < some; ++j) best[j] = key<T, Largest>(x[i + j]), out[i + j] = 0;
    for (int64_t k = 1; k < extent; ++k) {
      const T* row = x + k * inner + i;
      for (int64_t j = 0; j < some; ++j) {
        const auto candidate = key<T, Largest>(row[j]);
        const bool better = best[j] < candidate;
        best[j] = better ? candidate : best[j];
        out[i + j] = better ? static_cast<Position>(k) : out[i + j];
      }
    }
  }
}

template <class T, bool Largest, class Position>
class ArgMax final : public Kernel {
 public:
  ArgMax(int64_t outer, int64_t extent, int64_t inner) : outer_(outer), extent_(extent), inner_(inner) {}

  void run(const Run& run) const override {
    const auto* x = reinterpret_cast<const T*>(run.inputs[0]);
    auto* out = reinterpret_cast<Position*>(run.outputs[0]);
    constexpr int64_t kTaskElements = 16 << 10;
    const int64_t places = outer_ * inner_;
    int64_t tasks = run.pool.threads() > 1 ? places * extent_ / kTaskElements : 1;
    tasks = std::max<int64_t>(1, std::min({tasks, places, int64_t{4} * run.pool.threads()}));
    run.pool.parallel(tasks, [&](int64_t task, int) {
      int64_t begin = places * task / tasks;
      const int64_t end = places * (task + 1) / tasks;
      if (inner_ == 1) {
        for (; begin < end; ++begin) {
          out[begin] = static_cast<Position>(place_in_row<T, Largest>(x + begin * extent_, extent_));
        }
        return;
      }
      while (begin < end) {
        const int64_t o = begin / inner_, i = begin % inner_, count = std::min(inner_ - i, end - begin);
        places_beside<T, Largest>(x + o * extent_ * inner_ + i, extent_, inner_, count, out + begin);
        begin += count;
      }
    });
  }
  bool packs(size_t input) const override { return input == 1; }

 private:
  int64_t outer_, extent_, inner_;
};

template <class T, bool Largest>
std::unique_ptr<Kernel> make(Type position, int64_t outer, int64_t extent, int64_t inner) {
  if (position == Type::s32) return std::make_unique<ArgMax<T, Largest, int32_t>>(outer, extent, inner);
  if (position == Type::s64) return std::make_unique<ArgMax<T, Largest, int64_t>>(outer, extent, inner);
  return nullptr;
}

template <bool Largest>
std::unique_ptr<Kernel> make_for(const Step& step) {
  const Operand &in = step.input(0), &out = step.output();
  require(in.rank() >= 1 && in.dense() && out.dense(), "both sides must be dense");
  const int64_t axis = step.integer("axis", 0, in.rank() - 1);
  int64_t outer = 1, inner = 1;
  for (int a = 0; a < in.rank(); ++a) {
    if (a < axis) outer *= in.shape[a];
    if (a > axis) inner *= in.shape[a];
  }
  const int64_t extent = in.shape[axis];
  require(extent >= 1 && extent <= std::numeric_limits<int32_t>::max() && outer * inner == out.elements,
          "the output's shape differs");
  switch (in.type) {
    case Type::s4: return make<int8_t, Largest>(out.type, outer, extent, inner);
    // 8-bit integers are kept unsigned, in the same order.
    case Type::s8:
    case Type::u8:
    case Type::boolean: return make<uint8_t, Largest>(out.type, outer, extent, inner);
    case Type::s16: return make<int16_t, Largest>(out.type, outer, extent, inner);
    case Type::s32: return make<int32_t, Largest>(out.type, outer, extent, inner);
    case Type::s64: return make<int64_t, Largest>(out.type, outer, extent, inner);
    case Type::f32: return make<float, Largest>(out.type, outer, extent, inner);
    default: return nullptr;
  }
}

}  // namespace

std::unique_ptr<Kernel> make_arg_max(const Step& step, const CoreSet&) { return make_for<true>(step); }

std::unique_ptr<Kernel> make_arg_min(const Step& step, const CoreSet&) { return make_for<false>(step); }

}  // namespace bittrue

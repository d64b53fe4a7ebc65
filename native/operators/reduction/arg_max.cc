// arg_max and arg_min: the position of the first extreme value along one axis; numbers are beyond NaN.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

// What is looked for, among integers or among binary32 numbers given by their bits.
enum class Order : uint8_t { largest, smallest, largest_binary32, smallest_binary32 };

// What is compared: integers of which the first largest is wanted.
template <Order kOrder, class T>
inline T key(T x) {
  if constexpr (kOrder == Order::largest) {
    return x;
  } else if constexpr (kOrder == Order::smallest) {
    return static_cast<T>(~x);
  } else {
    // Sign and magnitude become two's complement, so that integers order like the numbers; -0 equals +0; NaN is below
    // all of them.
    const int32_t size = x & 0x7fffffff, sign = x >> 31;
    const int32_t ordered = (size ^ sign) - sign;
    return size > 0x7f800000                   ? std::numeric_limits<int32_t>::min()
           : kOrder == Order::largest_binary32 ? ordered
                                               : -ordered;
  }
}

// Value and place of an 8-bit element in one number: the largest of them is the first place of the largest value.
// Domain: k <= 255.
template <Order kOrder, class T>
inline int16_t joined(T x, int64_t k) {
  return static_cast<int16_t>((static_cast<int>(static_cast<uint8_t>(key<kOrder>(x))) - 128) * 256 + 255 -
                              static_cast<int>(k));
}

inline int64_t place_of(int16_t joined) { return 255 - (joined & 255); }

// Whether `joined` orders the elements of one row: stored bytes are unsigned.
template <class T>
constexpr bool joins(int64_t dimension) {
  return std::is_same_v<T, uint8_t> && dimension <= 256;
}

// The last axis, contiguous: the largest key, then its first place.
template <Order kOrder, class T>
int64_t place_in_row(const T* row, int64_t dimension) {
  if (joins<T>(dimension)) {
    int16_t best = std::numeric_limits<int16_t>::min();
    for (int64_t k = 0; k < dimension; ++k) best = std::max(best, joined<kOrder>(row[k], k));
    return place_of(best);
  }
  T best = key<kOrder>(row[0]);
  for (int64_t k = 1; k < dimension; ++k) {
    const T candidate = key<kOrder>(row[k]);
    best = best < candidate ? candidate : best;
  }
  int64_t k = 0;
  while (key<kOrder>(row[k]) != best) ++k;
  return k;
}

// `count` neighbouring positions of the inner axes, scanned together along the axis.
template <Order kOrder, class T, class Position>
void places_beside(const T* x, int64_t dimension, int64_t inner, int64_t count, Position* out) {
  constexpr int64_t kTogether = 512;
  for (int64_t i = 0; i < count; i += kTogether) {
    const int64_t some = std::min(kTogether, count - i);
    if (joins<T>(dimension)) {
      int16_t best[kTogether];
      for (int64_t j = 0; j < some; ++j) best[j] = joined<kOrder>(x[i + j], 0);
      for (int64_t k = 1; k < dimension; ++k) {
        const T* row = x + k * inner + i;
        for (int64_t j = 0; j < some; ++j) best[j] = std::max(best[j], joined<kOrder>(row[j], k));
      }
      for (int64_t j = 0; j < some; ++j) out[i + j] = static_cast<Position>(place_of(best[j]));
      continue;
    }
    T best[kTogether];
    int32_t place[kTogether];
    for (int64_t j = 0; j < some; ++j) best[j] = key<kOrder>(x[i + j]), place[j] = 0;
    for (int64_t k = 1; k < dimension; ++k) {
      const T* row = x + k * inner + i;
      const auto here = static_cast<int32_t>(k);
      for (int64_t j = 0; j < some; ++j) {
        // Values, not references, so that both choices become blends.
        const T candidate = key<kOrder>(row[j]), old = best[j];
        const int32_t old_place = place[j];
        best[j] = old < candidate ? candidate : old;
        place[j] = old < candidate ? here : old_place;
      }
    }
    for (int64_t j = 0; j < some; ++j) out[i + j] = static_cast<Position>(place[j]);
  }
}

template <class T, Order kOrder, class Position>
class ArgMax final : public Kernel {
 public:
  ArgMax(int64_t outer, int64_t dimension, int64_t inner) : outer_(outer), dimension_(dimension), inner_(inner) {}

  void run(const Run& run) const override {
    const auto* x = reinterpret_cast<const T*>(run.inputs[0]);
    auto* out = reinterpret_cast<Position*>(run.outputs[0]);
    constexpr int64_t kTaskElements = 16 << 10;
    const int64_t places = outer_ * inner_;
    int64_t tasks = run.pool.threads() > 1 ? places * dimension_ / kTaskElements : 1;
    tasks = cut(std::min<int64_t>(tasks, 4 * run.pool.threads()), places * dimension_, kTaskMostBytes, places);
    run.pool.parallel(tasks, [&](int64_t task, int) {
      int64_t begin = places * task / tasks;
      const int64_t end = places * (task + 1) / tasks;
      if (inner_ == 1) {
        for (; begin < end; ++begin) {
          out[begin] = static_cast<Position>(place_in_row<kOrder>(x + begin * dimension_, dimension_));
        }
        return;
      }
      while (begin < end) {
        const int64_t o = begin / inner_, i = begin % inner_, count = std::min(inner_ - i, end - begin);
        places_beside<kOrder>(x + o * dimension_ * inner_ + i, dimension_, inner_, count, out + begin);
        begin += count;
      }
    });
  }
  bool packs(size_t input) const override { return input == 1; }

 private:
  int64_t outer_, dimension_, inner_;
};

template <class T, Order kOrder>
std::unique_ptr<Kernel> make(Type position, int64_t outer, int64_t dimension, int64_t inner) {
  if (position == Type::s32) return std::make_unique<ArgMax<T, kOrder, int32_t>>(outer, dimension, inner);
  if (position == Type::s64) return std::make_unique<ArgMax<T, kOrder, int64_t>>(outer, dimension, inner);
  return nullptr;
}

template <Order kIntegers, Order kBinary32>
std::unique_ptr<Kernel> make_for(const Step& step) {
  require(step.integer("last", 0, 1) == 0, "no native kernel for the last of equal values");
  const Operand &in = step.input(0), &out = step.output();
  require(in.rank() >= 1 && in.dense() && out.dense(), "both sides must be dense");
  const int64_t axis = step.integer("axis", 0, in.rank() - 1);
  int64_t outer = 1, inner = 1;
  for (int a = 0; a < in.rank(); ++a) {
    if (a < axis) outer *= in.shape[a];
    if (a > axis) inner *= in.shape[a];
  }
  const int64_t dimension = in.shape[axis];
  require(dimension >= 1 && dimension <= std::numeric_limits<int32_t>::max() && outer * inner == out.elements,
          "the output's shape differs");
  switch (in.type) {
    case Type::s2:
    case Type::s4: return make<int8_t, kIntegers>(out.type, outer, dimension, inner);
    // 8-bit integers are kept unsigned, in the same order.
    case Type::s8:
    case Type::u8: return make<uint8_t, kIntegers>(out.type, outer, dimension, inner);
    case Type::s16: return make<int16_t, kIntegers>(out.type, outer, dimension, inner);
    case Type::s32: return make<int32_t, kIntegers>(out.type, outer, dimension, inner);
    case Type::s64: return make<int64_t, kIntegers>(out.type, outer, dimension, inner);
    case Type::f32: return make<int32_t, kBinary32>(out.type, outer, dimension, inner);
    default: return nullptr;
  }
}

}  // namespace

std::unique_ptr<Kernel> make_arg_max(const Step& step, const CoreSet&) {
  return make_for<Order::largest, Order::largest_binary32>(step);
}

std::unique_ptr<Kernel> make_arg_min(const Step& step, const CoreSet&) {
  return make_for<Order::smallest, Order::smallest_binary32>(step);
}

BITTRUE_OPERATOR(arg_max, make_arg_max)
BITTRUE_OPERATOR(arg_min, make_arg_min)

}  // namespace bittrue

// arg_max and arg_min: the position of the first extreme value along one axis; numbers are beyond NaN.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/interleave.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

// What is looked for, among integers or among real numbers given by their bits.
enum class ExtremeOrder : uint8_t { largest, smallest, largest_real, smallest_real };

// What is compared: integers of which the first largest is wanted.
template <ExtremeOrder kOrder, class T>
inline T key(T x) {
  if constexpr (kOrder == ExtremeOrder::largest) {
    return x;
  } else if constexpr (kOrder == ExtremeOrder::smallest) {
    return static_cast<T>(~x);
  } else {
    // Sign and magnitude become two's complement, so that integers order like the numbers; -0 equals +0; NaN is below
    // all of them.
    constexpr T kInfinity = sizeof(T) == 4 ? T{0x7f800000} : static_cast<T>(0x7ff0000000000000);
    const T size = x & std::numeric_limits<T>::max(), sign = x >> (8 * sizeof(T) - 1);
    const T ordered = (size ^ sign) - sign;
    return size > kInfinity ? std::numeric_limits<T>::min() : kOrder == ExtremeOrder::largest_real ? ordered : -ordered;
  }
}

// Value and place of an 8-bit element in one number: the largest of them is the first place of the largest value.
// Domain: k <= 255.
template <ExtremeOrder kOrder, class T>
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

// The same of four binary32 numbers, whose keys compilers would not make in vectors by themselves.
using Four = int32_t __attribute__((vector_size(16)));
template <ExtremeOrder kOrder>
inline Four keys(const int32_t* from) {
  Four x;
  std::memcpy(&x, from, sizeof x);
  const Four size = x & 0x7fffffff, sign = x >> 31, ordered = (size ^ sign) - sign, missing = size > 0x7f800000;
  const Four turned = kOrder == ExtremeOrder::largest_real ? ordered : -ordered;
  return (turned & ~missing) | (std::numeric_limits<int32_t>::min() & missing);
}

template <ExtremeOrder kOrder>
int64_t place_of_number(const int32_t* row, int64_t dimension) {
  constexpr int64_t kTwo = 8;
  int32_t best = key<kOrder>(row[0]);
  int64_t k = 0;
  if (dimension >= kTwo) {
    Four first = keys<kOrder>(row), second = keys<kOrder>(row + 4);
    for (k = kTwo; k + kTwo <= dimension; k += kTwo) {
      const Four one = keys<kOrder>(row + k), two = keys<kOrder>(row + k + 4);
      first = first < one ? one : first;
      second = second < two ? two : second;
    }
    first = first < second ? second : first;
    for (int lane = 0; lane < 4; ++lane) best = std::max(best, first[lane]);
  }
  for (; k < dimension; ++k) best = std::max(best, key<kOrder>(row[k]));
  // What does not have it is passed over.
  for (k = 0; k + kTwo <= dimension; k += kTwo) {
    const Four found = (keys<kOrder>(row + k) == best) | (keys<kOrder>(row + k + 4) == best);
    uint64_t halves[2];
    std::memcpy(halves, &found, sizeof found);
    if ((halves[0] | halves[1]) != 0) break;
  }
  while (key<kOrder>(row[k]) != best) ++k;
  return k;
}

// The same of binary64 numbers, which are compared as such: vectors of integers of 64 bits are not, on many machines.
template <ExtremeOrder kOrder>
int64_t place_of_number(const int64_t* row, int64_t dimension) {
  using Two = double __attribute__((vector_size(16)));
  constexpr bool kLargest = kOrder == ExtremeOrder::largest_real;
  constexpr double kLast =
      kLargest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  constexpr int kVectors = 4, kAtOnce = 2 * kVectors;
  const auto number = [row](int64_t k) {
    double x;
    std::memcpy(&x, row + k, sizeof x);
    return x;
  };
  const auto better = [](double x, double best) { return kLargest ? x > best : x < best; };
  Two lanes[kVectors];
  for (Two& lane : lanes) lane = kLast - Two{};
  int64_t k = 0;
  for (; k + kAtOnce <= dimension; k += kAtOnce) {
    for (int v = 0; v < kVectors; ++v) {
      Two x;
      std::memcpy(&x, row + k + 2 * v, sizeof x);
      lanes[v] = (kLargest ? x > lanes[v] : x < lanes[v]) ? x : lanes[v];
    }
  }
  double best = kLast;
  for (const Two& lane : lanes) {
    for (int i = 0; i < 2; ++i) best = better(lane[i], best) ? lane[i] : best;
  }
  for (; k < dimension; ++k) best = better(number(k), best) ? number(k) : best;
  for (k = 0; k < dimension; ++k) {
    if (number(k) == best) return k;
  }
  return 0;  // all of them are NaN
}

// The last axis, contiguous: the largest key, then its first place.
template <ExtremeOrder kOrder, class T>
int64_t place_in_row(const T* row, int64_t dimension) {
  if constexpr ((std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>) && kOrder >= ExtremeOrder::largest_real) {
    return place_of_number<kOrder>(row, dimension);
  }
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

constexpr int64_t kTogether = 512;

// Eight rows of bytes at a time: vectors of joined numbers of each row, of which every step leaves half as many.
using Joined = int16_t __attribute__((vector_size(16)));

inline Joined larger(Joined a, Joined b) { return a > b ? a : b; }

// The larger ones of neighbours, first of `a`, then of `b`, in groups of as many as a Group holds.
template <class Group>
inline Joined larger_halves(Joined a, Joined b) {
  const auto x = reinterpret_cast<Group>(a), y = reinterpret_cast<Group>(b);
  return larger(reinterpret_cast<Joined>(interleave_low(x, y)), reinterpret_cast<Joined>(interleave_high(x, y)));
}

// Rows have at least 16 elements; chunks of 16 go as far as they do, so that the last two may overlap.
template <ExtremeOrder kOrder>
class EightRows {
 public:
  explicit EightRows(int64_t dimension) : dimension_(dimension) {
    for (int64_t first = 0; first < dimension; first += 16, ++chunks_) {
      for (int64_t i = 0; i < 16; ++i) {
        places_[chunks_][i] = static_cast<uint8_t>(255 - std::min(first, dimension - 16) - i);
      }
    }
  }

  void find(const uint8_t* rows, int32_t* place) const {
    Joined best[8];
    for (int r = 0; r < 8; ++r, rows += dimension_) best[r] = in_row(rows);
    for (int r = 0; r < 8; r += 2) best[r] = larger_halves<Vector16>(best[r], best[r + 1]);
    for (int r = 0; r < 8; r += 4) best[r] = larger_halves<Vector32>(best[r], best[r + 2]);
    best[0] = larger_halves<Vector64>(best[0], best[4]);
    for (int r = 0; r < 8; ++r) place[r] = static_cast<int32_t>(place_of(best[0][r]));
  }

 private:
  Joined in_row(const uint8_t* row) const {
    Joined best = chunk(row, 0);
    for (int64_t c = 1; c < chunks_; ++c) best = larger(best, chunk(row + std::min(16 * c, dimension_ - 16), c));
    return best;
  }
  Joined chunk(const uint8_t* from, int64_t index) const {
    Vector8 bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    bytes ^= static_cast<uint8_t>(key<kOrder>(uint8_t{0}) ^ 128);
    const Vector8 places = places_[index];
    return larger(reinterpret_cast<Joined>(interleave_low(places, bytes)),
                  reinterpret_cast<Joined>(interleave_high(places, bytes)));
  }

  int64_t dimension_, chunks_ = 0;
  Vector8 places_[16];
};

// The places in `count` rows, at most kTogether, that lie one after the other.
template <class T, ExtremeOrder kOrder>
void places_in_rows(const uint8_t* x, int64_t dimension, int64_t, int64_t count, int32_t* place) {
  const auto* row = reinterpret_cast<const T*>(x);
  int64_t r = 0;
  if constexpr (std::is_same_v<T, uint8_t>) {
    if (joins<T>(dimension) && dimension >= 16) {
      const EightRows<kOrder> rows(dimension);
      for (; r + 8 <= count; r += 8, row += 8 * dimension) rows.find(row, place + r);
    }
  }
  for (; r < count; ++r, row += dimension) place[r] = static_cast<int32_t>(place_in_row<kOrder>(row, dimension));
}

// The same for `count` neighbouring positions of the inner axes, scanned together along the axis.
template <class T, ExtremeOrder kOrder>
void places_beside(const uint8_t* x, int64_t dimension, int64_t inner, int64_t count, int32_t* place) {
  const auto* row = reinterpret_cast<const T*>(x);
  if (joins<T>(dimension)) {
    int16_t best[kTogether];
    for (int64_t j = 0; j < count; ++j) best[j] = joined<kOrder>(row[j], 0);
    for (int64_t k = 1; k < dimension; ++k) {
      row += inner;
      for (int64_t j = 0; j < count; ++j) best[j] = std::max(best[j], joined<kOrder>(row[j], k));
    }
    for (int64_t j = 0; j < count; ++j) place[j] = static_cast<int32_t>(place_of(best[j]));
    return;
  }
  T best[kTogether];
  for (int64_t j = 0; j < count; ++j) best[j] = key<kOrder>(row[j]), place[j] = 0;
  for (int64_t k = 1; k < dimension; ++k) {
    row += inner;
    const auto here = static_cast<int32_t>(k);
    for (int64_t j = 0; j < count; ++j) {
      // Values, not references, so that both choices become blends.
      const T candidate = key<kOrder>(row[j]), old = best[j];
      const int32_t old_place = place[j];
      best[j] = old < candidate ? candidate : old;
      place[j] = old < candidate ? here : old_place;
    }
  }
}

// The last place of equal values, in rows or beside each other.
template <class T, ExtremeOrder kOrder>
void last_places(const uint8_t* x, int64_t dimension, int64_t inner, int64_t count, int32_t* place) {
  const auto* row = reinterpret_cast<const T*>(x);
  T best[kTogether];
  for (int64_t j = 0; inner == 1 && j < count; ++j, row += dimension) {
    T largest = key<kOrder>(row[0]);
    for (int64_t k = 1; k < dimension; ++k) largest = std::max(largest, key<kOrder>(row[k]));
    int64_t at = dimension - 1;
    while (key<kOrder>(row[at]) != largest) --at;
    place[j] = static_cast<int32_t>(at);
  }
  if (inner == 1) return;
  for (int64_t j = 0; j < count; ++j) best[j] = key<kOrder>(row[j]), place[j] = 0;
  for (int64_t k = 1; k < dimension; ++k) {
    row += inner;
    for (int64_t j = 0; j < count; ++j) {
      const T candidate = key<kOrder>(row[j]), old = best[j];
      const int32_t old_place = place[j];
      best[j] = candidate < old ? old : candidate;
      place[j] = candidate < old ? old_place : static_cast<int32_t>(k);
    }
  }
}

using PlacesOfRows = void (*)(const uint8_t* x, int64_t dimension, int64_t inner, int64_t count, int32_t* place);

// Which NaNs stand before all numbers: none, one that is the first element, or the first one.
enum class StayingNan : uint8_t { none, first, any };

class ArgMax final : public Kernel {
 public:
  ArgMax(PlacesOfRows places, int64_t item, bool wide, int64_t outer, int64_t dimension, int64_t inner, bool before,
         StayingNan staying)
      : places_(places),
        item_(item),
        wide_(wide),
        before_(before),
        staying_(staying),
        outer_(outer),
        dimension_(dimension),
        inner_(inner) {}

  void run(const Run& run) const override {
    constexpr int64_t kTaskElements = 16 << 10;
    const int64_t places = outer_ * inner_;
    int64_t tasks = run.pool.threads() > 1 ? places * dimension_ / kTaskElements : 1;
    tasks = cut(std::min<int64_t>(tasks, 4 * run.pool.threads()), places * dimension_, kTaskMostBytes, places);
    run.pool.parallel(tasks, [&](int64_t task, int) {
      const int64_t end = places * (task + 1) / tasks;
      for (int64_t begin = places * task / tasks; begin < end;) {
        const int64_t o = begin / inner_, i = begin % inner_;
        int64_t count = std::min(kTogether, end - begin);
        if (inner_ > 1) count = std::min(count, inner_ - i);
        int32_t place[kTogether];
        const uint8_t* x = run.inputs[0] + (o * dimension_ * inner_ + i) * item_;
        places_(x, dimension_, inner_, count, place);
        // Nothing is beyond the smallest value, which stands before the first element.
        for (int64_t j = 0; before_ && j < count; ++j) {
          if (place[j] == 0 && is_smallest(x + j * (inner_ == 1 ? dimension_ : 1) * item_)) place[j] = -1;
        }
        for (int64_t j = 0; staying_ != StayingNan::none && j < count; ++j) {
          const uint8_t* row = x + j * (inner_ == 1 ? dimension_ : 1) * item_;
          const int64_t looked_at = staying_ == StayingNan::any ? dimension_ : 1;
          for (int64_t k = 0; k < looked_at; ++k) {
            const uint8_t* element = row + k * inner_ * item_;
            if (item_ == 4 ? std::isnan(*reinterpret_cast<const float*>(element))
                           : std::isnan(*reinterpret_cast<const double*>(element))) {
              place[j] = static_cast<int32_t>(k);
              break;
            }
          }
        }
        if (wide_) {
          std::copy_n(place, count, reinterpret_cast<int64_t*>(run.outputs[0]) + begin);
        } else {
          std::copy_n(place, count, reinterpret_cast<int32_t*>(run.outputs[0]) + begin);
        }
        begin += count;
      }
    });
  }
  bool packs(size_t input) const override { return input == 1; }

 private:
  // Of 8 bits, which are kept unsigned, or 16.
  bool is_smallest(const uint8_t* x) const {
    return item_ == 1 ? *x == 0 : *reinterpret_cast<const int16_t*>(x) == std::numeric_limits<int16_t>::min();
  }

  PlacesOfRows places_;
  int64_t item_;  // bytes
  bool wide_, before_;
  StayingNan staying_;
  int64_t outer_, dimension_, inner_;
};

template <class T, ExtremeOrder kOrder>
std::unique_ptr<Kernel> make(const Step& step, int64_t outer, int64_t dimension, int64_t inner, bool before = false,
                             StayingNan staying = StayingNan::none) {
  const Type position = step.output().type;
  if (position != Type::s32 && position != Type::s64) return nullptr;
  const PlacesOfRows places = step.integer("last", 0, 1) != 0 ? last_places<T, kOrder>
                              : inner == 1                    ? places_in_rows<T, kOrder>
                                                              : places_beside<T, kOrder>;
  return std::make_unique<ArgMax>(places, sizeof(T), position == Type::s64, outer, dimension, inner, before, staying);
}

StayingNan staying_nan(const Step& step) {
  if (step.texts.count("staying_nan") == 0) return StayingNan::none;
  const std::string& name = step.text("staying_nan");
  require(name == "first" || name == "any", "unknown NaNs");
  return name == "any" ? StayingNan::any : StayingNan::first;
}

template <ExtremeOrder kIntegers, ExtremeOrder kReals>
std::unique_ptr<Kernel> make_for(const Step& step) {
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
  const bool before = step.rules.count("start") != 0;
  require(!before || (step.rule("start") == "before_first" && kIntegers == ExtremeOrder::largest &&
                      (is_8bit(in.type) || in.type == Type::s16)),
          "no native rule for this slot");
  switch (in.type) {
    case Type::s2:
    case Type::s4: return make<int8_t, kIntegers>(step, outer, dimension, inner);
    // 8-bit integers are kept unsigned, in the same order.
    case Type::s8:
    case Type::u8: return make<uint8_t, kIntegers>(step, outer, dimension, inner, before);
    case Type::s16: return make<int16_t, kIntegers>(step, outer, dimension, inner, before);
    case Type::s32: return make<int32_t, kIntegers>(step, outer, dimension, inner);
    case Type::s64: return make<int64_t, kIntegers>(step, outer, dimension, inner);
    case Type::f32: return make<int32_t, kReals>(step, outer, dimension, inner, false, staying_nan(step));
    case Type::f64: return make<int64_t, kReals>(step, outer, dimension, inner, false, staying_nan(step));
    default: return nullptr;
  }
}

std::unique_ptr<Kernel> make_arg_max(const Step& step, const CoreSet&) {
  return make_for<ExtremeOrder::largest, ExtremeOrder::largest_real>(step);
}

std::unique_ptr<Kernel> make_arg_min(const Step& step, const CoreSet&) {
  return make_for<ExtremeOrder::smallest, ExtremeOrder::smallest_real>(step);
}

BITTRUE_OPERATOR(arg_max, make_arg_max)
BITTRUE_OPERATOR(arg_min, make_arg_min)

}  // namespace
}  // namespace bittrue

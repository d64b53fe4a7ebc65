// reduce_max, reduce_min and reduce_prod; the walk that sums share with them.
#include "operators/reduction/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "operators/core/registry.h"
#include "operators/reduction/real_rows.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

// Only what is strictly beyond replaces: NaN never does, and a NaN at the beginning stays.
template <class T>
struct Largest {
  static constexpr bool kLargest = true;
  T start = std::numeric_limits<T>::lowest();
  T operator()(T kept, T x) const { return x > kept ? x : kept; }
};

template <class T>
struct Smallest {
  static constexpr bool kLargest = false;
  T start = std::numeric_limits<T>::max();
  T operator()(T kept, T x) const { return x < kept ? x : kept; }
};

// The largest integer, and with `flip` -1 the smallest one, whose flipped bits are the largest.
template <class T>
struct Extreme {
  static constexpr bool kInteger = true;
  explicit Extreme(bool largest)
      : flip(static_cast<T>(largest ? 0 : -1)), start(static_cast<T>(std::numeric_limits<T>::lowest() ^ flip)) {}
  T operator()(T kept, T x) const { return (x ^ flip) > (kept ^ flip) ? x : kept; }
  T flip, start;
};

// last_unless_beyond: what is kept must be strictly beyond the next value, or that value replaces it, NaN included.
template <class T>
struct LastLargest {
  static constexpr bool kLargest = true;
  T start = std::numeric_limits<T>::lowest();
  T operator()(T kept, T x) const { return kept > x ? kept : x; }
};

template <class T>
struct LastSmallest {
  static constexpr bool kLargest = false;
  T start = std::numeric_limits<T>::max();
  T operator()(T kept, T x) const { return kept < x ? kept : x; }
};

// parts_in_16_lanes, parts_in_8_lanes: what `kept` becomes by neighbours of one output.
template <int64_t kLanes, class Operation>
float in_lanes(const Operation& operation, float kept, const float* x, int64_t length) {
  constexpr int64_t kVectors = 4 * kLanes;
  int64_t i = 0;
  if (length < kLanes) {  // all lanes are the same
    for (; i < length; ++i) kept = operation(kept, x[i]);
    return kept;
  }
  float lanes[kVectors];
  std::fill(lanes, lanes + kVectors, kept);
  for (; i + kVectors <= length; i += kVectors) {
    for (int64_t k = 0; k < kVectors; ++k) lanes[k] = operation(lanes[k], x[i + k]);
  }
  for (int64_t k = 0; k < kLanes; ++k) {
    lanes[k] =
        operation(operation(lanes[k], lanes[kLanes + k]), operation(lanes[2 * kLanes + k], lanes[3 * kLanes + k]));
  }
  for (; i + kLanes <= length; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] = operation(lanes[k], x[i + k]);
  }
  for (; i < length; ++i) {
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] = operation(lanes[k], x[i]);
  }
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t k = 0; k < half; ++k) lanes[k] = operation(lanes[k], lanes[k + half]);
  }
  return lanes[0];
}

// nan_else_first: a NaN stays, and replaces what is none; of equal values the first one stays.
template <class T>
struct FirstLargest {
  static constexpr bool kLargest = true;
  T start = std::numeric_limits<T>::lowest();
  T operator()(T kept, T x) const { return kept == kept && !(x <= kept) ? x : kept; }
};

template <class T>
struct FirstSmallest {
  static constexpr bool kLargest = false;
  T start = std::numeric_limits<T>::max();
  T operator()(T kept, T x) const { return kept == kept && !(x >= kept) ? x : kept; }
};

// rows_nan_else_by_signs: the first NaN, made quiet; of two zeros the one whose sign is beyond the other's.
template <class T, bool kLargestOnes>
struct BySigns {
  static constexpr bool kLargest = kLargestOnes, kBeginsAtEnd = true;
  T start = (kLargest ? -1 : 1) * std::numeric_limits<T>::infinity();
  T operator()(T kept, T x) const {
    if (kept != kept) return kept;
    if (x != x) return x + x;
    if (x == kept) return std::signbit(x) == kLargest ? kept : x;
    return (x > kept) == kLargest ? x : kept;
  }
};

template <class Operation, class = void>
constexpr bool kNeverFromFirst = false;
template <class Operation>
constexpr bool kNeverFromFirst<Operation, std::void_t<decltype(Operation::kBeginsAtEnd)>> = true;

// Integers wrap.
template <class T>
struct Product {
  T start = T(1);
  T operator()(T kept, T x) const {
    if constexpr (std::is_same_v<T, float>) return rules::keep_first_nan(kept * x, kept, x);
    return kept * x;
  }
};

// Any or all, bit by bit: what a byte other than 0 and 1 becomes shows.
struct ReducedTruth {
  explicit ReducedTruth(bool any) : flip(any ? 0 : 0xFF), start(any ? 0 : 1) {}
  uint8_t operator()(uint8_t kept, uint8_t x) const {
    return static_cast<uint8_t>(((kept ^ flip) | (x ^ flip)) ^ flip);
  }
  uint8_t flip, start;
};

// Whether an operation keeps an extreme number, by whatever rule for NaN and zeros.
template <class Operation, class = void>
constexpr bool kKeepsExtreme = false;
template <class Operation>
constexpr bool kKeepsExtreme<Operation, std::void_t<decltype(Operation::kLargest)>> = true;

// What `kept` becomes by neighbours of one output: without NaN, an extreme that is no zero has the same bits in any order;
// else it is what `in_order(kept)` gives.
template <class Operation, class T, class InOrder>
T extreme_of_row(T kept, const T* x, int64_t length, const InOrder& in_order) {
  using Mark = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int64_t kLanes = 128 / sizeof(T);
  const auto beyond = [](T a, T b) { return Operation::kLargest ? a > b : a < b; };
  T lanes[kLanes];
  Mark odd[kLanes] = {}, any = 0;
  std::fill(lanes, lanes + kLanes, kept);
  int64_t i = 0;
  for (; i + kLanes <= length; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) {
      const T next = x[i + k], lane = lanes[k];
      odd[k] |= next != next;
      lanes[k] = beyond(next, lane) ? next : lane;
    }
  }
  T found = kept;
  for (; i < length; ++i) {
    any |= x[i] != x[i];
    found = beyond(x[i], found) ? x[i] : found;
  }
  for (int64_t k = 0; k < kLanes; ++k) {
    any |= odd[k];
    found = beyond(lanes[k], found) ? lanes[k] : found;
  }
  return any == 0 && found != 0 ? found : in_order(kept);
}

// The same of integers, in any order.
template <class T>
T extreme_of_row(const Extreme<T>& extreme, const T* x, int64_t length) {
  constexpr int64_t kLanes = 64 / sizeof(T);
  const T flip = extreme.flip;
  T lanes[kLanes], found = static_cast<T>(x[0] ^ flip);
  std::fill(lanes, lanes + kLanes, found);
  int64_t i = 0;
  for (; i + kLanes <= length; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) {
      const T next = static_cast<T>(x[i + k] ^ flip), lane = lanes[k];
      lanes[k] = next > lane ? next : lane;
    }
  }
  for (; i < length; ++i) found = std::max(found, static_cast<T>(x[i] ^ flip));
  for (int64_t k = 0; k < kLanes; ++k) found = std::max(found, lanes[k]);
  return static_cast<T>(found ^ flip);
}

template <class Operation, class = void>
constexpr bool kIntegerExtreme = false;
template <class Operation>
constexpr bool kIntegerExtreme<Operation, std::void_t<decltype(Operation::kInteger)>> = true;

constexpr int64_t kShortestRow = 64;      // that is worth lanes
constexpr int64_t kLongestRow = 1 << 20;  // that no run has to be stopped in

template <class T, class Operation>
class Reduce final : public Kernel {
 public:
  // `from_first`: a reduction of everything begins with the first element; with the slot `start`, every reduction does.
  Reduce(const Step& step, bool from_first, Operation operation = Operation())
      : reduction_(step),
        operation_(operation),
        from_first_(!kNeverFromFirst<Operation> &&
                    (step.rules.count("start") || step.rules.count("extreme") || (from_first && reduction_.whole()))) {
    require(!step.rules.count("start") || step.rule("start") == "first_element", "no native rule for this slot");
    require(step.input(0).type == step.output().type && type_bytes(step.input(0).type) == sizeof(T),
            "no native kernel for these types");
  }

  void run(const Run& run) const override {
    const int64_t length = reduction_.count();
    const bool by_rows = reduction_.rows() && length >= kShortestRow && length <= kLongestRow;
    if constexpr (kIntegerExtreme<Operation>) {
      if (by_rows) {
        reduction_.run_parts(run, length, operation_.start,
                             [&](T, const T* x) { return extreme_of_row(operation_, x, length); });
        return;
      }
    }
    if constexpr (kKeepsExtreme<Operation>) {
      if (by_rows) {
        reduction_.run_parts(run, length, operation_.start, [&](T start, const T* x) {
          return extreme_of_row<Operation>(from_first_ ? x[0] : start, x, length, [&](T kept) {
            for (int64_t i = 0; i < length; ++i) kept = operation_(kept, x[i]);
            return kept;
          });
        });
        return;
      }
    }
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    reduction_.run<T, T>(run, operation_, from_first_,
                         [&](const T* acc, int64_t first, int64_t size) { std::copy(acc, acc + size, out + first); });
  }
  int64_t scratch_bytes(int threads) const override { return reduction_.scratch_bytes(threads); }

 private:
  Reduction reduction_;
  Operation operation_;
  bool from_first_;
};

// packets_first_unless_beyond: rows of neighbours, runs of them apart, or columns.
template <class T, class Operation>
class PacketExtremes final : public Kernel {
 public:
  explicit PacketExtremes(const Step& step) {
    const Operand& in = step.input(0);
    const std::vector<int64_t>& sizes = step.list("sizes");
    const std::string& way = step.text("way");
    require(in.type == step.output().type && in.dense() && step.output().dense(), "no native kernel for these types");
    columns_ = way == "columns";
    if (way == "rows") {
      require(sizes.size() == 1 || sizes.size() == 2, "rows have one or two sizes");
      length_ = sizes.back();
      if (sizes.size() == 2) kept_ = sizes[0];
      single_ = true;
    } else {
      require((columns_ || way == "runs") && sizes.size() == 3, "no native form");
      (columns_ ? kept_ : runs_) = sizes[0];
      (columns_ ? runs_ : kept_) = sizes[1];
      length_ = sizes[2];
    }
    for (const int64_t size : sizes) require(size > 0, "there is nothing to reduce");
    require(length_ <= kLongestRow, "rows are too long");
    require(total(sizes) == in.elements && step.output().elements == (columns_ ? kept_ * length_ : kept_),
            "sizes do not fit the tensors");
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const T*>(run.inputs[0]);
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    const int64_t chunk = std::max<int64_t>(1, kChunk / (runs_ * length_)), tasks = (kept_ + chunk - 1) / chunk;
    const int threads = kept_ * runs_ * length_ < kAlone ? 1 : run.pool.threads();
    run.pool.parallel(tasks, threads, [&](int64_t task, int worker) {
      for (int64_t k = task * chunk; k < std::min(kept_, (task + 1) * chunk); ++k) {
        if (columns_) {
          column(run, worker, in + k * runs_ * length_, out + k * length_, k * length_);
        } else {
          out[k] = single_ ? of_run(in + k * length_, k * length_) : of_runs(run, worker, in, k);
        }
      }
    });
  }

 private:
  static constexpr int64_t kAlone = 100000, kChunk = 4096, kLanes = 16 / sizeof(T);

  T of_runs(const Run& run, int worker, const T* in, int64_t k) const {
    T kept = in[k * length_];
    for (int64_t r = 0; r < runs_; ++r) {
      run.check(worker);
      const int64_t begin = (r * kept_ + k) * length_;
      kept = operation_(kept, of_run(in + begin, begin));
    }
    return kept;
  }

  static int64_t total(const std::vector<int64_t>& sizes) {
    int64_t product = 1;
    for (const int64_t size : sizes) {
      require(product <= std::numeric_limits<int64_t>::max() / size, "sizes are too large");
      product *= size;
    }
    return product;
  }

  T of_run(const T* x, int64_t start) const {
    const auto in_packets = [&](T) { return packet_fold([&](int64_t i) { return x[i]; }, length_, start, operation_); };
    return length_ < kShortestRow ? in_packets(0) : extreme_of_row<Operation>(x[0], x, length_, in_packets);
  }

  // One result for each of `length_` neighbours, which are `start` elements behind a boundary.
  void column(const Run& run, int worker, const T* x, T* out, int64_t start) const {
    const int64_t first = std::min<int64_t>((kLanes - start % kLanes) % kLanes, length_);
    const int64_t last = first + (length_ - first) / kLanes * kLanes;
    std::copy(x, x + length_, out);
    int64_t r = 1;
    for (; r + 4 <= runs_; r += 4) {
      run.check(worker);
      const T* row = x + r * length_;
      for (int64_t i = first; i < last; ++i) {
        const T low = operation_(row[i], row[i + length_]);
        const T high = operation_(row[i + 2 * length_], row[i + 3 * length_]);
        out[i] = operation_(out[i], operation_(low, high));
      }
      for (int64_t j = 0; j < 4; ++j) {
        for (int64_t i = 0; i < first; ++i) out[i] = operation_(out[i], row[j * length_ + i]);
        for (int64_t i = last; i < length_; ++i) out[i] = operation_(out[i], row[j * length_ + i]);
      }
    }
    for (; r < runs_; ++r) {
      for (int64_t i = 0; i < length_; ++i) out[i] = operation_(out[i], x[r * length_ + i]);
    }
  }

  Operation operation_;
  bool columns_ = false, single_ = false;
  int64_t kept_ = 1, runs_ = 1, length_ = 1;
};

// The last axes, up to one that is kept, lie side by side: a part.
template <int64_t kLanes, class Operation>
class PartExtremes final : public Kernel {
 public:
  PartExtremes(const Step& step, int64_t length) : reduction_(step), length_(length) {
    require(step.input(0).type == step.output().type, "no native kernel for these types");
  }

  void run(const Run& run) const override {
    const Operation operation;
    const float infinity = std::numeric_limits<float>::infinity();
    reduction_.run_parts(run, length_, operation.start < 0 ? -infinity : infinity,
                         [&](float kept, const float* x) { return in_lanes<kLanes>(operation, kept, x, length_); });
  }

 private:
  Reduction reduction_;
  int64_t length_;
};

template <int64_t kLanes, class Operation>
std::unique_ptr<Kernel> make_part_extremes(const Step& step) {
  const int64_t length = neighbours(step);
  // An element after the other is the same chain.
  if (length == 1) return std::make_unique<Reduce<float, Operation>>(step, true);
  return std::make_unique<PartExtremes<kLanes, Operation>>(step, length);
}

template <class T>
std::unique_ptr<Kernel> make_integer_extreme(const Step& step, bool largest) {
  return std::make_unique<Reduce<T, Extreme<T>>>(step, false, Extreme<T>(largest));
}

template <class T, template <class> class Operation, template <class> class Last, template <class> class First>
std::unique_ptr<Kernel> make_real_extreme(const Step& step) {
  // A reduction of everything begins with the first element.
  if (step.rules.count("extreme") == 0) return std::make_unique<Reduce<T, Operation<T>>>(step, true);
  const std::string& rule = step.rule("extreme");
  if (rule == "nan_else_first") return std::make_unique<Reduce<T, First<T>>>(step, true);
  if (rule == "rows_nan_else_by_signs") return std::make_unique<Reduce<T, BySigns<T, First<T>::kLargest>>>(step, false);
  if (rule == "packets_first_unless_beyond") {
    // Fewer neighbours than a packet has, and rows in order, are a chain from the first element on.
    const std::vector<int64_t>& sizes = step.list("sizes");
    const bool few =
        step.text("way") == "rows" && !sizes.empty() && sizes.back() < static_cast<int64_t>(16 / sizeof(T));
    if (step.text("way") == "in_order" || few) return std::make_unique<Reduce<T, Operation<T>>>(step, true);
    return std::make_unique<PacketExtremes<T, Operation<T>>>(step);
  }
  if constexpr (std::is_same_v<T, float>) {
    if (rule == "parts_in_16_lanes") return make_part_extremes<16, Last<T>>(step);
    if (rule == "parts_in_8_lanes") return make_part_extremes<8, Last<T>>(step);
  }
  require(rule == "last_unless_beyond", "no native rule for this slot");
  return std::make_unique<Reduce<T, Last<T>>>(step, true);
}

template <template <class> class Operation, template <class> class Last, template <class> class First>
std::unique_ptr<Kernel> make_extreme(const Step& step, bool largest) {
  switch (step.input(0).type) {
    case Type::boolean: return std::make_unique<Reduce<uint8_t, ReducedTruth>>(step, false, ReducedTruth(largest));
    case Type::s8:  // stored unsigned, which keeps the order
    case Type::u8: return make_integer_extreme<uint8_t>(step, largest);
    case Type::s16: return make_integer_extreme<int16_t>(step, largest);
    case Type::s32: return make_integer_extreme<int32_t>(step, largest);
    case Type::s64: return make_integer_extreme<int64_t>(step, largest);
    case Type::f32: return make_real_extreme<float, Operation, Last, First>(step);
    case Type::f64: return make_real_extreme<double, Operation, Last, First>(step);
    default: return nullptr;
  }
}

}  // namespace

int64_t neighbours(const Step& step) {
  const std::vector<int64_t>& axes = step.list("axes");
  int64_t length = 1;
  for (int axis = step.input(0).rank() - 1; axis >= 0; --axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) break;
    length *= step.input(0).shape[axis];
  }
  return length;
}

Reduction::Reduction(const Step& step) {
  const Operand &in = step.input(0), &out = step.output();
  require(in.dense() && out.dense(), "both sides must be dense");
  require(in.elements > 0, "there is nothing to reduce");
  std::vector<bool> reduced(in.shape.size(), false);
  const auto found = step.integers.find("axes");
  if (found != step.integers.end()) {
    for (const int64_t axis : found->second) {
      require(axis >= 0 && axis < in.rank(), "an axis is out of range");
      reduced[axis] = true;
    }
  }
  whole_ = true;
  std::vector<std::pair<Axis, bool>> merged;  // from the innermost axis on
  int64_t stride = 1;
  for (size_t i = in.shape.size(); i-- > 0;) {
    const int64_t dimension = in.shape[i];
    whole_ = whole_ && reduced[i];
    (reduced[i] ? count_ : outputs_) *= dimension;
    if (dimension > 1) {
      if (!merged.empty() && merged.back().second == reduced[i]) {
        merged.back().first.dimension *= dimension;
      } else {
        merged.push_back({{dimension, stride}, reduced[i]});
      }
    }
    stride *= dimension;
  }
  require(outputs_ == out.elements, "the output has another number of elements");
  for (size_t i = 0; i < merged.size(); ++i) {
    if (i == 0) {
      inner_ = merged[0].first.dimension;
      inner_kept_ = !merged[0].second;
    } else {
      auto& axes = merged[i].second ? reduced_ : kept_;
      axes.insert(axes.begin(), merged[i].first);
    }
  }
}

static std::unique_ptr<Kernel> make_reduce_max(const Step& step, const CoreSet&) {
  return make_extreme<Largest, LastLargest, FirstLargest>(step, true);
}

static std::unique_ptr<Kernel> make_reduce_min(const Step& step, const CoreSet&) {
  return make_extreme<Smallest, LastSmallest, FirstSmallest>(step, false);
}

static std::unique_ptr<Kernel> make_reduce_prod(const Step& step, const CoreSet& cores) {
  if (step.rules.count("real_sum")) return make_real_sum(step, cores);
  switch (step.input(0).type) {
    case Type::s32: return std::make_unique<Reduce<uint32_t, Product<uint32_t>>>(step, false);
    case Type::s64: return std::make_unique<Reduce<uint64_t, Product<uint64_t>>>(step, false);
    case Type::f32: return std::make_unique<Reduce<float, Product<float>>>(step, true);
    default: return nullptr;
  }
}

BITTRUE_OPERATOR(reduce_max, make_reduce_max)
BITTRUE_OPERATOR(reduce_min, make_reduce_min)
BITTRUE_OPERATOR(reduce_prod, make_reduce_prod)

}  // namespace bittrue

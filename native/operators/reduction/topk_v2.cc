// topk_v2: the largest, or smallest, elements along one axis and their positions; equal ones by position, NaN last, or
// left to the reference where a search is part of the result, as are parts that stay long.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

bool searches(const Step& step) { return step.texts.count("search") != 0; }

// Whether a search decides the order of the results.
bool orders_by(const Step& step, const char* search) {
  return searches(step) && step.text("search") == search && step.integer("sorted", 0, 1) == 0;
}

// T is the stored type: s8 is kept unsigned, which orders the same.
template <class T>
class TopK final : public Kernel {
 public:
  TopK(const Step& step, int64_t rows, int64_t dimension, int64_t inner, int64_t count)
      : rows_(rows),
        dimension_(dimension),
        inner_(inner),
        count_(count),
        largest_(step.integer("largest", 0, 1) != 0),
        heap_(orders_by(step, "heap")),
        parted_(orders_by(step, "partition")),
        searched_(searches(step)),
        position_bytes_(type_bytes(step.output(1).type)) {}

  int64_t scratch_bytes(int threads) const override { return threads * dimension_ * int64_t{sizeof(uint64_t)}; }

  void run(const Run& run) const override {
    if (count_ == 0) return;
    if constexpr (std::is_floating_point_v<T>) {
      if (searched_ && has_nan(run)) throw Undefined();
    }
    if (inner_ >= kBeside && count_ <= kFew && !heap_ && !parted_) return run_beside(run);
    std::atomic<bool> stays_large{false};
    run.pool.parallel(rows_, [&](int64_t row, int worker) {
      const int64_t outer = row / inner_, place = row % inner_;
      const T* x = reinterpret_cast<const T*>(run.inputs[0]) + outer * dimension_ * inner_ + place;
      auto* keys = reinterpret_cast<uint64_t*>(run.scratch) + worker * dimension_;
      with_order(x, [&](auto element, const auto& make, const auto& place_of, const auto& before) {
        auto* best = reinterpret_cast<decltype(element)*>(keys);
        if (heap_ || parted_) {
          for (int64_t i = 0; i < dimension_; ++i) best[i] = make(i);
          if (heap_) fill_heap(best, before);
          if (parted_ && !part(best, before)) stays_large.store(true, std::memory_order_relaxed);
        } else {
          keep_best(run, worker, x, best, make, place_of, before);
        }
        write(run, x, outer, place, best, place_of);
      });
    });
    if (stays_large.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr int64_t kFew = 32;        // results that are kept in their order
  static constexpr int64_t kLong = 1 << 16;  // elements between looks at whether to stop
  static constexpr int64_t kBeside = 8;      // rows whose elements are neighbours, looked at together

  // body(an element, make(i), place_of(element), before(one, other)) of the row at `x`, by whose elements it is ordered.
  template <class Body>
  void with_order(const T* x, const Body& body) const {
    if constexpr (std::is_same_v<T, float>) {
      body(
          uint64_t{}, [&](int64_t i) { return key_of(x, i); }, [](uint64_t key) { return static_cast<int32_t>(~key); },
          std::greater<>());
    } else {
      const auto before = [x, inner = inner_, largest = largest_](int32_t a, int32_t b) {
        const T one = x[a * inner], other = x[b * inner];
        const bool nan_one = one != one, nan_other = other != other;
        if (nan_one != nan_other) return nan_other;
        if (one == other || nan_one) return a < b;
        return largest == (one > other);
      };
      body(int32_t{}, [](int64_t i) { return static_cast<int32_t>(i); }, [](int32_t place) { return place; }, before);
    }
  }

  template <class Element, class Place>
  void write(const Run& run, const T* x, int64_t outer, int64_t place, const Element* best,
             const Place& place_of) const {
    T* values = reinterpret_cast<T*>(run.outputs[0]) + outer * count_ * inner_ + place;
    uint8_t* places = run.outputs[1] + (outer * count_ * inner_ + place) * position_bytes_;
    for (int64_t i = 0; i < count_; ++i) {
      const int32_t position = place_of(best[i]);
      values[i * inner_] = x[position * inner_];
      put(places + i * inner_ * position_bytes_, position);
    }
  }

  // Rows of which as many as `kBeside` are neighbours: memory is read in its order. The last ones go with some that are done
  // once more.
  void run_beside(const Run& run) const {
    const int64_t groups = (inner_ + kBeside - 1) / kBeside;
    // Threads would write what is done twice at the same time.
    const int threads = inner_ % kBeside == 0 ? run.pool.threads() : 1;
    run.pool.parallel(rows_ / inner_ * groups, threads, [&](int64_t task, int worker) {
      const int64_t outer = task / groups, place = std::min(task % groups * kBeside, inner_ - kBeside);
      const T* x = reinterpret_cast<const T*>(run.inputs[0]) + outer * dimension_ * inner_ + place;
      uint64_t memory[kBeside][kFew];
      T worst[kBeside];
      for (int64_t j = 0; j < kBeside; ++j) {
        with_order(x + j, [&](auto element, const auto& make, const auto& place_of, const auto& before) {
          auto* best = reinterpret_cast<decltype(element)*>(memory[j]);
          for (int64_t i = 0; i < count_; ++i) best[i] = make(i);
          std::sort(best, best + count_, before);
          worst[j] = x[place_of(best[count_ - 1]) * inner_ + j];
        });
      }
      for (int64_t i = count_; i < dimension_; ++i) {
        if (i % kLong == 0) run.check(worker);
        const T* line = x + i * inner_;
        if (!any_better(line, worst)) continue;
        for (uint32_t left = better(line, worst); left != 0; left &= left - 1) {
          const int j = __builtin_ctz(left);
          with_order(x + j, [&](auto element, const auto& make, const auto& place_of, const auto& before) {
            auto *best = reinterpret_cast<decltype(element)*>(memory[j]), *end = best + count_;
            if (!before(make(i), end[-1])) return;
            insert(make(i), best, end, before);
            worst[j] = x[place_of(end[-1]) * inner_ + j];
          });
        }
      }
      for (int64_t j = 0; j < kBeside; ++j) {
        with_order(x + j, [&](auto element, const auto&, const auto& place_of, const auto&) {
          write(run, x + j, outer, place + j, reinterpret_cast<decltype(element)*>(memory[j]), place_of);
        });
      }
    });
  }

  // Whether one may be better than the worst of its row so far: NaN always may.
  bool any_better(const T* line, const T* worst) const {
    int32_t any = 0;
    if (largest_) {
      for (int64_t j = 0; j < kBeside; ++j) any |= static_cast<int32_t>(!(line[j] <= worst[j]));
    } else {
      for (int64_t j = 0; j < kBeside; ++j) any |= static_cast<int32_t>(!(line[j] >= worst[j]));
    }
    return any != 0;
  }
  // A bit for each of these. Not inlined: most lines have none.
  [[gnu::noinline]] uint32_t better(const T* line, const T* worst) const {
    uint32_t found = 0;
    for (int64_t j = 0; j < kBeside; ++j) {
      const bool not_worse = largest_ ? !(line[j] <= worst[j]) : !(line[j] >= worst[j]);
      found |= static_cast<uint32_t>(not_worse) << j;
    }
    return found;
  }

  // In its place of an order, from which the last one falls out.
  template <class Element, class Before>
  static void insert(Element candidate, Element* best, Element* end, const Before& before) {
    Element* to = end - 1;
    for (; to > best && before(candidate, to[-1]); --to) *to = to[-1];
    *to = candidate;
  }

  bool has_nan(const Run& run) const {
    const auto* x = reinterpret_cast<const T*>(run.inputs[0]);
    std::atomic<bool> found{false};
    run.pool.parallel(rows_, [&](int64_t row, int) {
      const T *from = x + row * dimension_, *to = from + dimension_;
      if (std::any_of(from, to, [](T value) { return value != value; })) found.store(true, std::memory_order_relaxed);
    });
    return found.load(std::memory_order_relaxed);
  }

  // Number and position as one number, of which higher ones come first: zeros are equal, NaN is last.
  uint64_t key_of(const float* x, int64_t i) const {
    const float number = x[i * inner_] + 0.0f;
    uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    const uint32_t order = bits ^ ((bits >> 31) != 0 ? 0xFFFFFFFFu : 0x80000000u);
    const uint32_t turned = largest_ ? order : ~order;
    return uint64_t{number != number ? 0 : turned} << 32 | ~static_cast<uint32_t>(i);
  }

  // The first element from `i` on that may be better than `worst`; most are not, and are looked at many at a time.
  int64_t next_better(const Run& run, int worker, const T* x, int64_t i, T worst) const {
    constexpr int64_t kTogether = 32;
    for (; inner_ == 1 && worst == worst && i + kTogether <= dimension_; i += kTogether) {
      if (i % kLong < kTogether) run.check(worker);
      int32_t any = 0;
      if (largest_) {
        for (int64_t k = 0; k < kTogether; ++k) any |= static_cast<int32_t>(x[i + k] > worst);
      } else {
        for (int64_t k = 0; k < kTogether; ++k) any |= static_cast<int32_t>(x[i + k] < worst);
      }
      if (any != 0) break;
    }
    for (; i < dimension_ && worst == worst; ++i) {
      if (i % kLong == 0) run.check(worker);
      const T value = x[i * inner_];
      if (largest_ ? value > worst : value < worst) break;
    }
    return i;
  }

  // The first `count_` of the order of make(i): few in their order, many in a heap, whose worst one so far stands in front.
  template <class Element, class Make, class Place, class Before>
  void keep_best(const Run& run, int worker, const T* x, Element* best, const Make& make, const Place& place_of,
                 const Before& before) const {
    Element* const end = best + count_;
    for (int64_t i = 0; i < count_; ++i) best[i] = make(i);
    const bool few = count_ <= kFew;
    few ? std::sort(best, end, before) : std::make_heap(best, end, before);
    const Element& worst = few ? end[-1] : best[0];
    const auto next = [&](int64_t i) { return next_better(run, worker, x, i, x[place_of(worst) * inner_]); };
    for (int64_t i = next(count_); i < dimension_; i = next(i + 1)) {
      const Element candidate = make(i);
      if (!before(candidate, worst)) continue;
      if (few) {
        insert(candidate, best, end, before);
      } else {
        std::pop_heap(best, end, before);
        end[-1] = candidate;
        std::push_heap(best, end, before);
      }
    }
    if (!few) std::sort_heap(best, end, before);
  }

  void put(uint8_t* to, int32_t position) const {
    const auto narrow = static_cast<int16_t>(position);
    const int64_t wide = position;
    if (position_bytes_ == 2) std::memcpy(to, &narrow, 2);
    if (position_bytes_ == 4) std::memcpy(to, &position, 4);
    if (position_bytes_ == 8) std::memcpy(to, &wide, 8);
  }

  // Moves an element down until none below it comes later; of two that do, the later one moves up.
  template <class Element, class Before>
  void sink(Element* heap, int64_t place, const Before& before) const {
    for (int64_t below = 2 * place + 1; below < count_; below = 2 * place + 1) {
      if (below + 1 < count_ && before(heap[below], heap[below + 1])) ++below;
      if (before(heap[below], heap[place])) return;
      std::swap(heap[place], heap[below]);
      place = below;
    }
  }

  // The first `count` of the order in a heap, built from behind, that every better one enters at the root.
  template <class Element, class Before>
  void fill_heap(Element* elements, const Before& before) const {
    std::reverse(elements, elements + count_);
    for (int64_t place = count_ - 1; place >= 0; --place) sink(elements, place, before);
    for (int64_t i = count_; i < dimension_; ++i) {
      if (!before(elements[i], elements[0])) continue;
      elements[0] = elements[i];
      sink(elements, 0, before);
    }
  }

  // Divides the part in which the last of the first `count` lies, until it is short; false where it stays long.
  template <class Element, class Before>
  bool part(Element* elements, const Before& before) const {
    constexpr int64_t kShort = 3;
    Element *first = elements, *last = elements + dimension_;
    int64_t left = 0;
    for (int64_t size = dimension_; size > 1; size /= 2) left += 2;
    while (last - first > kShort) {
      if (left-- == 0) return false;
      Element* const cut = divide(first, last, before);
      (cut < elements + count_ ? first : last) = cut;
    }
    std::sort(first, last, before);
    return true;
  }

  // Around the median of three, which comes first; where the second half begins.
  template <class Element, class Before>
  static Element* divide(Element* first, Element* last, const Before& before) {
    Element *const a = first + 1, *const b = first + (last - first) / 2, *const c = last - 1;
    Element* const low_one = before(*a, *b) ? a : b;
    Element* const high_one = low_one == a ? b : a;
    std::swap(*first, before(*high_one, *c) ? *high_one : before(*low_one, *c) ? *c : *low_one);
    const Element pivot = *first;
    for (Element *low = a, *high = last;; ++low) {
      while (before(*low, pivot)) ++low;
      do --high;
      while (before(pivot, *high));
      if (low >= high) return low;
      std::swap(*low, *high);
    }
  }

  int64_t rows_, dimension_, inner_, count_;
  bool largest_, heap_, parted_, searched_;
  int64_t position_bytes_;
};

std::unique_ptr<Kernel> make_topk_v2(const Step& step, const CoreSet&) {
  const Operand& in = step.input(0);
  require(in.rank() >= 1 && step.outputs.size() == 2, "rows and two outputs are needed");
  require_same_type(in, step.output(0));
  const int64_t axis = step.integer("axis", 0, in.rank() - 1);
  const int64_t dimension = in.shape[axis], count = step.integer("count", 0, dimension);
  const int64_t rows = count == 0 ? 0 : in.elements / dimension;
  int64_t inner = 1;
  for (int64_t a = axis + 1; a < in.rank() && in.elements != 0; ++a) inner *= in.shape[a];
  require(dimension <= std::numeric_limits<int32_t>::max(), "rows are too long");
  for (size_t i = 0; i < 2; ++i) require(step.output(i).elements == rows * count, "the shapes do not fit");
  require(in.dense() && step.output(0).dense() && step.output(1).dense(), "all sides must be dense");
  const Type position = step.output(1).type;
  require(position == Type::s16 || position == Type::s32 || position == Type::s64, "no native kernel for these types");
  switch (in.type) {
    case Type::s8:
    case Type::u8: return std::make_unique<TopK<uint8_t>>(step, rows, dimension, inner, count);
    case Type::s16: return std::make_unique<TopK<int16_t>>(step, rows, dimension, inner, count);
    case Type::s32: return std::make_unique<TopK<int32_t>>(step, rows, dimension, inner, count);
    case Type::s64: return std::make_unique<TopK<int64_t>>(step, rows, dimension, inner, count);
    case Type::f32: return std::make_unique<TopK<float>>(step, rows, dimension, inner, count);
    case Type::f64: return std::make_unique<TopK<double>>(step, rows, dimension, inner, count);
    default: return nullptr;
  }
}

BITTRUE_OPERATOR(topk_v2, make_topk_v2)

}  // namespace
}  // namespace bittrue

// maximum and minimum of the stored numbers: without a rule, a NaN on either side, or two equal zeros, give the second;
// with nan_else_first, the first NaN is the result, and two equal zeros give the first as well; with
// nan_else_last_in_vectors, they give the second in vectors of four; with nan_else_by_signs, the zero whose sign is beyond
// the other's; with first_unless_beyond, NaN and zeros give the first; with last_unless_beyond, the second, where operands
// may be exchanged.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "arithmetic/narrow_float.h"
#include "operators/core/registry.h"
#include "operators/core/zip.h"

namespace bittrue {
namespace {

// Of real numbers; integers have one way.
template <class Choose>
std::unique_ptr<Kernel> make_stored(const Step& step, const Choose& choose) {
  return step.input(0).type == Type::f32 ? make_zip<float, float>(step, choose)
                                         : make_zip<double, double>(step, choose);
}

// Behind a kernel that takes the second of two equal zeros: outside of vectors it is the first. Vectors of 16 bytes begin at
// multiples of their lanes among `together_` neighbouring results.
template <class T>
class OutsideOfVectors final : public Kernel {
 public:
  OutsideOfVectors(const Step& step, std::unique_ptr<Kernel> inner, size_t first)
      : inner_(std::move(inner)),
        first_(first),
        elements_(step.output().elements),
        together_(step.integer("together", 1, std::max<int64_t>(elements_, 1))) {
    require(step.output().dense() && step.input(0).dense() && step.input(1).dense(), "no native kernel for strides");
    shape_ = step.output().shape;
    strides_.assign(shape_.size(), 0);
    const auto& own = step.input(first).shape;
    int64_t stride = 1;
    for (size_t axis = own.size(); axis-- > 0; stride *= own[axis]) {
      if (own[axis] != 1) strides_[axis + shape_.size() - own.size()] = stride;
    }
  }

  int64_t scratch_bytes(int threads) const override { return inner_->scratch_bytes(threads); }

  void run(const Run& run) const override {
    inner_->run(run);
    const int64_t parts = elements_ / together_;
    const int64_t each = std::max<int64_t>(1, kTask / together_);
    run.pool.parallel((parts + each - 1) / each, [&](int64_t task, int) {
      for (int64_t part = task * each; part < std::min(parts, (task + 1) * each); ++part) {
        const int64_t begin = part * together_, end = begin + together_;
        const int64_t vectors = std::min(end, (begin + kLanes - 1) / kLanes * kLanes);
        mend(run, begin, vectors);
        mend(run, vectors + (end - vectors) / kLanes * kLanes, end);
      }
    });
  }

 private:
  static constexpr int64_t kLanes = 16 / sizeof(T), kTask = 8192;

  void mend(const Run& run, int64_t begin, int64_t end) const {
    const auto* first = reinterpret_cast<const T*>(run.inputs[first_]);
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    for (int64_t i = begin; i < end; ++i) {
      if (out[i] != 0) continue;
      int64_t place = 0, rest = i;
      for (size_t axis = shape_.size(); axis-- > 0; rest /= shape_[axis]) place += rest % shape_[axis] * strides_[axis];
      if (first[place] == 0) out[i] = first[place];
    }
  }

  std::unique_ptr<Kernel> inner_;
  size_t first_;
  int64_t elements_, together_;
  std::vector<int64_t> shape_, strides_;
};

// nan_else_by_signs; the operands may be exchanged.
template <class Compare>
std::unique_ptr<Kernel> make_by_signs(const Step& step) {
  const bool exchanged = step.integer("exchanged", 0, 1) != 0;
  return make_stored(step, [exchanged](auto a, auto b) {
    if (exchanged) std::swap(a, b);
    if (a != a) return a;
    if (a == b) return std::signbit(a) == Compare()(1, 0) ? b : a;
    return b != b || Compare()(b, a) ? b : a;
  });
}

// nan_else_first, or what is so in vectors; the operands may be exchanged.
template <class T>
std::unique_ptr<Kernel> make_chosen_reals(const Step& step, const CoreSet& cores, bool largest) {
  const bool first = step.rule("extreme") == "nan_else_first";
  require(first || step.rule("extreme") == "nan_else_last_in_vectors", "no native rule for this slot");
  const size_t one = step.integer("exchanged", 0, 1) != 0 ? 1 : 0;
  const PairLoop::Operation larger = first ? PairLoop::larger_or_first : PairLoop::larger;
  const PairLoop::Operation smaller = first ? PairLoop::smaller_or_first : PairLoop::smaller;
  auto chosen = make_pair_loop(step, cores, largest ? larger : smaller, one == 1);
  if (first || chosen == nullptr) return chosen;
  return std::make_unique<OutsideOfVectors<T>>(step, std::move(chosen), one);
}

// last_unless_beyond of binary16, where a NaN is made quiet.
template <class Compare>
std::unique_ptr<Kernel> make_of_halves(const Step& step) {
  require(step.rule("extreme") == "last_unless_beyond", "no native rule for this slot");
  const bool exchanged = step.integer("exchanged", 0, 1) != 0;
  return make_zip<uint16_t, uint16_t>(step, [exchanged](uint16_t a, uint16_t b) {
    constexpr uint16_t kSizes = 0x7FFF, kInfinity = 0x7C00, kQuiet = 0x0200;
    if (exchanged) std::swap(a, b);
    const uint16_t found = Compare()(arithmetic::half_to_float(a), arithmetic::half_to_float(b)) ? a : b;
    return static_cast<uint16_t>((found & kSizes) > kInfinity ? found | kQuiet : found);
  });
}

template <class Compare>
std::unique_ptr<Kernel> make_chosen(const Step& step, const CoreSet& cores) {
  constexpr bool kLargest = Compare()(1, 0);
  const Type type = step.input(0).type;
  if (type != step.output().type) return nullptr;
  if (type == Type::f16) return make_of_halves<Compare>(step);
  if (type != Type::f32 && type != Type::f64) {
    return make_pair_loop(step, cores, kLargest ? PairLoop::larger : PairLoop::smaller);
  }
  if (!step.rules.count("extreme")) return make_stored(step, [](auto a, auto b) { return Compare()(a, b) ? a : b; });
  if (step.rule("extreme") == "first_unless_beyond") {
    return make_stored(step, [](auto a, auto b) { return Compare()(b, a) ? b : a; });
  }
  if (step.rule("extreme") == "last_unless_beyond") {
    const bool exchanged = step.integer("exchanged", 0, 1) != 0;
    return make_stored(step, [exchanged](auto a, auto b) {
      if (exchanged) std::swap(a, b);
      return Compare()(a, b) ? a : b;
    });
  }
  if (step.rule("extreme") == "nan_else_by_signs") return make_by_signs<Compare>(step);
  return type == Type::f64 ? make_chosen_reals<double>(step, cores, kLargest)
                           : make_chosen_reals<float>(step, cores, kLargest);
}

struct LargerOf {
  template <class T>
  constexpr bool operator()(T a, T b) const {
    return a > b;
  }
};

struct Less {
  template <class T>
  constexpr bool operator()(T a, T b) const {
    return a < b;
  }
};

std::unique_ptr<Kernel> make_maximum(const Step& step, const CoreSet& cores) {
  return make_chosen<LargerOf>(step, cores);
}

std::unique_ptr<Kernel> make_minimum(const Step& step, const CoreSet& cores) { return make_chosen<Less>(step, cores); }

BITTRUE_OPERATOR(maximum, make_maximum)
BITTRUE_OPERATOR(minimum, make_minimum)

}  // namespace
}  // namespace bittrue

// scatter_nd: slices or elements put at coordinates, or combined with what is there, one after the other. Coordinates
// outside of the tensor, and sums that are no number, have no defined result.
#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"
#include "operators/reduction/real_rows.h"

namespace bittrue {
namespace {

enum class Meeting { replace, add, multiply, largest, smallest };

// What an update makes of a stored value.
template <class T>
struct ScatteredNumber {
  using Kind = T;
  static T add(T a, T b) {
    return combined(a, b, [](auto x, auto y) { return x + y; });
  }
  static T multiply(T a, T b) {
    return combined(a, b, [](auto x, auto y) { return x * y; });
  }
  static bool defined(T value) { return value == value; }

 private:
  // Integers wrap.
  template <class Body>
  static T combined(T a, T b, const Body& body) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(body(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
    } else {
      return body(a, b);
    }
  }
};
// s8, moved up by 128.
struct ScatteredCode : ScatteredNumber<uint8_t> {
  static uint8_t add(uint8_t a, uint8_t b) { return static_cast<uint8_t>(a + b - 128); }
  static uint8_t multiply(uint8_t a, uint8_t b) { return static_cast<uint8_t>((a - 128) * (b - 128) + 128); }
};
struct ScatteredTruth : ScatteredNumber<uint8_t> {
  static uint8_t add(uint8_t a, uint8_t b) { return a | b; }
  static uint8_t multiply(uint8_t a, uint8_t b) { return a != 0 && b != 0; }
};

template <class Value>
typename Value::Kind met(Meeting how, typename Value::Kind old, typename Value::Kind update) {
  switch (how) {
    case Meeting::add: return Value::add(old, update);
    case Meeting::multiply: return Value::multiply(old, update);
    case Meeting::largest: return old > update ? old : update;
    case Meeting::smallest: return old < update ? old : update;
    default: return update;
  }
}

// Coordinates, and the value that there is before.
class ScatterForm : public Kernel {
 protected:
  // The operands that hold coordinates, updates, and what the updates meet; the latter may be absent.
  ScatterForm(const Step& step, size_t indices, size_t updates, size_t before)
      : updates_(updates), indices_(indices), before_(before), elements_(step.output().elements) {
    const Operand &positions = step.input(indices), &values = step.input(updates), &out = step.output();
    require(positions.type == Type::s32 || positions.type == Type::s64, "coordinates must be s32 or s64");
    require_same_type(values, out);
    require(positions.dense() && values.dense() && out.dense(), "all sides must be dense");
    wide_ = positions.type == Type::s64;
    const std::string& how = step.text("reduction");
    how_ = how == "replace"    ? Meeting::replace
           : how == "add"      ? Meeting::add
           : how == "multiply" ? Meeting::multiply
           : how == "largest"  ? Meeting::largest
                               : Meeting::smallest;
    require(how_ != Meeting::smallest || how == "smallest", "no native reduction");
    given_ = step.has_input(before);
    if (!given_) return;
    require_same_type(step.input(before), out);
    require(step.input(before).dense(), "all sides must be dense");
    whole_ = step.input(before).shape == out.shape;
    require(whole_ || step.input(before).elements == 1, "the shapes do not fit");
  }

  // Position i of an axis, counted from its end where it is negative; -1 outside of it.
  int64_t place(const Run& run, int64_t i, int64_t dimension) const {
    const uint8_t* stored = run.inputs[indices_];
    const int64_t p = wide_ ? reinterpret_cast<const int64_t*>(stored)[i] : reinterpret_cast<const int32_t*>(stored)[i];
    if (p >= 0) return p < dimension ? p : -1;
    return wraps_ && p >= -dimension ? p + dimension : -1;
  }

  // Fills the result with what there is before.
  template <class T>
  T* begin(const Run& run, T zero) const {
    T* out = reinterpret_cast<T*>(run.outputs[0]);
    const T* from = given_ ? reinterpret_cast<const T*>(run.inputs[before_]) : &zero;
    if (whole_) {
      std::memcpy(out, from, static_cast<size_t>(elements_) * sizeof(T));
    } else {
      std::fill(out, out + elements_, *from);
    }
    return out;
  }

  Meeting how_;
  bool wraps_ = true;
  size_t updates_;

 private:
  size_t indices_, before_;
  int64_t elements_;
  bool wide_ = false, given_ = false, whole_ = false;
};

// Coordinates of slices, or of single elements.
template <class Value>
class Scatter final : public ScatterForm {
 public:
  using T = typename Value::Kind;

  Scatter(const Step& step, T zero) : ScatterForm(step, 0, 1, 2), zero_(zero), dimensions_(step.list("sizes")) {
    const Operand &indices = step.input(0), &updates = step.input(1), &out = step.output();
    const std::string& into = step.text("into");
    require(step.inputs.size() == (into == "zeros" ? 2u : 3u), "the operands do not fit");
    wraps_ = step.integer("wraps", 0, 1) != 0;
    const auto depth = static_cast<int64_t>(dimensions_.size());
    require(depth <= out.rank() && out.elements > 0, "too many coordinates");
    for (int64_t a = 0; a < out.rank(); ++a) {
      require(a >= depth || dimensions_[a] == out.shape[a], "sizes differ");
      if (a >= depth) inner_ *= out.shape[a];
    }
    count_ = step.integer("count", 0, int64_t{1} << 40);
    one_ = updates.elements == 1 && inner_ == 1;
    require(one_ || (updates.elements % inner_ == 0 && updates.elements / inner_ == count_), "the updates do not fit");
    require(count_ * depth == indices.elements, "the coordinates do not fit");
  }

  void run(const Run& run) const override {
    const T* updates = reinterpret_cast<const T*>(run.inputs[updates_]);
    T* out = begin<T>(run, zero_);
    const int64_t seldom = std::max<int64_t>(1, 4096 / inner_);
    int64_t coordinate = 0;
    for (int64_t i = 0; i < count_; ++i, updates += one_ ? 0 : inner_) {
      if (i % seldom == 0) run.check();
      int64_t flat = 0;
      for (const int64_t dimension : dimensions_) {
        const int64_t at = place(run, coordinate++, dimension);
        if (at < 0) throw Undefined();
        flat = flat * dimension + at;
      }
      T* to = out + flat * inner_;
      if (how_ == Meeting::replace) {
        std::memcpy(to, updates, static_cast<size_t>(inner_) * sizeof(T));
        continue;
      }
      bool defined = true;
      for (int64_t k = 0; k < inner_; ++k) {
        const T value = met<Value>(how_, to[k], updates[k]);
        defined &= Value::defined(value);
        to[k] = value;
      }
      if (!defined) throw Undefined();
    }
  }

 private:
  T zero_;
  std::vector<int64_t> dimensions_;
  int64_t count_ = 0, inner_ = 1;
  bool one_ = false;
};

// A position along one axis per update, which lies at its own place along the others.
template <class Value>
class ScatterAlong final : public ScatterForm {
 public:
  using T = typename Value::Kind;

  explicit ScatterAlong(const Step& step)
      : ScatterForm(step, 1, 2, 0), target_(step.output().shape), shape_(step.input(1).shape) {
    const int rank = step.output().rank();
    axis_ = step.integer("axis", 0, rank - 1);
    require(step.input(2).shape == shape_ && step.input(1).rank() == rank && step.input(0).shape == target_,
            "the shapes do not fit");
    for (int a = 0; a < rank; ++a) {
      require(a == axis_ || shape_[a] <= target_[a], "the shapes do not fit");
      (a < axis_ ? outer_ : a == axis_ ? length_ : inner_) *= shape_[a];
    }
  }

  void run(const Run& run) const override {
    T* out = begin<T>(run, T{});
    // What lies at different places along the axes before may be done in any order.
    for_rows(run, outer_, length_ * inner_, [&](int64_t part, int worker) {
      run.check(worker);
      return how_ == Meeting::replace ? put<true>(run, part, out) : put<false>(run, part, out);
    });
  }

 private:
  // Updates with one place along the axes before.
  template <bool kReplaces>
  bool put(const Run& run, int64_t part, T* out) const {
    const auto rank = static_cast<int64_t>(target_.size());
    const int64_t last = shape_.back(), dimension = target_[axis_], beside = axis_ == rank - 1 ? 0 : 1;
    // Where this part begins in the result, and from one position along the axis to the next.
    int64_t begin = 0, stride = 1;
    for (int64_t a = rank - 1; a > axis_; --a) stride *= target_[a];
    int64_t step = stride * dimension, rest = part;
    for (int64_t a = axis_ - 1; a >= 0; --a) {
      begin += rest % shape_[a] * step;
      rest /= shape_[a];
      step *= target_[a];
    }
    const T* updates = reinterpret_cast<const T*>(run.inputs[updates_]);
    const int64_t first = part * length_ * inner_;
    bool defined = true;
    for (int64_t i = 0; i < length_ * inner_; i += last) {
      int64_t at = begin, row = i % inner_ / last, width = target_.back();
      for (int64_t a = rank - 2; a > axis_; --a) {
        at += row % shape_[a] * width;
        row /= shape_[a];
        width *= target_[a];
      }
      for (int64_t k = 0; k < last; ++k) {
        const int64_t p = place(run, first + i + k, dimension);
        if (p < 0) return false;
        T& to = out[at + p * stride + k * beside];
        const T update = updates[first + i + k];
        to = kReplaces ? update : met<Value>(how_, to, update);
        if constexpr (!kReplaces) defined &= Value::defined(to);
      }
    }
    return defined;
  }

  std::vector<int64_t> target_, shape_;
  int64_t axis_ = 0, outer_ = 1, length_ = 1, inner_ = 1;
};

template <class Value>
std::unique_ptr<Kernel> make_scatter(const Step& step, typename Value::Kind zero = {}) {
  if (step.integers.count("axis") != 0) return std::make_unique<ScatterAlong<Value>>(step);
  return std::make_unique<Scatter<Value>>(step, zero);
}

std::unique_ptr<Kernel> make_scatter_nd(const Step& step, const CoreSet&) {
  switch (step.output().type) {
    case Type::s8: return make_scatter<ScatteredCode>(step, 128);
    case Type::u8: return make_scatter<ScatteredNumber<uint8_t>>(step);
    case Type::boolean: return make_scatter<ScatteredTruth>(step);
    case Type::s32: return make_scatter<ScatteredNumber<int32_t>>(step);
    case Type::s64: return make_scatter<ScatteredNumber<int64_t>>(step);
    case Type::f32: return make_scatter<ScatteredNumber<float>>(step);
    default: break;
  }
  // Of other types only the bytes are known.
  if (step.text("reduction") != "replace") return nullptr;
  switch (type_bytes(step.output().type)) {
    case 2: return make_scatter<ScatteredNumber<int16_t>>(step);
    case 4: return make_scatter<ScatteredNumber<int32_t>>(step);
    case 8: return make_scatter<ScatteredNumber<int64_t>>(step);
    default: return nullptr;
  }
}

BITTRUE_OPERATOR(scatter_nd, make_scatter_nd)

}  // namespace
}  // namespace bittrue

// hardmax, root_mean_square and unsorted_segment: rows of numbers, element by element in order.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/rounding.h"
#include "operators/core/registry.h"
#include "operators/core/sizes.h"
#include "operators/movement/strided_copy.h"
#include "operators/reduction/real_rows.h"

namespace bittrue {
namespace {

// Rows [before, row, after]; a NaN is larger than all numbers, or, by a rule of the slot `extreme`, the reference's to tell.
class Hardmax final : public Kernel {
 public:
  explicit Hardmax(const Step& step) {
    require_reals(step);
    const Operand& in = step.input(0);
    constexpr int64_t kMost = int64_t{1} << 40;
    before_ = step.integer("before", 1, kMost), after_ = step.integer("after", 1, kMost);
    const int64_t rows = elements_of({before_, after_});
    require(in.elements > 0 && in.elements % rows == 0 && in.elements == step.output().elements,
            "the shapes do not fit");
    length_ = in.elements / rows;
    by_rule_ = step.rules.count("extreme") != 0;
  }
  std::string note() const override { return "the first largest of rows"; }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    for_rows(run, before_ * after_, length_, [&](int64_t row, int) {
      const int64_t at = row / after_ * length_ * after_ + row % after_;
      const float* x = in + at;
      if (after_ == 1) {
        std::fill_n(out + at, length_, 0.0f);
        const int64_t first = first_largest(x);
        out[at + first] = 1.0f;
        return !by_rule_ || x[first] == x[first];
      }
      int64_t best = 0;
      float kept = x[0];
      for (int64_t i = 0; i < length_; ++i) {
        const float next = x[i * after_];
        out[at + i * after_] = 0.0f;
        // Where a NaN is kept nothing is larger.
        if (next > kept || (next != next && kept == kept)) best = i, kept = next;
      }
      out[at + best * after_] = 1.0f;
      return !by_rule_ || kept == kept;
    });
  }

 private:
  // The largest number in lanes, then where it is; one after the other where there is a NaN.
  int64_t first_largest(const float* x) const {
    constexpr int64_t kLanes = 16;
    float lanes[kLanes], kept = x[0];
    uint32_t odd[kLanes] = {};
    std::fill(lanes, lanes + kLanes, x[0]);
    int64_t i = 0;
    for (; i + kLanes <= length_; i += kLanes) {
      for (int64_t k = 0; k < kLanes; ++k) {
        odd[k] |= x[i + k] != x[i + k];
        lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];
      }
    }
    uint32_t any = 0;
    for (; i < length_; ++i) any |= x[i] != x[i], kept = x[i] > kept ? x[i] : kept;
    for (int64_t k = 0; k < kLanes; ++k) any |= odd[k], kept = lanes[k] > kept ? lanes[k] : kept;
    const auto wanted = [&](float value) { return any != 0 ? value != value : value == kept; };
    int64_t place = 0;
    while (!wanted(x[place])) ++place;
    return place;
  }

  int64_t before_ = 1, after_ = 1, length_ = 1;
  bool by_rule_ = false;
};

class RootMeanSquare final : public Kernel {
 public:
  explicit RootMeanSquare(const Step& step) : epsilon_(static_cast<float>(step.real("epsilon"))) {
    require_reals(step);
    const Operand& in = step.input(0);
    length_ = step.integer("length", 1, int64_t{1} << 40);
    if (step.has_input(1)) {
      const Operand& scale = step.input(1);
      require(scale.type == Type::f32 && scale.dense() && scale.elements == length_,
              "no native kernel for these types");
    } else {
      ones_.assign(static_cast<size_t>(length_), 1.0f);
    }
    require(in.elements > 0 && in.elements % length_ == 0 && in.elements == step.output().elements,
            "the shapes do not fit");
    rows_ = in.elements / length_;
  }
  std::string note() const override { return "squares in order"; }
  bool tells_nan() const override { return true; }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    const auto* scale = ones_.empty() ? reinterpret_cast<const float*>(run.inputs[1]) : ones_.data();
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    // Chains of several rows do not wait for one another.
    for_stretches(run, rows_, length_, kTogether, [&](int64_t first, int64_t last, int) {
      bool defined = true;
      for (int64_t row = first; row < last; row += kTogether) {
        const int64_t count = std::min(kTogether, last - row);
        const float* x = in + row * length_;
        float sums[kTogether] = {};
        for (int64_t r = 0; r < count; ++r) sums[r] = x[r * length_] * x[r * length_];
        if (count == kTogether) {
          for (int64_t i = 1; i < length_; ++i) {
            for (int64_t r = 0; r < kTogether; ++r) sums[r] += x[r * length_ + i] * x[r * length_ + i];
          }
        } else {
          for (int64_t r = 0; r < count; ++r) {
            for (int64_t i = 1; i < length_; ++i) sums[r] += x[r * length_ + i] * x[r * length_ + i];
          }
        }
        for (int64_t r = 0; r < count; ++r) {
          const float inverse = 1.0f / std::sqrt(sums[r] / static_cast<float>(length_) + epsilon_);
          const float* from = x + r * length_;
          float* to = out + (row + r) * length_;
          float check = 0.0f;
          for (int64_t i = 0; i < length_; ++i) {
            to[i] = from[i] * inverse * scale[i];
            check += to[i] * 0.0f;
          }
          defined = defined && check == 0.0f;
        }
      }
      return defined;
    });
  }

 private:
  static constexpr int64_t kTogether = 8;
  int64_t rows_ = 0, length_ = 1;
  std::vector<float> ones_;  // in place of a scale that is not there
  float epsilon_;
};

// Slices [slices, inner] combined by their numbers to [segments, inner].
template <class T>
class Segments final : public Kernel {
 public:
  explicit Segments(const Step& step) {
    const Operand &in = step.input(0), &numbers = step.input(1), &out = step.output();
    constexpr int64_t kMost = int64_t{1} << 40;
    segments_ = step.integer("segments", 0, kMost), inner_ = step.integer("inner", 0, kMost);
    slices_ = numbers.elements;
    require_same_type(in, out);
    require((numbers.type == Type::s32 || numbers.type == Type::s64) && numbers.dense(), "numbers are integers");
    require(in.dense() && out.dense() && in.elements == elements_of({slices_, inner_}) &&
                out.elements == elements_of({segments_, inner_}),
            "the shapes do not fit");
    wide_ = numbers.type == Type::s64;
    const std::string& how = step.text("reduction");
    how_ = how == "add"        ? How::add
           : how == "multiply" ? How::multiply
           : how == "largest"  ? How::largest
                               : How::smallest;
    require(how_ != How::smallest || how == "smallest", "no native reduction");
  }
  std::string note() const override { return "slices in order"; }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const T*>(run.inputs[0]);
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    constexpr T kLowest = std::numeric_limits<T>::lowest(), kLargest = std::numeric_limits<T>::max();
    const T first = how_ == How::add ? T{0} : how_ == How::multiply ? T{1} : how_ == How::largest ? kLowest : kLargest;
    std::fill(out, out + segments_ * inner_, first);
    for (int64_t i = 0; i < slices_; ++i) {
      if (i * inner_ % (int64_t{1} << 20) < inner_) run.check();
      const int64_t number = wide_ ? reinterpret_cast<const int64_t*>(run.inputs[1])[i]
                                   : reinterpret_cast<const int32_t*>(run.inputs[1])[i];
      if (number < 0) continue;
      if (number >= segments_) throw Undefined();
      combine(in + i * inner_, out + number * inner_);
    }
    if constexpr (!std::is_integral_v<T>) {
      // Signs and payloads of NaN are the reference's to tell.
      for (int64_t i = 0; i < segments_ * inner_; ++i) {
        if (out[i] != out[i]) throw Undefined();
      }
    }
  }

 private:
  enum class How : uint8_t { add, multiply, largest, smallest };

  void combine(const T* from, T* to) const {
    // Integers wrap.
    using Wide = std::conditional_t<std::is_integral_v<T>, uint32_t, T>;
    switch (how_) {
      case How::add:
        for (int64_t k = 0; k < inner_; ++k)
          to[k] = static_cast<T>(static_cast<Wide>(to[k]) + static_cast<Wide>(from[k]));
        return;
      case How::multiply:
        for (int64_t k = 0; k < inner_; ++k)
          to[k] = static_cast<T>(static_cast<Wide>(to[k]) * static_cast<Wide>(from[k]));
        return;
      case How::largest:
        for (int64_t k = 0; k < inner_; ++k) to[k] = to[k] < from[k] ? from[k] : to[k];
        return;
      default:
        for (int64_t k = 0; k < inner_; ++k) to[k] = from[k] < to[k] ? from[k] : to[k];
    }
  }

  How how_;
  bool wide_ = false;
  int64_t segments_ = 0, inner_ = 0, slices_ = 0;
};

std::unique_ptr<Kernel> make_hardmax(const Step& step, const CoreSet&) { return std::make_unique<Hardmax>(step); }

std::unique_ptr<Kernel> make_root_mean_square(const Step& step, const CoreSet&) {
  require_rounded_twice(step);
  return std::make_unique<RootMeanSquare>(step);
}

std::unique_ptr<Kernel> make_segments(const Step& step, const CoreSet&) {
  if (step.input(0).type == Type::s32) return std::make_unique<Segments<int32_t>>(step);
  if (step.input(0).type == Type::f32) return std::make_unique<Segments<float>>(step);
  return nullptr;
}

BITTRUE_OPERATOR(hardmax, make_hardmax)
BITTRUE_OPERATOR(root_mean_square, make_root_mean_square)
BITTRUE_OPERATOR(unsorted_segment, make_segments)

}  // namespace
}  // namespace bittrue

// resize_antialiased: two axes at another size, each place a weighted sum of as many positions as its reach covers.
#include <algorithm>
#include <string>
#include <vector>

#include "core/rounding.h"
#include "core/share.h"
#include "operators/core/registry.h"
#include "operators/pooling/outside.h"
#include "operators/reduction/real_rows.h"

namespace bittrue {
namespace {

constexpr int kBits = 22;  // of the weights of integers

// One axis: of every place the first position, how many there are, and their weights [position][place].
template <class Weight>
struct ResizedAxis {
  int64_t outer = 1, size = 0, places = 0, inner = 1;
  std::vector<int64_t> first, counts;
  std::vector<Weight> weights;

  ResizedAxis(const Step& step, const std::string& side, const std::vector<int64_t>& shape, int64_t axis, int64_t to)
      : size(shape[axis]), places(to) {
    for (int64_t i = 0; i < axis; ++i) outer *= shape[i];
    for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
    if (kept()) return;
    const Array &starts = step.array("first_" + side), &numbers = step.array("count_" + side),
                &table = step.array("weights_" + side);
    require(starts.count == places && numbers.count == places, "one range per place is needed");
    for (int64_t i = 0; i < places; ++i) {
      const int64_t start = starts.integer(i), number = numbers.integer(i);
      require(number >= 0 && number <= table.count / std::max<int64_t>(1, places), "there are not that many weights");
      require(start >= 0 && start <= size - number, "a position leaves the image");
      first.push_back(start);
      counts.push_back(number);
    }
    for (int64_t i = 0; i < table.count; ++i) {
      if constexpr (std::is_same_v<Weight, float>) {
        weights.push_back(static_cast<float>(table.real(i)));
      } else {
        const int64_t weight = table.integer(i);
        require(weight >= INT32_MIN && weight <= INT32_MAX, "a weight is out of range");
        weights.push_back(static_cast<Weight>(weight));
      }
    }
  }
  bool kept() const { return size == places; }
  int64_t elements() const { return outer * places * inner; }
};

// T: float, or uint8_t, of which `flip_` turns stored values into the plan's own.
template <class T>
class ResizeAntialiased final : public Kernel {
  using Weight = std::conditional_t<std::is_same_v<T, float>, float, int32_t>;

 public:
  explicit ResizeAntialiased(const Step& step)
      : flip_(flip_of(step.input(0).type)), columns_(axis(step, 1)), rows_(axis(step, 0)), outside_(step) {
    require(step.input(0).type == step.output().type && step.input(0).dense() && step.output().dense(),
            "no native kernel for these types");
    require(step.output().elements == rows_.elements() && step.input(0).elements > 0, "the shapes do not fit");
  }
  int64_t scratch_bytes(int threads) const override {
    return between_bytes() + threads * worker_numbers() * static_cast<int64_t>(sizeof(T));
  }

  // Columns first, then rows; an axis that keeps its size is left alone.
  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const T*>(run.inputs[0]);
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    if (columns_.kept() || rows_.kept()) {
      along(run, rows_.kept() ? columns_ : rows_, in, out);
    } else {
      auto* between = reinterpret_cast<T*>(run.scratch);
      along(run, columns_, in, between);
      along(run, rows_, between, out);
    }
    outside_.fill(run.outputs[0]);
  }

 private:
  static constexpr int64_t kBlock = 256;
  static constexpr int64_t kLanes = 16;  // lines that are worked on side by side

  int64_t between_bytes() const { return round_up(columns_.elements() * static_cast<int64_t>(sizeof(T)), 64); }
  int64_t worker_numbers() const { return kLanes * std::max(columns_.size, rows_.size); }

  // The second axis finds the first one at its new size.
  static ResizedAxis<Weight> axis(const Step& step, int which) {
    const std::vector<int64_t>& axes = step.list("axes");
    const std::vector<int64_t>& to = step.output().shape;
    std::vector<int64_t> shape = step.input(0).shape;
    const auto rank = static_cast<int64_t>(shape.size());
    require(axes.size() == 2 && to.size() == shape.size() && axes[0] != axes[1], "two axes change");
    for (const int64_t one : axes) require(one >= 0 && one < rank, "an axis is out of range");
    if (which == 0) shape[axes[1]] = to[axes[1]];
    return {step, which == 0 ? "y" : "x", shape, axes[which], to[axes[which]]};
  }

  // Lines whose numbers are neighbours: many of them are turned, so that vectors have a number of each.
  void along_lines(const Run& run, const ResizedAxis<Weight>& axis, const T* in, T* out) const {
    for_rows(run, (axis.outer + kLanes - 1) / kLanes, kLanes * axis.size, [&](int64_t part, int worker) {
      run.check(worker);
      const int64_t line = part * kLanes, count = std::min(kLanes, axis.outer - line);
      T* turned = reinterpret_cast<T*>(run.scratch + between_bytes()) + worker * worker_numbers();
      for (int64_t l = 0; l < kLanes; ++l) {
        const T* from = in + std::min(line + l, axis.outer - 1) * axis.size;
        for (int64_t i = 0; i < axis.size; ++i) turned[i * kLanes + l] = from[i];
      }
      bool defined = true;
      for (int64_t place = 0; place < axis.places; ++place) {
        Weight sums[kLanes];
        std::fill(sums, sums + kLanes, start());
        const T* source = turned + axis.first[place] * kLanes;
        for (int64_t k = 0; k < axis.counts[place]; ++k, source += kLanes) {
          const Weight weight = axis.weights[k * axis.places + place];
          for (int64_t l = 0; l < kLanes; ++l) sums[l] = plus(sums[l], source[l], weight);
        }
        for (int64_t l = 0; l < count; ++l) {
          defined &= sums[l] == sums[l];
          out[(line + l) * axis.places + place] = stored(sums[l]);
        }
      }
      return defined;
    });
  }

  void along(const Run& run, const ResizedAxis<Weight>& axis, const T* in, T* out) const {
    if (axis.inner == 1) return along_lines(run, axis, in, out);
    for_rows(run, axis.outer * axis.places, axis.inner, [&](int64_t row, int worker) {
      run.check(worker);
      const int64_t place = row % axis.places;
      const T* from = in + (row / axis.places * axis.size + axis.first[place]) * axis.inner;
      bool defined = true;
      for (int64_t begin = 0; begin < axis.inner; begin += kBlock) {
        const int64_t count = std::min(kBlock, axis.inner - begin);
        Weight sums[kBlock];
        std::fill(sums, sums + count, start());
        for (int64_t k = 0; k < axis.counts[place]; ++k) {
          const Weight weight = axis.weights[k * axis.places + place];
          const T* source = from + k * axis.inner + begin;
          for (int64_t i = 0; i < count; ++i) sums[i] = plus(sums[i], source[i], weight);
        }
        T* target = out + row * axis.inner + begin;
        for (int64_t i = 0; i < count; ++i) {
          // Which of several NaNs a sum keeps is the reference's matter.
          defined &= sums[i] == sums[i];
          target[i] = stored(sums[i]);
        }
      }
      return defined;
    });
  }

  static constexpr Weight start() { return std::is_same_v<T, float> ? Weight{0} : Weight{1 << (kBits - 1)}; }
  Weight plus(Weight sum, T x, Weight weight) const {
    if constexpr (std::is_same_v<T, float>) {
      return sum + x * weight;
    } else {
      return static_cast<int32_t>(static_cast<uint32_t>(sum) +
                                  static_cast<uint32_t>(x - flip_) * static_cast<uint32_t>(weight));
    }
  }
  T stored(Weight sum) const {
    if constexpr (std::is_same_v<T, float>) {
      return sum;
    } else {
      // Also of signed values what fits unsigned ones is kept.
      return static_cast<uint8_t>(std::min(std::max(sum >> kBits, 0), 255) ^ flip_);
    }
  }

  int32_t flip_;
  ResizedAxis<Weight> columns_, rows_;
  Outside outside_;
};

std::unique_ptr<Kernel> make_resize_antialiased(const Step& step, const CoreSet&) {
  if (is_8bit(step.input(0).type)) return std::make_unique<ResizeAntialiased<uint8_t>>(step);
  require(step.input(0).type == Type::f32, "no native kernel for these types");
  require_rounded_twice(step);
  return std::make_unique<ResizeAntialiased<float>>(step);
}

BITTRUE_OPERATOR(resize_antialiased, make_resize_antialiased)

}  // namespace
}  // namespace bittrue

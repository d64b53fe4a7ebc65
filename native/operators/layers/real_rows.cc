// Softmax along an axis, layer_normalization, sum and mean of real numbers, in the orders of their rules.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/registry.h"
#include "operators/reduction/reduce.h"
#include "operators/reduction/softmax.h"

namespace bittrue {
namespace {

// Elements of one task, about.
constexpr int64_t kTask = 8192;

// body(first, last) for stretches of rows of `length` elements; false from any of them leaves the step to the reference.
template <class Body>
void for_rows(const Run& run, int64_t rows, int64_t length, const Body& body) {
  const int64_t together = std::max<int64_t>(1, kTask / std::max<int64_t>(1, length));
  std::atomic<bool> defined{true};
  run.pool.parallel((rows + together - 1) / together, [&](int64_t task, int worker) {
    const int64_t last = std::min(rows, (task + 1) * together);
    for (int64_t row = task * together; row < last; ++row) {
      if (!body(row, worker)) defined.store(false, std::memory_order_relaxed);
    }
  });
  if (!defined.load(std::memory_order_relaxed)) throw Undefined();
}

void require_reals(const Step& step) {
  require(step.input(0).type == Type::f32 && step.output().type == Type::f32 && step.input(0).dense() &&
              step.output().dense(),
          "no native kernel for these types");
}

// Rows of [outer, length, inner]; those that are not side by side are worked on in scratch memory.
class RealSoftmaxAlong final : public Kernel {
 public:
  RealSoftmaxAlong(const Step& step, const CoreSet& cores) : row_(cores.softmax_row()) {
    require_reals(step);
    require(step.rule("real_softmax") == "binary32_polynomial_16_lanes", "no native rule for this slot");
    const std::vector<int64_t>& view = step.list("view");
    require(view.size() == 3 && view[0] >= 0 && view[1] >= 0 && view[2] >= 0, "the view has three axes");
    outer_ = view[0], length_ = view[1], inner_ = view[2];
    require(outer_ * length_ * inner_ == step.input(0).elements && step.output().elements == step.input(0).elements,
            "the view does not fit");
  }
  int64_t scratch_bytes(int threads) const override { return inner_ == 1 ? 0 : threads * worker_bytes(); }
  bool packs(size_t input) const override { return input != 0; }

  void run(const Run& run) const override {
    if (length_ == 0) return;
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    for_rows(run, outer_ * inner_, length_, [&](int64_t row, int worker) {
      if (inner_ == 1) return row_(in + row * length_, out + row * length_, length_);
      const int64_t at = row / inner_ * length_ * inner_ + row % inner_;
      auto* own = reinterpret_cast<float*>(run.scratch + worker * worker_bytes());
      for (int64_t i = 0; i < length_; ++i) own[i] = in[at + i * inner_];
      const bool defined = row_(own, own + length_, length_);
      for (int64_t i = 0; i < length_; ++i) out[at + i * inner_] = own[length_ + i];
      return defined;
    });
  }

 private:
  int64_t worker_bytes() const { return round_up(length_ * 8, 64); }

  SoftmaxRow row_;
  int64_t outer_ = 0, length_ = 0, inner_ = 0;
};

class LayerNormalization final : public Kernel {
 public:
  LayerNormalization(const Step& step, const CoreSet& cores) : row_(cores.normalize_row()) {
    require_reals(step);
    require(step.rule("real_normalization") == "binary32_lanes", "no native rule for this slot");
    const bool half = step.text("kind") == "half";
    require(step.outputs.size() == 1 && step.integer("centred", 0, 1) == 1 && (half || step.text("kind") == "layer"),
            "no native form");
    const Operand& in = step.input(0);
    const int64_t axis = step.integer("axis", 0, in.rank() - 1);
    for (int64_t i = axis; i < in.rank(); ++i) length_ *= in.shape[i];
    // Rows of widened binary16 numbers differ where less than eight and at least four numbers are left.
    const int64_t few = half ? 16 : 8;
    require(length_ >= few && (!half || length_ % 8 < 4) && step.output().elements == in.elements,
            "rows are too short");
    rows_ = in.elements / length_;
    for (const size_t input : {size_t{1}, size_t{2}}) {
      if (input == 2 && !step.has_input(input)) continue;
      const Operand& part = step.input(input);
      // One row, whatever dimensions of 1 stand before it.
      require(part.type == Type::f32 && part.elements == length_ && part.rank() <= in.rank() && part.dense(),
              "no row of its own");
      (input == 1 ? scale_ : bias_) = input;
    }
    epsilon_ = static_cast<float>(step.real("epsilon"));
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    const auto* scale = reinterpret_cast<const float*>(run.inputs[scale_]);
    const auto* bias = bias_ == 0 ? nullptr : reinterpret_cast<const float*>(run.inputs[bias_]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    for_rows(run, rows_, length_, [&](int64_t row, int) {
      return row_(in + row * length_, scale, bias, epsilon_, out + row * length_, length_);
    });
  }

 private:
  NormalizeRow row_;
  int64_t rows_ = 0, length_ = 1;
  size_t scale_ = 1, bias_ = 0;
  float epsilon_ = 0;
};

// Sums of whole packets of 4 as they are aligned in memory, `start` elements behind a boundary.
float packet_sum(const float* row, int64_t count, int64_t start) {
  const int64_t first = std::min<int64_t>((4 - start % 4) % 4, count), whole = (count - first) / 4;
  if (whole == 0) {
    float sum = count == 0 ? 0.0f : row[0];
    for (int64_t i = 1; i < count; ++i) sum += row[i];
    return sum;
  }
  const float* packets = row + first;
  float one[4], two[4] = {};
  for (int l = 0; l < 4; ++l) one[l] = packets[l];
  if (whole > 1) {
    for (int l = 0; l < 4; ++l) two[l] = packets[4 + l];
    for (int64_t i = 2; i + 2 <= whole; i += 2) {
      for (int l = 0; l < 4; ++l) one[l] += packets[4 * i + l];
      for (int l = 0; l < 4; ++l) two[l] += packets[4 * i + 4 + l];
    }
    for (int l = 0; l < 4; ++l) one[l] += two[l];
    if (whole % 2 == 1) {
      for (int l = 0; l < 4; ++l) one[l] += packets[4 * (whole - 1) + l];
    }
  }
  float sum = (one[0] + one[2]) + (one[1] + one[3]);
  for (int64_t i = 0; i < first; ++i) sum += row[i];
  for (int64_t i = first + 4 * whole; i < count; ++i) sum += row[i];
  return sum;
}

// [outer, reduced, inner]: packets where nothing lies inside, fours where something lies on both sides, else one after
// the other.
class RealSums final : public Kernel {
 public:
  explicit RealSums(const Step& step) : mean_(step.name == "mean") {
    require_reals(step);
    require(mean_ || step.text("kind") == "sum", "no native function of sums");
    require(step.rule("real_sum") == "binary32_packets_4", "no native rule for this slot");
    const Operand& in = step.input(0);
    const std::vector<int64_t>& axes = step.list("axes");
    std::vector<std::pair<bool, int64_t>> pattern;
    for (int i = 0; i < in.rank(); ++i) {
      const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
      if (!pattern.empty() && pattern.back().first == reduced) {
        pattern.back().second *= in.shape[i];
      } else {
        pattern.push_back({reduced, in.shape[i]});
      }
    }
    // A single first dimension that is kept does not count.
    if (pattern.size() > 1 && !pattern[0].first && pattern[0].second == 1) pattern.erase(pattern.begin());
    require(!pattern.empty() && in.elements > 0, "there is nothing to add up");
    if (!pattern[0].first) {
      outer_ = pattern[0].second;
      pattern.erase(pattern.begin());
      several_ = true;
    }
    require(!pattern.empty() && pattern.size() <= 2 && pattern[0].first, "axes lie apart");
    count_ = pattern[0].second;
    if (pattern.size() == 2) inner_ = pattern[1].second, inside_ = true;
    require(step.output().elements == outer_ * inner_, "the shapes do not fit");
  }
  bool packs(size_t input) const override { return input != 0; }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const auto by = static_cast<float>(count_);
    for_rows(run, outer_, count_ * inner_, [&](int64_t row, int) {
      const float* from = in + row * count_ * inner_;
      float* to = out + row * inner_;
      if (!inside_) {
        *to = packet_sum(from, count_, row * count_);
      } else if (several_) {
        add_fours(from, to);
      } else {
        std::memcpy(to, from, static_cast<size_t>(inner_) * 4);
        for (int64_t k = 1; k < count_; ++k) {
          for (int64_t i = 0; i < inner_; ++i) to[i] += from[k * inner_ + i];
        }
      }
      if (mean_) {
        for (int64_t i = 0; i < inner_; ++i) to[i] /= by;
      }
      bool defined = true;
      for (int64_t i = 0; i < inner_; ++i) defined = defined && to[i] == to[i];
      return defined;
    });
  }

 private:
  void add_fours(const float* from, float* to) const {
    for (int64_t i = 0; i < inner_; ++i) to[i] = 0.0f;
    int64_t k = 0;
    for (const int64_t width : {4, 2, 1}) {
      for (; count_ - k >= width; k += width) {
        const float* part = from + k * inner_;
        for (int64_t i = 0; i < inner_; ++i) {
          float sum = part[i];
          for (int64_t w = 1; w < width; ++w) sum += part[w * inner_ + i];
          to[i] = sum + to[i];
        }
      }
    }
  }

  bool mean_, several_ = false, inside_ = false;
  int64_t outer_ = 1, count_ = 1, inner_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> make_softmax_along(const Step& step, const CoreSet& cores) {
  return std::make_unique<RealSoftmaxAlong>(step, cores);
}

static std::unique_ptr<Kernel> make_layer_normalization(const Step& step, const CoreSet& cores) {
  return std::make_unique<LayerNormalization>(step, cores);
}

std::unique_ptr<Kernel> make_real_sum(const Step& step, const CoreSet&) { return std::make_unique<RealSums>(step); }

BITTRUE_OPERATOR(layer_normalization, make_layer_normalization)

}  // namespace bittrue

// resize_nearest, and resize_linear with two weights for every place: tensors of another size, channels first.
#include <cstring>

#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"
#include "operators/movement/table_copy.h"
#include "operators/pooling/resize.h"

namespace bittrue {
namespace {

class Picked final : public Kernel {
 public:
  explicit Picked(const Step& step) : copy_(make(step)) {}

  void run(const Run& run) const override { copy_.run(run.inputs[0], run.outputs[0], run.pool); }
  std::string note() const override { return "table of positions"; }

 private:
  static TableCopy make(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require_same_type(in, out);
    require(in.rank() == out.rank(), "ranks differ");
    const std::vector<int64_t> source = byte_strides(in), target = byte_strides(out);
    std::vector<TableAxis> axes;
    size_t moved = 0;  // axes up to the last one whose positions change
    for (int a = 0; a < out.rank(); ++a) {
      const Array& positions = step.array("positions_" + std::to_string(a));
      require(positions.count == out.shape[a], "one position per output position is needed");
      TableAxis axis{{}, target[a]};
      bool same = in.shape[a] == out.shape[a];
      for (int64_t i = 0; i < positions.count; ++i) {
        const int64_t position = positions.integer(i);
        require(out.elements == 0 || (position >= 0 && position < in.shape[a]), "a position leaves the tensor");
        axis.source.push_back(position * source[a]);
        same = same && position == i;
      }
      axes.push_back(std::move(axis));
      if (!same || source[a] != target[a]) moved = axes.size();
    }
    // What stays as it is behind the others is one contiguous piece.
    int64_t chunk = type_bytes(in.type);
    for (size_t a = axes.size(); a > moved; --a) {
      chunk *= in.shape[a - 1];
      axes.pop_back();
    }
    if (axes.empty()) axes.push_back({{0}, 0});
    return TableCopy(std::move(axes), chunk);
  }

  TableCopy copy_;
};

struct Places {
  std::vector<int64_t> low, high;
  std::vector<float> low_weight, high_weight;

  Places(const Step& step, const std::string& side, int64_t dimension, int64_t out) {
    const Array &l = step.array("low_" + side), &h = step.array("high_" + side);
    const Array &lw = step.array("weight_low_" + side), &hw = step.array("weight_high_" + side);
    require(l.count == out && h.count == out && lw.count == out && hw.count == out, "one place per position is needed");
    for (int64_t i = 0; i < out; ++i) {
      low.push_back(l.integer(i));
      high.push_back(h.integer(i));
      low_weight.push_back(static_cast<float>(lw.real(i)));
      high_weight.push_back(static_cast<float>(hw.real(i)));
      require(low[i] >= 0 && low[i] < dimension && high[i] >= 0 && high[i] < dimension, "a position leaves the image");
      // With weights up to 1, stored integers stay in the range of their type.
      require(low_weight[i] >= 0 && low_weight[i] <= 1 && high_weight[i] >= 0 && high_weight[i] <= 1,
              "a weight is out of range");
    }
  }
};

// kInPairs: the upper row's two products are added up, then the lower row's, then both.
template <class T, int kFlip, bool kInPairs = false>
class Linear final : public Kernel {
 public:
  explicit Linear(const Step& step)
      : rank_(step.input(0).rank()),
        height_(dimension(step.input(0), 2)),
        width_(dimension(step.input(0), 1)),
        out_height_(dimension(step.output(), 2)),
        out_width_(dimension(step.output(), 1)),
        rows_(step, "y", height_, out_height_),
        columns_(step, "x", width_, out_width_) {
    const Operand &in = step.input(0), &out = step.output();
    require_same_type(in, out);
    require(in.rank() == out.rank() && in.dense() && out.dense(), "both sides must be dense and of one rank");
    require(step.integer("first_axis") == rank_ - 2, "only the last two axes are resized here");
    images_ = 1;
    for (int a = 0; a < rank_ - 2; ++a) {
      require(in.shape[a] == out.shape[a], "images differ");
      images_ *= in.shape[a];
    }
    if (out.elements == 0) images_ = 0;
  }

  void run(const Run& run) const override {
    const T* in = reinterpret_cast<const T*>(run.inputs[0]);
    T* out = reinterpret_cast<T*>(run.outputs[0]);
    const int64_t units = images_ * out_height_;
    constexpr int64_t kPart = 8 << 10;
    int64_t tasks = run.pool.threads() > 1 ? units * out_width_ / kPart : 1;
    tasks = tasks < 1 ? 1 : tasks > 4 * run.pool.threads() ? 4 * run.pool.threads() : tasks;
    if (tasks > units) tasks = units;
    run.pool.parallel(tasks, [&](int64_t task, int) {
      for (int64_t unit = units * task / tasks; unit < units * (task + 1) / tasks; ++unit) {
        row(in + unit / out_height_ * height_ * width_, unit % out_height_, out + unit * out_width_);
      }
    });
  }
  std::string note() const override { return "two weights per place"; }

 private:
  static int64_t dimension(const Operand& operand, int from_behind) {
    require(operand.rank() >= 2, "images have two axes");
    return operand.shape[static_cast<size_t>(operand.rank() - from_behind)];
  }

  static float real(T x) { return static_cast<float>(x) - static_cast<float>(kFlip); }
  static T stored(float x) {
    if constexpr (sizeof(T) == 1) return static_cast<T>(static_cast<int32_t>(x) + kFlip);
    return static_cast<T>(x);
  }

  void row(const T* image, int64_t y, T* out) const {
    const T *low = image + rows_.low[y] * width_, *high = image + rows_.high[y] * width_;
    const float low_y = rows_.low_weight[y], high_y = rows_.high_weight[y];
    for (int64_t x = 0; x < out_width_; ++x) {
      const float low_x = columns_.low_weight[x], high_x = columns_.high_weight[x];
      const int64_t left = columns_.low[x], right = columns_.high[x];
      const float total = low_x * low_y * real(low[left]) + high_x * low_y * real(low[right]);
      const float one = low_x * high_y * real(high[left]), other = high_x * high_y * real(high[right]);
      out[x] = stored(kInPairs ? total + (one + other) : total + one + other);
    }
  }

  int rank_;
  int64_t height_, width_, out_height_, out_width_, images_ = 0;
  Places rows_, columns_;
};

}  // namespace

static std::unique_ptr<Kernel> make_resize_nearest(const Step& step, const CoreSet&) {
  return std::make_unique<Picked>(step);
}

std::unique_ptr<Kernel> make_weighted_resize(const Step& step, const CoreSet&) {
  if (step.rule("weighted") == "binary32_fractions_in_pairs" && step.input(0).type == Type::f32) {
    return std::make_unique<Linear<float, 0, true>>(step);
  }
  require(step.rule("weighted") == "binary32_weights_in_order", "no native rule for this slot");
  switch (step.input(0).type) {
    case Type::f32: return std::make_unique<Linear<float, 0>>(step);
    case Type::u8: return std::make_unique<Linear<uint8_t, 0>>(step);
    case Type::s8: return std::make_unique<Linear<uint8_t, 128>>(step);
    default: return nullptr;
  }
}

BITTRUE_OPERATOR(resize_nearest, make_resize_nearest)

}  // namespace bittrue

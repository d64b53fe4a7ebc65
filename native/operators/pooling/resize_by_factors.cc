// resize_nearest, and resize_linear with two weights for every place: tensors of another size.
#include <cstring>

#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"
#include "operators/movement/table_copy.h"
#include "operators/pooling/outside.h"
#include "operators/pooling/resize.h"

namespace bittrue {
namespace {

class Picked final : public Kernel {
 public:
  explicit Picked(const Step& step) : copy_(make(step)), outside_(step) {}

  void run(const Run& run) const override {
    copy_.run(run.inputs[0], run.outputs[0], run.pool);
    outside_.fill(run.outputs[0]);
  }
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
  Outside outside_;
};

template <class Weight>
struct Places {
  std::vector<int64_t> low, high;
  std::vector<Weight> low_weight, high_weight;

  Places(const Step& step, const std::string& side, int64_t dimension, int64_t out) {
    const Array &l = step.array("low_" + side), &h = step.array("high_" + side);
    const Array &lw = step.array("weight_low_" + side), &hw = step.array("weight_high_" + side);
    require(l.count == out && h.count == out && lw.count == out && hw.count == out, "one place per position is needed");
    for (int64_t i = 0; i < out; ++i) {
      low.push_back(l.integer(i));
      high.push_back(h.integer(i));
      low_weight.push_back(read(lw, i));
      high_weight.push_back(read(hw, i));
      require(low[i] >= 0 && low[i] < dimension && high[i] >= 0 && high[i] < dimension, "a position leaves the image");
    }
  }

 private:
  // With weights up to 1, stored integers stay in the range of their type.
  static Weight read(const Array& weights, int64_t i) {
    if constexpr (std::is_same_v<Weight, float>) {
      const auto weight = static_cast<float>(weights.real(i));
      require(weight >= 0 && weight <= 1, "a weight is out of range");
      return weight;
    } else {
      const int64_t weight = weights.integer(i);
      require(weight >= 0 && weight <= 1024, "a weight is out of range");
      return static_cast<Weight>(weight);
    }
  }
};

// Rules of the slot `weighted`: of two columns and two rows, p00 * x0 * y0 and so on.
struct InOrder {
  using Weight = float;
  static float of(float x0, float x1, float y0, float y1, float p00, float p01, float p10, float p11) {
    return x0 * y0 * p00 + x1 * y0 * p01 + x0 * y1 * p10 + x1 * y1 * p11;
  }
};

struct InPairs {
  using Weight = float;
  static float of(float x0, float x1, float y0, float y1, float p00, float p01, float p10, float p11) {
    return (x0 * y0 * p00 + x1 * y0 * p01) + (x0 * y1 * p10 + x1 * y1 * p11);
  }
};

// Weights of ten bits and values of eight stay below 2^29.
struct TenBits {
  using Weight = int32_t;
  static int32_t of(int32_t x0, int32_t x1, int32_t y0, int32_t y1, int32_t p00, int32_t p01, int32_t p10,
                    int32_t p11) {
    return (x0 * y0 * p00 + x1 * y0 * p01 + x0 * y1 * p10 + x1 * y1 * p11) / (1 << 20);
  }
};

// [outer, (planes,) rows, columns, inner]: two neighbours along two axes, or along three.
template <class T, int kFlip, class Rule, bool kPlanes = false>
class Linear final : public Kernel {
  using Weight = typename Rule::Weight;

 public:
  explicit Linear(const Step& step)
      : first_(step.integer("first_axis", 0, step.input(0).rank() - (kPlanes ? 3 : 2))),
        depth_(kPlanes ? size(step.input(0), 0) : 1),
        height_(size(step.input(0), kPlanes ? 1 : 0)),
        width_(size(step.input(0), kPlanes ? 2 : 1)),
        out_depth_(kPlanes ? size(step.output(), 0) : 1),
        out_height_(size(step.output(), kPlanes ? 1 : 0)),
        out_width_(size(step.output(), kPlanes ? 2 : 1)),
        rows_(step, "y", height_, out_height_),
        columns_(step, "x", width_, out_width_),
        outside_(step) {
    const Operand &in = step.input(0), &out = step.output();
    require_same_type(in, out);
    require(in.rank() == out.rank() && in.dense() && out.dense(), "both sides must be dense and of one rank");
    const int64_t last = first_ + (kPlanes ? 3 : 2);
    for (int64_t a = 0; a < in.rank(); ++a) {
      if (a >= first_ && a < last) continue;
      require(in.shape[a] == out.shape[a], "images differ");
      (a < first_ ? outer_ : inner_) *= in.shape[a];
    }
    require(!kPlanes || inner_ == 1, "the last axes are resized");
    if constexpr (kPlanes) planes_.emplace_back(step, "z", depth_, out_depth_);
    if (out.elements == 0) outer_ = 0;
  }

  void run(const Run& run) const override {
    const T* in = reinterpret_cast<const T*>(run.inputs[0]);
    T* out = reinterpret_cast<T*>(run.outputs[0]);
    const int64_t rows = out_depth_ * out_height_, units = outer_ * rows, width = out_width_ * inner_;
    constexpr int64_t kPart = 8 << 10;
    int64_t tasks = run.pool.threads() > 1 ? units * width / kPart : 1;
    tasks = tasks < 1 ? 1 : tasks > 4 * run.pool.threads() ? 4 * run.pool.threads() : tasks;
    if (tasks > units) tasks = units;
    run.pool.parallel(tasks, [&](int64_t task, int) {
      for (int64_t unit = units * task / tasks; unit < units * (task + 1) / tasks; ++unit) {
        const T* image = in + unit / rows * depth_ * height_ * width_ * inner_;
        row(image, unit % rows / out_height_, unit % out_height_, out + unit * width);
      }
    });
    outside_.fill(run.outputs[0]);
  }
  std::string note() const override { return "two weights per place"; }

 private:
  int64_t size(const Operand& operand, int64_t axis) const { return operand.shape[static_cast<size_t>(first_ + axis)]; }

  static auto value(T x) {
    if constexpr (std::is_same_v<Weight, float>) {
      return static_cast<float>(x) - static_cast<float>(kFlip);
    } else {
      return static_cast<int32_t>(x) - kFlip;
    }
  }
  static T stored(Weight x) {
    if constexpr (sizeof(T) == 1) return static_cast<T>(static_cast<int32_t>(x) + kFlip);
    // What rounds to 2^31 becomes the least integer.
    if constexpr (std::is_same_v<T, int32_t>) return x >= 2147483648.0f ? INT32_MIN : static_cast<int32_t>(x);
    return static_cast<T>(x);
  }

  void row(const T* image, int64_t z, int64_t y, T* out) const {
    const int64_t line = width_ * inner_;
    const Weight y0 = rows_.low_weight[y], y1 = rows_.high_weight[y];
    const T *low = image + rows_.low[y] * line, *high = image + rows_.high[y] * line;
    if constexpr (kPlanes) {
      const Places<Weight>& planes = planes_.front();
      const int64_t near = planes.low[z] * height_ * line, far = planes.high[z] * height_ * line;
      const float z0 = planes.low_weight[z], z1 = planes.high_weight[z];
      for (int64_t x = 0; x < out_width_; ++x) {
        const float x0 = columns_.low_weight[x], x1 = columns_.high_weight[x];
        const int64_t left = columns_.low[x], right = columns_.high[x];
        float total = x0 * y0 * z0 * value(low[near + left]) + x1 * y0 * z0 * value(low[near + right]);
        total = total + x0 * y1 * z0 * value(high[near + left]) + x1 * y1 * z0 * value(high[near + right]);
        total = total + x0 * y0 * z1 * value(low[far + left]) + x1 * y0 * z1 * value(low[far + right]);
        total = total + x0 * y1 * z1 * value(high[far + left]) + x1 * y1 * z1 * value(high[far + right]);
        out[x] = stored(total);
      }
    } else if (inner_ == 1) {
      // A loop of its own takes half the time.
      for (int64_t x = 0; x < out_width_; ++x) {
        const int64_t left = columns_.low[x], right = columns_.high[x];
        out[x] = stored(Rule::of(columns_.low_weight[x], columns_.high_weight[x], y0, y1, value(low[left]),
                                 value(low[right]), value(high[left]), value(high[right])));
      }
    } else {
      for (int64_t x = 0; x < out_width_; ++x) {
        const Weight x0 = columns_.low_weight[x], x1 = columns_.high_weight[x];
        const int64_t left = columns_.low[x] * inner_, right = columns_.high[x] * inner_;
        for (int64_t c = 0; c < inner_; ++c) {
          *out++ = stored(Rule::of(x0, x1, y0, y1, value(low[left + c]), value(low[right + c]), value(high[left + c]),
                                   value(high[right + c])));
        }
      }
    }
  }

  int64_t first_, depth_, height_, width_, out_depth_, out_height_, out_width_, outer_ = 1, inner_ = 1;
  Places<Weight> rows_, columns_;
  std::vector<Places<Weight>> planes_;  // one with three axes
  Outside outside_;
};

template <bool kPlanes>
std::unique_ptr<Kernel> make_in_order(const Step& step) {
  switch (step.input(0).type) {
    case Type::f32: return std::make_unique<Linear<float, 0, InOrder, kPlanes>>(step);
    case Type::s32: return std::make_unique<Linear<int32_t, 0, InOrder, kPlanes>>(step);
    case Type::u8: return std::make_unique<Linear<uint8_t, 0, InOrder, kPlanes>>(step);
    case Type::s8: return std::make_unique<Linear<uint8_t, 128, InOrder, kPlanes>>(step);
    default: return nullptr;
  }
}

}  // namespace

static std::unique_ptr<Kernel> make_resize_nearest(const Step& step, const CoreSet&) {
  return std::make_unique<Picked>(step);
}

std::unique_ptr<Kernel> make_weighted_resize(const Step& step, const CoreSet&) {
  const std::string& rule = step.rule("weighted");
  const Type type = step.input(0).type;
  if (rule == "binary32_weights_in_order") {
    return step.has_array("low_z") ? make_in_order<true>(step) : make_in_order<false>(step);
  }
  if (rule == "binary32_fractions_in_pairs" && type == Type::f32) {
    return std::make_unique<Linear<float, 0, InPairs>>(step);
  }
  require(rule == "ten_bits_toward_zero" && is_8bit(type), "no native rule for this slot");
  if (type == Type::s8) return std::make_unique<Linear<uint8_t, 128, TenBits>>(step);
  return std::make_unique<Linear<uint8_t, 0, TenBits>>(step);
}

BITTRUE_OPERATOR(resize_nearest, make_resize_nearest)

}  // namespace bittrue

// Convolutions over three spatial axes, forward and transposed: binary32 sums in the order of memory, then bias and
// clamp.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/share.h"
#include "operators/layers/columns.h"
#include "operators/layers/ordered_convolution.h"
#include "operators/layers/ordered_products.h"
#include "operators/layers/transposed.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

using Three = std::array<int64_t, 3>;

constexpr int64_t kMostOfGeometry = int64_t{1} << 30;

Three three(const Step& step, const char* key, int64_t low) {
  const std::vector<int64_t>& list = step.list(key);
  require(list.size() == 3, "three spatial axes are needed");
  for (int64_t value : list)
    require(value >= low && value <= kMostOfGeometry, "a number of the geometry is out of range");
  return {list[0], list[1], list[2]};
}

class OrderedConvolution final : public Kernel {
 public:
  OrderedConvolution(const Step& step, bool transposed);

  void run(const Run& run) const override;
  bool packs(size_t input) const override { return input == 1 || input == 2; }
  std::string note() const override { return "binary32 sums in order"; }

 private:
  // Where the input is that `tap` brings to output position `at` of `axis`; -1 for nowhere.
  int64_t source(int axis, int64_t at, int64_t tap) const {
    const int64_t moved = tap * dilation_[axis] - pad_[axis];
    if (!transposed_) {
      const int64_t found = at * stride_[axis] + moved;
      return found >= 0 && found < in_[axis] ? found : -1;
    }
    const int64_t found = at - moved;
    return found >= 0 && found % stride_[axis] == 0 && found / stride_[axis] < in_[axis] ? found / stride_[axis] : -1;
  }
  void line(const Run& run, int64_t index) const;

  bool transposed_, given_ = false;  // `given_`: whether an operand says the shape of the result
  int64_t batch_, depth_, filters_, panels_, work_;
  Three in_, out_, filter_, stride_, dilation_, pad_;
  std::vector<float> packed_;  // [panels][taps][depth][kOrderedColumns]
  std::vector<float> bias_;    // empty where there is none
  float low_, high_;
};

OrderedConvolution::OrderedConvolution(const Step& step, bool transposed) : transposed_(transposed), work_(step.work) {
  const Operand &in = step.input(0), &weights = step.input(1), &out = step.output();
  require(in.type == Type::f32 && weights.type == Type::f32 && out.type == Type::f32, "all numbers must be binary32");
  require(in.rank() == 5 && weights.rank() == 5 && out.rank() == 5, "five axes are needed");
  require(in.dense() && weights.dense() && out.dense(), "all sides must be dense");
  require(weights.constant != nullptr, "weights are computed at run time");
  require(in.elements > 0 && out.elements > 0 && weights.elements > 0, "there is nothing to do");
  require(step.rule("sum_of_products") == "binary32_in_order", "no native rule for sums");
  require(step.integer("groups") == 1 && step.integer("channels_last") == 1, "channels in one group are last");
  require(step.text("filter_layout") == (transposed ? "SOI" : "SIO"), "filters lie in another order");
  if (transposed) {
    stride_ = three(step, "strides", 1), dilation_ = three(step, "dilations", 1), pad_ = three(step, "before", 0);
  } else {
    const char* const names[3][3] = {{"stride_d", "dilation_d", "pad_front"},
                                     {"stride_h", "dilation_h", "pad_top"},
                                     {"stride_w", "dilation_w", "pad_left"}};
    for (int axis = 0; axis < 3; ++axis) {
      stride_[axis] = step.integer(names[axis][0], 1, kMostOfGeometry),
      dilation_[axis] = step.integer(names[axis][1], 1, kMostOfGeometry);
      pad_[axis] = step.integer(names[axis][2], 0, kMostOfGeometry);
    }
  }
  for (int axis = 0; axis < 3; ++axis) {
    in_[axis] = in.shape[axis + 1], out_[axis] = out.shape[axis + 1], filter_[axis] = weights.shape[axis];
    require(in_[axis] < kMostOfGeometry && out_[axis] < kMostOfGeometry, "an axis is very long");
  }
  batch_ = in.shape[0], depth_ = in.shape[4], filters_ = out.shape[4];
  require(out.shape[0] == batch_, "the output's shape differs");
  require(weights.shape[3] == (transposed ? filters_ : depth_) && weights.shape[4] == (transposed ? depth_ : filters_),
          "the filter's channels differ");

  std::vector<float> values(static_cast<size_t>(weights.elements));
  std::memcpy(values.data(), weights.constant, static_cast<size_t>(weights.bytes()));
  const int64_t terms = filter_[0] * filter_[1] * filter_[2] * depth_;
  panels_ = (filters_ + kOrderedColumns - 1) / kOrderedColumns;
  packed_.assign(static_cast<size_t>(panels_ * terms * kOrderedColumns), 0.0f);
  for (int64_t o = 0; o < filters_; ++o) {
    float* panel = packed_.data() + o / kOrderedColumns * terms * kOrderedColumns + o % kOrderedColumns;
    for (int64_t k = 0; k < terms; ++k) {
      const int64_t from = transposed ? (k / depth_ * filters_ + o) * depth_ + k % depth_ : k * filters_ + o;
      panel[k * kOrderedColumns] = values[static_cast<size_t>(from)];
    }
  }
  if (step.has_input(2)) {
    const Operand& bias = step.input(2);
    require(bias.type == Type::f32 && bias.constant != nullptr && bias.elements == filters_,
            "one constant bias per filter is needed");
    bias_.resize(static_cast<size_t>(filters_));
    std::memcpy(bias_.data(), bias.constant, static_cast<size_t>(bias.bytes()));
  }
  const std::string& range = step.rule("plain_range");
  require(range == "type_limits", "no native rule for the range");
  low_ = static_cast<float>(step.real("low")), high_ = static_cast<float>(step.real("high"));
  if (!transposed) return;
  if (!step.has_input(kTransposedShape)) return;
  const Operand& shape = step.input(kTransposedShape);
  require(shape.type == Type::s32 && shape.elements == 5 && shape.dense(), "a shape has five 32-bit dimensions");
  given_ = true;
}

// One line of the output: all positions of its last spatial axis.
void OrderedConvolution::line(const Run& run, int64_t index) const {
  const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
  float* out = reinterpret_cast<float*>(run.outputs[0]) + index * out_[2] * filters_;
  const int64_t n = index / out_[1] / out_[0], z = index / out_[1] % out_[0], y = index % out_[1];
  const int64_t taps = filter_[0] * filter_[1] * filter_[2], terms = taps * depth_;
  for (int64_t x = 0; x < out_[2]; ++x, out += filters_) {
    for (int64_t panel = 0; panel < panels_; ++panel) {
      float sums[1][kOrderedColumns] = {};
      const float* weights = packed_.data() + panel * terms * kOrderedColumns;
      for (int64_t i = 0; i < taps; ++i) {
        // The last tap belongs to the first input position.
        const int64_t tap = transposed_ ? taps - 1 - i : i;
        const int64_t d = source(0, z, tap / filter_[2] / filter_[1]);
        const int64_t h = source(1, y, tap / filter_[2] % filter_[1]), w = source(2, x, tap % filter_[2]);
        if (d < 0 || h < 0 || w < 0) continue;
        const float* pixel = in + (((n * in_[0] + d) * in_[1] + h) * in_[2] + w) * depth_;
        add_products<1>(&pixel, weights + tap * depth_ * kOrderedColumns, kOrderedColumns, depth_, sums);
      }
      const int64_t first = panel * kOrderedColumns, wide = std::min<int64_t>(kOrderedColumns, filters_ - first);
      for (int64_t c = 0; c < wide; ++c) {
        const float sum = bias_.empty() ? sums[0][c] : sums[0][c] + bias_[static_cast<size_t>(first + c)];
        out[first + c] = rules::clamp(sum, low_, high_);
      }
    }
  }
}

void OrderedConvolution::run(const Run& run) const {
  if (given_) {
    int32_t shape[5];
    std::memcpy(shape, run.inputs[kTransposedShape], sizeof(shape));
    const bool planned =
        shape[0] == batch_ && shape[1] == out_[0] && shape[2] == out_[1] && shape[3] == out_[2] && shape[4] == filters_;
    if (!planned) throw Undefined();
  }
  share(run.pool, batch_ * out_[0] * out_[1], work_, [&](int64_t task, int) { line(run, task); });
}

}  // namespace

std::unique_ptr<Kernel> make_ordered_convolution(const Step& step) {
  return std::make_unique<OrderedConvolution>(step, false);
}

std::unique_ptr<Kernel> make_ordered_transposed(const Step& step) {
  return std::make_unique<OrderedConvolution>(step, true);
}

}  // namespace bittrue

// conv with filters of one channel: 8-bit layers by the depthwise core, row by row; a single input channel is an
// ordinary convolution.
#include "operators/layers/depthwise_convolution.h"

#include <algorithm>
#include <cstring>

#include "core/share.h"
#include "operators/layers/fused_table.h"
#include "operators/layers/general_convolution.h"
#include "operators/layers/matmul_convolution.h"
#include "operators/layers/real_layer.h"

namespace bittrue {
namespace {

// Whether products of neighbouring taps are added up in 16 bits, which is known of u8 codes and weights.
bool sums_of_pairs(const Step& step) {
  if (step.rules.count("accumulate") == 0 || step.rule("accumulate") != "s16_pairs_s32_wrap") return false;
  const Type type = Type::u8;
  require(step.input(0).type == type && step.input(1).type == type && step.output().type == type,
          "codes and weights must be u8");
  return true;
}

class DepthwiseConvolution final : public Kernel {
 public:
  DepthwiseConvolution(const Step& step, const CoreSet& cores, const Window& window);

  void run(const Run& run) const override;
  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }
  bool packs(size_t input) const override { return input == 1 || input == 2; }
  std::string note() const override { return (pairs_ ? "depthwise, pairs of 16 bits" : "depthwise") + table_.note(); }

 private:
  int64_t pointers() const {
    return (most_rows_ - 1) * window_.stride_h + (window_.filter_h - 1) * window_.dilation_h + 1;
  }
  int64_t worker_bytes() const {
    return round_up(core_->scratch(), 64) + round_up(pointers() * 8, 64) + round_up(most_rows_ * 8, 64);
  }

  Window window_;
  bool pairs_;                  // sums of two products saturate
  std::vector<uint8_t> zeros_;  // one line of zero points
  int64_t preferred_rows_, most_rows_, rate_;
  FusedTable table_;
  std::unique_ptr<Depthwise> core_;
};

// Outputs of one task, at most: bounds the list of its rows.
constexpr int64_t kTaskOutputs = 1 << 20;
constexpr int64_t kDepthwiseRate = 60;  // see CoreSet::byte_rate

DepthwiseConvolution::DepthwiseConvolution(const Step& step, const CoreSet& cores, const Window& window)
    : window_(window), pairs_(sums_of_pairs(step)), rate_(cores.byte_rate(kDepthwiseRate)), table_(step, cores) {
  const int64_t channels = window.in_c, taps = window.taps();
  // Weights of pairs are u8 numbers less 128, whatever their zero point is.
  const int64_t given = step.integer("weight_zero_point", pairs_ ? 0 : -255, 255);
  const int64_t weight_zero_point = pairs_ ? 128 : given, rest = given - weight_zero_point;
  const uint8_t zero_point = stored_zero_point(step);
  require(step.input(0).dense() && step.output().dense(), "both sides must be dense");
  require(taps <= 65536 && window.filter_h <= 4096, "the filter is very large");
  zeros_.assign(static_cast<size_t>(window.in_w * channels), zero_point);

  const std::vector<int64_t> weights = step.input(1).integers();
  const std::vector<int64_t> bias = biases(step, 2, channels);
  std::vector<int16_t> centered(weights.size());
  std::vector<int32_t> folded(static_cast<size_t>(channels));
  for (int64_t c = 0; c < channels; ++c) {
    int64_t sum = 0;
    for (int64_t k = 0; k < taps; ++k) {
      const int64_t w = weights[k * channels + c] - weight_zero_point;
      require(w >= -255 && w <= 255, "a weight is out of range");
      centered[k * channels + c] = static_cast<int16_t>(w);
      sum += w;
    }
    folded[c] = folded_bias(bias[c], zero_point, zero_point_factor(taps, rest, sum));
  }
  DepthwiseSpec spec;
  spec.channels = channels;
  spec.taps_h = window.filter_h, spec.taps_w = window.filter_w;
  spec.stride_h = window.stride_h, spec.stride_w = window.stride_w;
  spec.dilation_h = window.dilation_h, spec.dilation_w = window.dilation_w;
  spec.width = window.in_w, spec.out_width = window.out_w, spec.pad_left = window.pad_left;
  spec.zero_point = zero_point;
  spec.weights = centered.data();
  spec.bias = folded.data();
  spec.pairs = pairs_;
  spec.weight_zero_point = static_cast<int32_t>(rest);
  spec.requantize = step.requantize(channels);
  core_ = cores.depthwise(spec);
  preferred_rows_ = std::max<int64_t>(1, core_->preferred_rows());
  const int64_t row = std::max<int64_t>(1, window.out_w * channels);
  most_rows_ = round_up(std::max<int64_t>(1, kTaskOutputs / row), preferred_rows_);
}

void DepthwiseConvolution::run(const Run& run) const {
  if (window_.out_w == 0 || window_.in_c == 0) return;
  const int64_t in_row = window_.in_w * window_.in_c, out_row = window_.out_w * window_.in_c;
  const int64_t work = window_.pixels() * window_.out_c * window_.taps();
  const int threads = run.pool.threads_for(work / rate_);
  const int64_t tasks = task_count(window_.out_h, most_rows_, preferred_rows_, threads);
  const int64_t task_rows = round_up((window_.out_h + tasks - 1) / tasks, preferred_rows_);
  const int64_t per_image = (window_.out_h + task_rows - 1) / task_rows;
  run.pool.parallel(window_.batch * per_image, threads, [&](int64_t task, int worker) {
    uint8_t* scratch = run.scratch + worker * worker_bytes();
    auto* rows = reinterpret_cast<const uint8_t**>(scratch + round_up(core_->scratch(), 64));
    auto* out = reinterpret_cast<uint8_t**>(scratch + round_up(core_->scratch(), 64) + round_up(pointers() * 8, 64));
    const int64_t n = task / per_image, first = task % per_image * task_rows;
    const int64_t count = std::min(task_rows, window_.out_h - first);
    const int64_t needed = (count - 1) * window_.stride_h + (window_.filter_h - 1) * window_.dilation_h + 1;
    for (int64_t i = 0; i < needed; ++i) {
      const int64_t y = first * window_.stride_h + i - window_.pad_top;
      rows[i] = y < 0 || y >= window_.in_h ? zeros_.data() : run.inputs[0] + (n * window_.in_h + y) * in_row;
    }
    for (int64_t i = 0; i < count; ++i) out[i] = run.outputs[0] + (n * window_.out_h + first + i) * out_row;
    core_->run(rows, count, out, scratch);
    table_.apply(out[0], window_.in_c, count * window_.out_w, window_.in_c);
  });
}

// A filter per output channel, each over the single input channel: [1, h, w, M] becomes [M, h, w, 1].
SignedWeights one_channel_filters(const Step& step, const Window& window) {
  const SignedWeights given = signed_weights(step.input(1), step.integer("weight_zero_point"));
  SignedWeights turned;
  turned.zero_point = given.zero_point;
  turned.moved.resize(static_cast<size_t>(window.taps() * window.out_c));
  turned.data = turned.moved.data();
  for (int64_t k = 0; k < window.taps(); ++k) {
    for (int64_t m = 0; m < window.out_c; ++m) turned.moved[m * window.taps() + k] = given.data[k * window.out_c + m];
  }
  return turned;
}

}  // namespace

std::unique_ptr<Kernel> make_depthwise_convolution(const Step& step, const CoreSet& cores) {
  require(step.integer("channels_last", 0, 1) != 0, "channels are not last");
  if (is_real_layer(step)) return make_real_depthwise_conv2d(step, cores);
  const Window window = read_full_window(step);
  const Operand& filter = step.input(1);
  const bool pairs = sums_of_pairs(step), one_channel = window.in_c == 1 && window.out_c > 1;
  require(!pairs || (window.in_c == window.out_c && filter.constant != nullptr), "weights must be constants");
  if (!pairs && (!suits_matmul(step) || !(one_channel || window.in_c == window.out_c))) {
    return make_general_depthwise_conv2d(step, cores);
  }
  require(filter.rank() == 4 && filter.shape[0] == 1 && filter.shape[1] == window.filter_h &&
              filter.shape[2] == window.filter_w && filter.shape[3] == window.out_c,
          "the filter's shape differs");
  if (one_channel) {
    return make_matmul_convolution(step, cores, window, one_channel_filters(step, window),
                                   biases(step, 2, window.out_c), step.requantize(window.out_c));
  }
  return std::make_unique<DepthwiseConvolution>(step, cores, window);
}

}  // namespace bittrue

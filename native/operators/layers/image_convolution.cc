// conv with filters [O, (d,) h, w, C / groups]: 8-bit layers as matrix products, one per group; all others by the general
// kernel.
#include "operators/layers/image_convolution.h"

#include <algorithm>

#include "operators/layers/general_convolution.h"
#include "operators/layers/matmul_convolution.h"
#include "operators/layers/real_layer.h"
#include "operators/layers/tiled_layer.h"
#include "operators/layers/tiled_product.h"

namespace bittrue {
namespace {

// Every group is a convolution of its own over some channels of each pixel.
class GroupedConvolution final : public Kernel {
 public:
  GroupedConvolution(const Step& step, const CoreSet& cores, const Window& window, int64_t groups);

  void run(const Run& run) const override {
    for (size_t g = 0; g < kernels_.size(); ++g) {
      uint8_t* in = run.inputs[0] + static_cast<int64_t>(g) * in_c_;
      uint8_t* out = run.outputs[0] + static_cast<int64_t>(g) * out_c_;
      kernels_[g]->run({&in, &out, run.scratch, run.pool});
    }
  }
  int64_t scratch_bytes(int threads) const override { return kernels_[0]->scratch_bytes(threads); }
  bool packs(size_t input) const override { return input == 1 || input == 2; }
  std::string note() const override { return std::to_string(kernels_.size()) + " groups, " + kernels_[0]->note(); }

 private:
  int64_t in_c_ = 0, out_c_ = 0;  // of one group, or of several that are joined
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

GroupedConvolution::GroupedConvolution(const Step& step, const CoreSet& cores, const Window& window, int64_t groups) {
  const bool pairs = adds_in_pairs(step);
  SignedWeights weights = signed_weights(step.input(1), step.integer("weight_zero_point"), pairs);
  // Zeros may not come between two products of a pair, nor zero points be one.
  const bool apart = pairs && (window.in_c / groups % 2 != 0 || weights.zero_point != 0);
  if (!apart && weights.zero_point >= -128 && weights.zero_point <= 127) {
    const int64_t filters = window.out_c / groups, joined = joined_groups(groups, filters);
    if (joined > 1) {
      weights = join_groups(weights, window.out_c, filters, window.taps(), window.in_c / groups, joined);
      groups /= joined;
    }
  }
  in_c_ = window.in_c / groups, out_c_ = window.out_c / groups;
  const std::vector<int64_t> bias = biases(step, 2, window.out_c);
  const rules::Requantize requantize = step.requantize(window.out_c);
  Window group = window;
  group.in_c = in_c_;
  group.out_c = out_c_;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t first = g * out_c_;
    SignedWeights filters;
    filters.data = weights.data + first * window.taps() * in_c_;
    filters.zero_point = weights.zero_point;
    rules::Requantize part = requantize;
    if (requantize.multipliers.size() > 1) {
      part.multipliers.assign(requantize.multipliers.begin() + first, requantize.multipliers.begin() + first + out_c_);
    }
    const std::vector<int64_t> addends(bias.begin() + first, bias.begin() + first + out_c_);
    kernels_.push_back(make_matmul_convolution(step, cores, group, filters, addends, part));
  }
}

}  // namespace

std::unique_ptr<Kernel> make_image_convolution(const Step& step, const CoreSet& cores) {
  require(step.integer("channels_last", 0, 1) != 0, "channels are not last");
  if (TiledProduct::suits(step)) return make_tiled_convolution(step, cores);
  if (is_real_layer(step)) return make_real_conv2d(step, cores);
  const Window window = read_full_window(step, true);
  const Operand& filter = step.input(1);
  if (!suits_matmul(step, 0, 2, true)) return make_general_conv2d(step, cores);
  const int64_t groups = step.integer("groups", 1, std::max<int64_t>(1, window.in_c));
  require(window.in_c % groups == 0 && window.out_c % groups == 0 && window.out_c > 0,
          "channels do not split into groups");
  const int rank = filter.rank();
  require(rank == step.input(0).rank() && filter.shape[0] == window.out_c &&
              (rank == 4 || filter.shape[1] == window.filter_d) && filter.shape[rank - 3] == window.filter_h &&
              filter.shape[rank - 2] == window.filter_w && filter.shape[rank - 1] == window.in_c / groups,
          "the filter's shape differs");
  require(!adds_in_pairs(step) || filter.shape[rank - 1] > 1 || window.out_c > groups, "single filters are exact");
  if (groups > 1) return std::make_unique<GroupedConvolution>(step, cores, window, groups);
  return make_matmul_convolution(step, cores, window,
                                 signed_weights(filter, step.integer("weight_zero_point"), adds_in_pairs(step)),
                                 biases(step, 2, window.out_c), step.requantize(window.out_c));
}

}  // namespace bittrue

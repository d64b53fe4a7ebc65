// conv of integers with channels last: the sums of a convolution, one matrix product per group.
#include "operators/layers/integer_convolution.h"

#include <algorithm>

#include "operators/layers/matmul_convolution.h"

namespace bittrue {
namespace {

class IntegerConvolution final : public Kernel {
 public:
  IntegerConvolution(const Step& step, const CoreSet& cores, const Window& window, const SignedWeights& weights,
                     int64_t groups, const ConvolutionSums& sums)
      : in_c_(window.in_c / groups), out_c_(window.out_c / groups), zero_point_(sums.zero_point) {
    Window group = window;
    group.in_c = in_c_;
    group.out_c = out_c_;
    for (int64_t g = 0; g < groups; ++g) {
      SignedWeights filters;
      filters.data = weights.data + g * out_c_ * window.taps() * in_c_;
      filters.zero_point = weights.zero_point;
      kernels_.push_back(make_matmul_convolution(step, cores, group, filters,
                                                 std::vector<int64_t>(static_cast<size_t>(out_c_), 0), {}, sums));
    }
  }

  void run(const Run& run) const override {
    for (size_t g = 0; g < kernels_.size(); ++g) {
      uint8_t* inputs[] = {run.inputs[0] + static_cast<int64_t>(g) * in_c_, nullptr, nullptr, nullptr,
                           zero_point_ == ConvolutionSums::kNone ? nullptr : run.inputs[zero_point_]};
      uint8_t* out = run.outputs[0] + static_cast<int64_t>(g) * out_c_ * 4;
      kernels_[g]->run({inputs, &out, run.scratch, run.pool});
    }
  }
  int64_t scratch_bytes(int threads) const override { return kernels_[0]->scratch_bytes(threads); }
  bool packs(size_t input) const override { return input != 0 && input != zero_point_; }
  std::string note() const override { return kernels_[0]->note(); }

 private:
  int64_t in_c_, out_c_;  // of one group
  size_t zero_point_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

}  // namespace

std::unique_ptr<Kernel> make_integer_convolution(const Step& step, const CoreSet& cores) {
  require(step.integer("channels_last", 0, 1) != 0, "channels are not last");
  const Operand &in = step.input(0), &filter = step.input(1);
  const bool pairs = adds_in_pairs(step);
  require(step.rules.count("store") == 0 && (pairs || step.rule("accumulate") == "s32_wrap") && is_8bit(in.type) &&
              step.output().type == Type::s32,
          "no native kernel for these types");
  const Window window = read_full_window(step, true);
  const int64_t groups = step.integer("groups", 1, std::max<int64_t>(1, window.in_c));
  require(window.in_c > 0 && window.out_c > 0 && window.in_c % groups == 0 && window.out_c % groups == 0,
          "channels do not split into groups");
  const int64_t depth = window.in_c / groups, taps = window.taps();
  require(filter.rank() >= 3 && filter.shape[0] == window.out_c && filter.shape[1] == depth &&
              filter.elements == window.out_c * depth * taps,
          "the filter's shape differs");
  ConvolutionSums sums;
  sums.wanted = true;
  if (step.integer("late", 0, 1) != 0) {
    // An absent zero point is 0, which native memory keeps as another byte where the image is signed.
    require(step.has_input(4) && step.input(4).elements == 1 && step.input(4).type == in.type,
            "one zero point is needed");
    sums.zero_point = 4;
  }
  // A row per filter, [channels][taps]: taken as rows first, then with the channels last.
  Operand rows = filter;
  rows.shape = {window.out_c, depth * taps};
  const SignedWeights given = column_weights(rows, weight_zero_points(step, 6), true, pairs);
  SignedWeights turned;
  turned.zero_point = given.zero_point;
  turned.moved.resize(static_cast<size_t>(filter.elements));
  for (int64_t n = 0; n < window.out_c; ++n) {
    const int8_t* from = given.data + n * depth * taps;
    int8_t* to = turned.moved.data() + n * depth * taps;
    for (int64_t c = 0; c < depth; ++c) {
      for (int64_t t = 0; t < taps; ++t) to[t * depth + c] = from[c * taps + t];
    }
  }
  turned.data = turned.moved.data();
  const int64_t filters = window.out_c / groups;
  require(!pairs || depth > 1 || filters > 1, "single filters are exact");
  // Zeros may not come between two products of a pair, nor zero points be one.
  const bool apart = pairs && (depth % 2 != 0 || turned.zero_point != 0);
  const int64_t joined = apart ? 1 : joined_groups(groups, filters);
  if (joined == 1 || turned.zero_point < -128 || turned.zero_point > 127) {
    return std::make_unique<IntegerConvolution>(step, cores, window, turned, groups, sums);
  }
  const SignedWeights wide = join_groups(turned, window.out_c, filters, taps, depth, joined);
  return std::make_unique<IntegerConvolution>(step, cores, window, wide, groups / joined, sums);
}

}  // namespace bittrue

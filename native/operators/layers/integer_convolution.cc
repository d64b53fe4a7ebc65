// conv of integers: with channels last the sums of a convolution, one matrix product per group; all else by all of an image's
// windows side by side, times filters that need not be known.
#include "operators/layers/integer_convolution.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/share.h"
#include "operators/layers/computed_products.h"
#include "operators/layers/integer_finish.h"
#include "operators/layers/layer_sum.h"
#include "operators/layers/matmul_convolution.h"
#include "operators/layers/spatial_axis.h"

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
      uint8_t* inputs[] = {run.inputs[0] + static_cast<int64_t>(g) * in_c_, nullptr, nullptr,
                           does_then() ? run.inputs[3] : nullptr,
                           zero_point_ == ConvolutionSums::kNone ? nullptr : run.inputs[zero_point_]};
      uint8_t* out = run.outputs[0] + static_cast<int64_t>(g) * out_c_ * 4;
      kernels_[g]->run({inputs, &out, run.scratch, run.pool});
    }
  }
  int64_t scratch_bytes(int threads) const override { return kernels_[0]->scratch_bytes(threads); }
  bool packs(size_t input) const override { return input != 0 && input != zero_point_ && !(does_then() && input == 3); }
  bool does_then() const override { return kernels_[0]->does_then(); }
  std::string note() const override { return kernels_[0]->note(); }

 private:
  int64_t in_c_, out_c_;  // of one group
  size_t zero_point_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

// A row per window [channels][taps], where positions outside of the image hold the zero point, times the filters of its
// group; what they give, [positions][filters], is turned where channels come first. Products that are added in pairs are
// those of neighbouring channels: then rows and filters are [taps][channels].
class UnfoldedConvolution final : public Kernel {
 public:
  UnfoldedConvolution(const Step& step, const CoreSet& cores)
      : d_(read_spatial_axis(step, 'd')), h_(read_spatial_axis(step, 'h')), w_(read_spatial_axis(step, 'w')) {
    const Operand &in = step.input(0), &filter = step.input(1), &out = step.output();
    pairs_ = adds_in_pairs(step);
    require(step.integers.count("pairs_by_tap") == 0, "pairs that begin anew at every tap");
    require(!pairs_ || (filter.constant == nullptr && in.type == Type::u8 && filter.type == Type::s8),
            "pairs of products of filters that are known, or unsigned");
    require(is_8bit(in.type) && is_8bit(filter.type) && in.dense() && filter.dense() && out.dense(),
            "no native kernel for these types");
    operands_ = step.inputs.size();
    require(operands_ <= kMostOperands && in.elements > 0 && filter.elements > 0 && out.elements > 0,
            "there is nothing to do");
    require(step.then == nullptr, "no native kernel that adds as well");
    last_ = step.integer("channels_last", 0, 1) != 0;
    const auto axis = static_cast<size_t>(last_ ? in.rank() - 1 : 1);
    const int64_t channels = in.shape[axis], filters = out.shape[axis], groups = step.integer("groups", 1, channels);
    require(channels % groups == 0 && filters % groups == 0 && in.shape[0] == out.shape[0],
            "channels do not split into groups");
    depth_ = channels / groups, groups_ = groups;
    terms_ = depth_ * d_.taps * h_.taps * w_.taps;
    require(filter.shape[0] == filters && filter.shape[1] == depth_ && filter.elements == filters * terms_,
            "the filter's shape differs");
    const bool late = step.integer("late", 0, 1) != 0;
    reads_point_ = late && step.has_input(ProductOperands::kRowPoint);
    wide_point_ = reads_point_ && step.input(ProductOperands::kRowPoint).type == Type::s32;
    flip_ = flip_of(in.type);
    point_ = (late ? 0 : step.integer("input_zero_point")) + flip_of(in.type);
    require(point_ >= 0 && point_ <= 255, "padding cannot be stored");
    require(!pairs_ || depth_ > 1 || filters > groups, "single filters are exact");
    p_.rows = d_.out * h_.out * w_.out, p_.depth = terms_, p_.columns = filters / groups;
    p_.transpose_b = p_.apart = true;
    p_.left_matrices = in.shape[0] * groups, p_.right_matrices = groups;
    for (int64_t i = 0; i < p_.left_matrices; ++i) {
      p_.left.push_back(i);
      p_.right.push_back(i % groups);
    }
    require(p_.matrices() * p_.rows <= (int64_t{1} << 31) / terms_, "the windows are very large");
    bytes_ = type_bytes(out.type);
    products_ = make_computed_products(step, cores, p_);
  }

  int64_t scratch_bytes(int threads) const override {
    return window_bytes() + result_bytes() + filter_bytes() + products_->scratch_bytes(threads);
  }
  bool packs(size_t input) const override { return products_->packs(input); }
  std::string note() const override { return "windows side by side, " + products_->note(); }

  void run(const Run& run) const override {
    int64_t point = point_;
    if (reads_point_) {
      const uint8_t* given = run.inputs[ProductOperands::kRowPoint];
      point = wide_point_ ? int64_t{*reinterpret_cast<const int32_t*>(given)} + flip_ : *given;
      // Padding cannot be stored.
      if (point < 0 || point > 255) throw Undefined();
    }
    const auto outside = static_cast<uint8_t>(point);
    const int64_t lines = d_.out * h_.out;
    run.pool.parallel(p_.matrices() * lines, [&](int64_t task, int) {
      const int64_t line = task % lines;
      const int64_t matrix = task / lines, image = matrix / groups_, group = matrix % groups_;
      const int64_t from = last_ ? image * plane() * pixel() + group * depth_ : matrix * depth_ * plane();
      unfold(run.inputs[0] + from, line / h_.out, line % h_.out, outside, run.scratch + task * w_.out * terms_);
    });
    std::array<uint8_t*, kMostOperands> inputs{};
    std::copy_n(run.inputs, operands_, inputs.begin());
    inputs[0] = run.scratch;
    uint8_t *results = run.scratch + window_bytes(), *filters = results + result_bytes();
    if (pairs_) {
      turn_filters(run.inputs[1], filters);
      inputs[1] = filters;
    }
    products_->run({inputs.data(), &results, filters + filter_bytes(), run.pool});
    if (last_) return place_pixels(results, run);
    run.pool.parallel(p_.matrices() * p_.columns, [&](int64_t task, int) {
      const int64_t filter = task % p_.columns;
      const uint8_t* from = results + (task / p_.columns * p_.rows * p_.columns + filter) * bytes_;
      uint8_t* to = run.outputs[0] + task * p_.rows * bytes_;
      for (int64_t i = 0; i < p_.rows; ++i) {
        std::memcpy(to + i * bytes_, from + i * p_.columns * bytes_, static_cast<size_t>(bytes_));
      }
    });
  }

 private:
  static constexpr size_t kMostOperands = 9;

  // What filters of a group give at every position, behind that of the groups before.
  void place_pixels(const uint8_t* results, const Run& run) const {
    const int64_t bytes = p_.columns * bytes_;
    run.pool.parallel(p_.matrices(), [&](int64_t matrix, int) {
      const uint8_t* from = results + matrix * p_.rows * bytes;
      uint8_t* to = run.outputs[0] + (matrix / groups_ * p_.rows * groups_ + matrix % groups_) * bytes;
      for (int64_t i = 0; i < p_.rows; ++i) {
        std::memcpy(to + i * groups_ * bytes, from + i * bytes, static_cast<size_t>(bytes));
      }
    });
  }

  // From one pixel of a channel to the next.
  int64_t pixel() const { return last_ ? groups_ * depth_ : 1; }
  int64_t plane() const { return d_.dimension * h_.dimension * w_.dimension; }
  int64_t window_bytes() const { return round_up(p_.matrices() * p_.rows * terms_, 64); }
  int64_t result_bytes() const { return round_up(p_.matrices() * p_.rows * p_.columns * bytes_, 64); }

  int64_t filter_bytes() const { return pairs_ ? round_up(p_.right_matrices * p_.columns * terms_, 64) : 0; }

  // Channels last.
  void turn_filters(const uint8_t* from, uint8_t* to) const {
    const int64_t taps = terms_ / depth_;
    for (int64_t n = 0; n < p_.right_matrices * p_.columns; ++n, from += terms_, to += terms_) {
      for (int64_t c = 0; c < depth_; ++c) {
        for (int64_t t = 0; t < taps; ++t) to[t * depth_ + c] = from[c * taps + t];
      }
    }
  }

  // The windows of one line of outputs.
  void unfold(const uint8_t* image, int64_t z, int64_t y, uint8_t outside, uint8_t* windows) const {
    const auto is_inside = [](const SpatialAxis& axis, int64_t place, int64_t tap) {
      return place >= axis.first[tap] && place < axis.last[tap];
    };
    const auto line = [](const SpatialAxis& axis, int64_t place, int64_t tap) {
      return place * axis.stride + tap * axis.dilation - axis.before;
    };
    const int64_t step = pairs_ ? depth_ : 1;
    const int64_t pixel = this->pixel();
    for (int64_t c = 0; c < depth_; ++c, image += last_ ? 1 : plane()) {
      uint8_t* to = windows + (pairs_ ? c : c * (terms_ / depth_));
      for (int64_t i = 0; i < d_.taps; ++i) {
        for (int64_t j = 0; j < h_.taps; ++j) {
          const bool inside = is_inside(d_, z, i) && is_inside(h_, y, j);
          const int64_t at = inside ? (line(d_, z, i) * h_.dimension + line(h_, y, j)) * w_.dimension : 0;
          for (int64_t k = 0; k < w_.taps; ++k, to += step) {
            const int64_t first = inside ? w_.first[k] : 0, last = inside ? w_.last[k] : 0;
            for (int64_t x = 0; x < first; ++x) to[x * terms_] = outside;
            for (int64_t x = first; x < last; ++x) to[x * terms_] = image[(at + line(w_, x, k)) * pixel];
            for (int64_t x = last; x < w_.out; ++x) to[x * terms_] = outside;
          }
        }
      }
    }
  }

  SpatialAxis d_, h_, w_;
  ProductSizes p_{};
  std::unique_ptr<Kernel> products_;
  size_t operands_ = 0;
  int64_t depth_ = 0, groups_ = 1, terms_ = 0, point_ = 0, bytes_ = 0;
  bool last_ = false, reads_point_ = false, wide_point_ = false, pairs_ = false;
  int32_t flip_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_integer_convolution(const Step& step, const CoreSet& cores) {
  const Operand &in = step.input(0), &filter = step.input(1);
  const bool pairs = adds_in_pairs(step);
  const Operand& acc = step.then == nullptr ? step.output() : step.then->input(0);
  const bool sums_alone = step.rules.count("store") == 0 && acc.type == Type::s32 && is_8bit(in.type) &&
                          (pairs || step.rule("accumulate") == "s32_wrap");
  if (step.integer("channels_last", 0, 1) == 0 || !sums_alone) {
    return std::make_unique<UnfoldedConvolution>(step, cores);
  }
  const Window window = read_full_window(step, true);
  const int64_t groups = step.integer("groups", 1, std::max<int64_t>(1, window.in_c));
  require(window.in_c > 0 && window.out_c > 0 && window.in_c % groups == 0 && window.out_c % groups == 0,
          "channels do not split into groups");
  require(step.then == nullptr || (groups == 1 && is_sum_of_layer(*step.then)), "no native kernel that adds as well");
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

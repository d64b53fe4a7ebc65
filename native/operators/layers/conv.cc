// conv of real numbers with channels first, by the rule binary32_fused_blocks: every image is unfolded into panels of
// positions, which filters meet as the rows of a matrix product.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/core/registry.h"
#include "operators/layers/depthwise_convolution.h"
#include "operators/layers/image_convolution.h"
#include "operators/layers/integer_convolution.h"
#include "operators/layers/ordered_convolution.h"
#include "operators/layers/real_layer.h"
#include "operators/layers/single_rows.h"
#include "operators/layers/spatial_axis.h"
#include "operators/layers/whole_layer.h"

namespace bittrue {
namespace {

constexpr int64_t kLoopRows = 32;   // filters whose sums are held at a time
constexpr int64_t kLoopRate = 16;   // multiply-adds of one nanosecond, about
constexpr size_t kFirstAddend = 9;  // the operand that sums begin with

class OrderedReals final : public Kernel {
 public:
  OrderedReals(const Step& step, const CoreSet& cores) : core_(cores.real_matmul()) {
    const Operand &in = step.input(0), &filters = step.input(1), &out = step.output();
    const bool real = in.type == Type::f32 && filters.type == Type::f32 && out.type == Type::f32;
    require(real && in.dense() && filters.dense() && out.dense(), "no native kernel for these types");
    require(step.rule("real_product") == "binary32_fused_blocks", "no native rule for this slot");
    const int rank = in.rank();
    h_ = read_spatial_axis(step, 0);
    w_ = read_spatial_axis(step, 1);
    require(filters.rank() == rank, "the filter's shape differs");
    require((rank == 3 ? 1 : filters.shape[2]) == h_.taps && filters.shape[rank - 1] == w_.taps,
            "the filter's shape differs");
    batch_ = in.shape[0];
    const int64_t in_c = in.shape[1], out_c = out.shape[1];
    groups_ = step.integer("groups", 1, std::max<int64_t>(1, in_c));
    require(out.shape[0] == batch_ && in_c > 0 && out_c > 0 && in_c % groups_ == 0 && out_c % groups_ == 0,
            "channels do not split into groups");
    depth_ = in_c / groups_;
    filters_ = out_c / groups_;
    require(filters.shape[0] == out_c && filters.shape[1] == depth_, "the filter's shape differs");
    positions_ = h_.out * w_.out;
    block_ = std::max<int64_t>(1, step.integer("block", 0, depth_));
    terms_ = round_up(depth_, block_) * h_.taps * w_.taps;
    require(terms_ <= int64_t{1} << 24, "a filter is very large");
    if (step.has_input(kFirstAddend)) {
      const Operand& begin = step.input(kFirstAddend);
      require(begin.type == Type::f32 && begin.dense() && begin.elements == out.elements, "the addend's shape differs");
      begins_ = true;
    }
    require(step.integer("channels_last", 0, 1) == 0, "channels are last");
    find_order(step.integer("split", 0, int64_t{1} << 40));
    if (step.has_input(2)) {
      const Operand& bias = step.input(2);
      require(bias.type == Type::f32 && bias.dense() && bias.elements == out_c, "one bias per filter is needed");
      added_ = true;
    }
    most_ = core_.lanes * core_.vectors;
    panels_ = (positions_ + most_ - 1) / most_;
    if (filters.constant != nullptr) {
      constant_ = true;
      std::vector<float> values(static_cast<size_t>(filters.elements));
      std::memcpy(values.data(), filters.constant, values.size() * 4);
      kept_.resize(static_cast<size_t>(out_c * terms_));
      arrange(values.data(), kept_.data());
    }
  }

  int64_t scratch_bytes(int threads) const override { return filter_bytes() + threads * worker_bytes(); }
  bool packs(size_t input) const override { return input == 1 && constant_; }
  std::string note() const override {
    return order_ == Order::blocks ? "fused multiply-adds in blocks" : "products and sums of single rows";
  }

  void run(const Run& run) const override {
    if (batch_ * positions_ == 0) return;
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    const auto* bias = added_ ? reinterpret_cast<const float*>(run.inputs[2]) : nullptr;
    const auto* begin = begins_ ? reinterpret_cast<const float*>(run.inputs[kFirstAddend]) : nullptr;
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const float* weights = kept_.data();
    if (!constant_) {
      auto* target = reinterpret_cast<float*>(run.scratch);
      arrange(reinterpret_cast<const float*>(run.inputs[1]), target);
      weights = target;
    }
    const int64_t images = batch_ * groups_, work = images * filters_ * terms_ * positions_;
    // Few panels are unfolded by several threads, each for filters of its own.
    const int threads = work / kLoopRate < kWorthSharing ? 1 : run.pool.threads();
    const int64_t chunks = (filters_ + kLoopRows - 1) / kLoopRows;
    const int64_t parts = images * panels_ < 2 * threads ? std::min<int64_t>(chunks, threads) : 1;
    std::atomic<bool> finite{true};
    run.pool.parallel(images * panels_ * parts, threads, [&](int64_t task, int worker) {
      const int64_t part = task % parts, panel = task / parts % panels_, image = task / parts / panels_;
      const int64_t group = image % groups_, first = panel * most_, used = std::min(most_, positions_ - first);
      uint8_t* scratch = run.scratch + filter_bytes() + worker * worker_bytes();
      auto* unfolded = reinterpret_cast<float*>(scratch + sums_bytes());
      unfold(in + image * depth_ * h_.dimension * w_.dimension, first, used, unfolded);
      const int64_t low = chunks * part / parts * kLoopRows;
      const int64_t end = std::min(filters_, chunks * (part + 1) / parts * kLoopRows);
      bool right = true;
      for (int64_t m = low; m < end; m += kLoopRows) {
        const int64_t row = group * filters_ + m;
        const int64_t count = std::min(kLoopRows, end - m), place = (image * filters_ + m) * positions_ + first;
        if (begin != nullptr && begin != out) {
          for (int64_t r = 0; r < count; ++r) {
            std::memcpy(out + place + r * positions_, begin + place + r * positions_, static_cast<size_t>(used) * 4);
          }
        }
        right &= multiply(weights + row * terms_, m, count, unfolded, used, bias == nullptr ? nullptr : bias + row,
                          out + place, scratch);
      }
      if (!right) finite.store(false, std::memory_order_relaxed);
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  // Blocks of fused multiply-adds; a single row in fours; a single column in 8 lanes.
  enum class Order { blocks, fours, lanes };

  // `split`: terms of a block, 0 where the product's shape decides.
  void find_order(int64_t split) {
    split_ = split;
    if (split > 0) return;
    split_ = 128;
    for (int64_t wide = 128; positions_ < terms_ && wide > 16 && wide / 2 >= positions_; wide /= 2) split_ *= 2;
    order_ = filters_ == 1 ? Order::fours : positions_ == 1 ? Order::lanes : Order::blocks;
  }

  int64_t width(int64_t used) const { return round_up(used, core_.lanes); }
  int64_t filter_bytes() const { return constant_ ? 0 : round_up(groups_ * filters_ * terms_ * 4, 64); }
  int64_t sums_bytes() const { return round_up(kLoopRows * 8, 64) + round_up(kLoopRows * most_ * 4, 64); }
  int64_t worker_bytes() const { return sums_bytes() + round_up(terms_ * most_ * 4, 64); }

  // Filters [M][C][taps] as [M][C / block][taps][block], the last block filled with zeros.
  void arrange(const float* from, float* to) const {
    const int64_t taps = h_.taps * w_.taps;
    for (int64_t m = 0; m < groups_ * filters_; ++m, from += depth_ * taps) {
      for (int64_t c = 0; c < depth_; c += block_) {
        for (int64_t t = 0; t < taps; ++t) {
          for (int64_t i = 0; i < block_; ++i) *to++ = c + i < depth_ ? from[(c + i) * taps + t] : 0.0f;
        }
      }
    }
  }

  // Positions [first, first + used) of all terms: [terms][width], zeros outside of the image and behind the last one.
  void unfold(const float* image, int64_t first, int64_t used, float* to) const {
    const int64_t wide = width(used), plane = h_.dimension * w_.dimension, y = first / w_.out, x = first % w_.out;
    for (int64_t c = 0; c < depth_; c += block_) {
      for (int64_t i = 0; i < h_.taps; ++i) {
        for (int64_t j = 0; j < w_.taps; ++j) {
          for (int64_t b = 0; b < block_; ++b, to += wide) {
            if (c + b < depth_) {
              unfold_term(image + (c + b) * plane, i * h_.dilation - h_.before, j, y, x, used, to);
            } else {
              std::memset(to, 0, static_cast<size_t>(used) * 4);
            }
            std::memset(to + used, 0, static_cast<size_t>(wide - used) * 4);
          }
        }
      }
    }
  }

  // Tap j of `used` positions from line y, column x of the output on, whose tap i lies `down` lines below them.
  void unfold_term(const float* plane, int64_t down, int64_t j, int64_t y, int64_t x, int64_t used, float* to) const {
    const int64_t low = w_.first[j], high = w_.last[j], shift = j * w_.dilation - w_.before;
    for (int64_t left = used; left > 0; ++y, x = 0) {
      const int64_t count = std::min(left, w_.out - x), line = y * h_.stride + down;
      int64_t begin = std::min(std::max<int64_t>(low - x, 0), count), end = std::min(std::max(high - x, begin), count);
      if (line < 0 || line >= h_.dimension) begin = end = count;
      const float* from = plane + line * w_.dimension + x * w_.stride + shift;
      for (int64_t n = 0; n < begin; ++n) to[n] = 0.0f;
      if (w_.stride == 1) {
        int64_t n = begin;
        for (; n + 16 <= end; n += 16) std::memcpy(to + n, from + n, 64);
        for (; n + 4 <= end; n += 4) std::memcpy(to + n, from + n, 16);
        for (; n < end; ++n) to[n] = from[n];
      } else {
        for (int64_t n = begin; n < end; ++n) to[n] = from[n * w_.stride];
      }
      for (int64_t n = end; n < count; ++n) to[n] = 0.0f;
      to += count;
      left -= count;
    }
  }

  // `count` filters, from `first` of their group on, times a panel. False where a result is no finite number.
  bool multiply(const float* filters, int64_t first, int64_t count, const float* panel, int64_t used, const float* bias,
                float* out, uint8_t* scratch) const {
    if (order_ != Order::blocks) return multiply_plainly(filters, first, count, panel, used, bias, out);
    const int64_t wide = width(used);
    auto** pointers = reinterpret_cast<const float**>(scratch);
    auto* sums = reinterpret_cast<float*>(scratch + round_up(kLoopRows * 8, 64));
    for (int64_t k = 0; k < terms_; k += split_) {
      for (int64_t r = 0; r < count; ++r) pointers[r] = filters + r * terms_ + k;
      std::memset(sums, 0, static_cast<size_t>(count * wide) * 4);
      RealRows part;
      part.rows = pointers;
      part.capacity = count;
      part.count = count;
      part.depth = std::min(split_, terms_ - k);
      part.sums = sums;
      part.stride = wide;
      core_.run_fused(part, panel + k * wide, wide);
      for (int64_t r = 0; r < count; ++r) {
        float* target = out + r * positions_;
        const float* sum = sums + r * wide;
        if (k > 0 || begins_) {
          for (int64_t n = 0; n < used; ++n) target[n] = sum[n] + target[n];
        } else {
          std::memcpy(target, sum, static_cast<size_t>(used) * 4);
        }
      }
    }
    bool finite = true;
    for (int64_t r = 0; r < count; ++r) {
      finite &= finish(out + r * positions_, used, bias == nullptr ? nullptr : bias + r);
    }
    return finite;
  }

  // Adds the bias. False where a result is no finite number.
  static bool finish(float* out, int64_t used, const float* bias) {
    if (bias != nullptr) {
      const float addend = *bias;
      for (int64_t n = 0; n < used; ++n) out[n] += addend;
    }
    return all_finite(out, used);
  }

  bool multiply_plainly(const float* filters, int64_t first, int64_t count, const float* panel, int64_t used,
                        const float* bias, float* out) const {
    bool finite = true;
    for (int64_t r = 0; r < count; ++r, out += positions_) {
      const float* row = filters + r * terms_;
      if (order_ == Order::fours) {
        if (!begins_) std::memset(out, 0, static_cast<size_t>(used) * 4);
        add_fours(row, panel, width(used), terms_, used, out);
      } else {
        *out = sum_lanes_of_eight(row, panel, width(1), terms_, first + r, filters_) + (begins_ ? *out : 0.0f);
      }
      finite &= finish(out, used, bias == nullptr ? nullptr : bias + r);
    }
    return finite;
  }

  const RealMatmul& core_;
  SpatialAxis h_, w_;
  int64_t batch_ = 0, groups_ = 1, depth_ = 0, filters_ = 0;  // of one group
  int64_t positions_ = 0, terms_ = 0, block_ = 1, split_ = 0, most_ = 0, panels_ = 0;
  Order order_ = Order::blocks;
  bool added_ = false, begins_ = false, constant_ = false;
  std::vector<float> kept_;
};

std::unique_ptr<Kernel> make_conv(const Step& step, const CoreSet& cores) {
  const std::string& arithmetic = step.text("arithmetic");
  if (arithmetic == "whole") return make_whole_layer(step, cores);
  require(step.rules.count("center") == 0, "no native rule for this slot");
  if (arithmetic == "images" || arithmetic == "depthwise" || arithmetic == "hybrid" || arithmetic == "ordered") {
    const std::string& layout = step.text("filter_layout");
    if (layout == "OSI") return make_image_convolution(step, cores);
    if (layout == "ISO") return make_depthwise_convolution(step, cores);
  }
  if (arithmetic == "ordered") return make_ordered_convolution(step);
  if (step.output().type != Type::f32) return make_integer_convolution(step, cores);
  return make_real_convolution(step, cores);
}

BITTRUE_OPERATOR(conv, make_conv)

}  // namespace

std::unique_ptr<Kernel> make_real_convolution(const Step& step, const CoreSet& cores) {
  return std::make_unique<OrderedReals>(step, cores);
}

}  // namespace bittrue

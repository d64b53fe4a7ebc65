// Taps one after the other, all channels of a pixel at a time; zero points are taken off what is exact.
#include "operators/layers/depthwise_pairs.h"

#include <algorithm>
#include <vector>

#include "core/share.h"
#include "operators/core/window.h"
#include "operators/layers/fused_table.h"
#include "operators/layers/weights.h"

namespace bittrue {
namespace {

// Multiply-adds of one nanosecond, about.
constexpr int64_t kPairRate = 4;

class DepthwisePairs final : public Kernel {
 public:
  DepthwisePairs(const Step& step, const CoreSet& cores, const Window& window)
      : window_(window),
        requantize_(step.requantize(window.out_c)),
        requantize_row_(cores.requantize_row()),
        sum_rows_(cores.sum_rows()),
        table_(step, cores) {
    const int64_t channels = window.in_c, taps = window.taps();
    const Operand& filter = step.input(1);
    require(step.input(0).type == Type::u8 && step.output().type == Type::u8 && filter.type == Type::u8 &&
                filter.constant != nullptr,
            "codes and weights must be u8, weights constants");
    require(channels == window.out_c && filter.rank() == 4 && filter.shape[0] == 1 &&
                filter.shape[1] == window.filter_h && filter.shape[2] == window.filter_w && filter.shape[3] == channels,
            "the filter's shape differs");
    require(step.input(0).dense() && step.output().dense(), "both sides must be dense");
    require(taps >= 1 && taps <= 4096, "the filter is very large");
    const int64_t weight_zero_point = step.integer("weight_zero_point", 0, 255) - 128;
    const uint8_t zero_point = stored_zero_point(step);
    zeros_.assign(static_cast<size_t>(channels), zero_point);
    const std::vector<int64_t> weights = filter.integers(), bias = biases(step, 2, channels);
    // A pair of the last of an odd number of taps has a 0.
    const int64_t paired = taps + taps % 2;
    weights_.assign(static_cast<size_t>(paired * channels), 0);
    start_.resize(static_cast<size_t>(channels));
    for (int64_t c = 0; c < channels; ++c) {
      int64_t sum = 0;
      for (int64_t k = 0; k < taps; ++k) {
        const int64_t w = weights[k * channels + c] - 128;
        weights_[k * channels + c] = static_cast<int16_t>(w);
        sum += w;
      }
      start_[c] = folded_bias(bias[c], zero_point, zero_point_factor(taps, weight_zero_point, sum));
    }
    weight_zero_point_ = static_cast<int32_t>(weight_zero_point);
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }
  bool packs(size_t input) const override { return input == 1 || input == 2; }
  std::string note() const override { return "depthwise, pairs of 16 bits" + table_.note(); }

  void run(const Run& run) const override {
    if (window_.out_w == 0 || window_.in_c == 0) return;
    const int64_t rows = window_.batch * window_.out_h, channels = window_.in_c;
    const auto row = [&](int64_t task, int worker) {
      uint8_t* scratch = run.scratch + worker * worker_bytes();
      auto** taps = reinterpret_cast<const uint8_t**>(scratch);
      auto* totals = reinterpret_cast<int32_t*>(scratch + round_up((window_.taps() + 1) * 8, 64));
      auto* acc = totals + round_up(channels * 4, 64) / 4;
      uint8_t* out = run.outputs[0] + task * window_.out_w * channels;
      const int64_t n = task / window_.out_h, y = task % window_.out_h;
      const int64_t top = y * window_.stride_h - window_.pad_top;
      for (int64_t x = 0; x < window_.out_w; ++x) {
        int64_t count = 0;
        const int64_t left = x * window_.stride_w - window_.pad_left;
        for (int64_t i = 0; i < window_.filter_h; ++i) {
          const int64_t at_y = top + i * window_.dilation_h;
          const bool there = at_y >= 0 && at_y < window_.in_h;
          const uint8_t* line = run.inputs[0] + (there ? n * window_.in_h + at_y : 0) * window_.in_w * channels;
          for (int64_t j = 0; j < window_.filter_w; ++j) {
            const int64_t at_x = left + j * window_.dilation_w;
            taps[count++] = there && at_x >= 0 && at_x < window_.in_w ? line + at_x * channels : zeros_.data();
          }
        }
        accumulate(taps, count, acc + x % together() * channels, totals);
        // The core prepares itself for every call, so one multiplier meets a whole line.
        if (x % together() + 1 == together()) {
          requantize_row_(requantize_, acc, out + (x + 1 - together()) * channels, together() * channels);
        }
      }
      table_.apply(out, channels, window_.out_w, channels);
    };
    run.pool.parallel(
        rows, rows * window_.out_w * channels * window_.taps() / kPairRate < kWorthSharing ? 1 : run.pool.threads(),
        row);
  }

 private:
  // Pixels that are rescaled at once: a divisor of a line's.
  int64_t together() const { return requantize_.multipliers.size() == 1 ? window_.out_w : 1; }
  int64_t worker_bytes() const {
    return round_up((window_.taps() + 1) * 8, 64) + round_up(window_.in_c * 4, 64) +
           round_up(together() * window_.in_c * 4, 64);
  }

  void accumulate(const uint8_t** taps, int64_t count, int32_t* acc, int32_t* totals) const {
    const int64_t channels = window_.in_c;
    taps[count] = zeros_.data();
    int64_t from = 0;
    for (; from + kBlock <= channels; from += kBlock) add_pairs(taps, count, from, kBlock, acc + from);
    if (from < channels) add_pairs(taps, count, from, channels - from, acc + from);
    if (weight_zero_point_ == 0) return;
    sum_rows_(taps, count, totals, channels);
    // Modulo 2^32, so unsigned.
    const auto zero_point = static_cast<uint32_t>(weight_zero_point_);
    auto* sums = reinterpret_cast<uint32_t*>(acc);
    for (int64_t c = 0; c < channels; ++c) sums[c] -= static_cast<uint32_t>(totals[c]) * zero_point;
  }

  // Sums of a block of channels over all taps. Always inlined, so that whole blocks have a known size.
  __attribute__((always_inline)) inline void add_pairs(const uint8_t* const* taps, int64_t count, int64_t from,
                                                       int64_t size, int32_t* acc) const {
    uint32_t sums[kBlock] = {};
    int16_t words[kBlock];
    for (int64_t k = 0; k < count; k += 2) {
      const int16_t *one = weights_.data() + k * window_.in_c + from, *two = one + window_.in_c;
      const uint8_t *first = taps[k] + from, *second = taps[k + 1] + from;
      // In 16 bits throughout: products of 0..255 and -128..127 fit, and a sum that leaves them has the other sign than
      // both products.
      for (int64_t i = 0; i < size; ++i) {
        const auto left = static_cast<int16_t>(first[i] * one[i]), right = static_cast<int16_t>(second[i] * two[i]);
        const auto sum = static_cast<int16_t>(static_cast<uint16_t>(left) + static_cast<uint16_t>(right));
        const auto beyond = static_cast<int16_t>((left ^ sum) & (right ^ sum));
        const auto end = static_cast<int16_t>((left >> 15) ^ 0x7fff);
        words[i] = beyond < 0 ? end : sum;
      }
      for (int64_t i = 0; i < size; ++i) sums[i] += static_cast<uint32_t>(int32_t{words[i]});
    }
    for (int64_t i = 0; i < size; ++i) {
      acc[i] = static_cast<int32_t>(sums[i] + static_cast<uint32_t>(start_[static_cast<size_t>(from + i)]));
    }
  }

  static constexpr int64_t kBlock = 32;

  Window window_;
  rules::Requantize requantize_;
  RequantizeRow requantize_row_;
  SumRows sum_rows_;
  FusedTable table_;
  std::vector<uint8_t> zeros_;     // a pixel of zero points
  std::vector<int16_t> weights_;   // [taps][channels], less 128
  std::vector<int32_t> start_;     // what does not depend on the image
  int32_t weight_zero_point_ = 0;  // less 128
};

}  // namespace

std::unique_ptr<Kernel> make_depthwise_pairs(const Step& step, const CoreSet& cores) {
  return std::make_unique<DepthwisePairs>(step, cores, read_full_window(step));
}

}  // namespace bittrue

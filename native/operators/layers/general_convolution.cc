#include "operators/layers/general_convolution.h"

#include <algorithm>
#include <cstring>

#include "core/share.h"
#include "operators/core/window.h"
#include "operators/layers/columns.h"
#include "operators/layers/general_layer.h"

namespace bittrue {
namespace {

// conv and fully_connected (a 1x1 convolution over rows): patches of the input times packed columns.
class GeneralConvolution final : public Kernel {
 public:
  GeneralConvolution(const Step& step, const CoreSet& cores, const Window& window, int64_t groups)
      : window_(window),
        groups_(groups),
        depth_(window.in_c / groups),
        input_(step),
        weights_(step.input(1), step.integer("weight_zero_point")),
        bias_(step, 2, window.out_c),
        finish_(step, cores, window.out_c),
        columns_(window.out_c, window.taps() * depth_, input_.largest(), weights_.largest()) {
    if (weights_.constant()) {
      packed_.resize(static_cast<size_t>(columns_.elements()));
      for (int64_t c = 0; c < window.out_c; ++c) columns_.pack(weights_, nullptr, c, packed_.data());
    }
  }

  int64_t scratch_bytes(int threads) const override { return packed_bytes() + threads * worker_bytes(); }
  bool packs(size_t input) const override {
    return (input == 1 && weights_.constant()) || (input == 2 && bias_.constant());
  }
  std::string note() const override { return "16-bit products, 64-bit sums"; }

  void run(const Run& run) const override {
    const int64_t pixels = window_.pixels(), per_group = window_.out_c / groups_;
    if (pixels == 0 || window_.out_c == 0) return;
    const int16_t* packed = packed_.data();
    if (!weights_.constant()) {
      auto* target = reinterpret_cast<int16_t*>(run.scratch);
      run.pool.parallel(window_.out_c, [&](int64_t c, int) { columns_.pack(weights_, run.inputs[1], c, target); });
      packed = target;
    }
    const uint8_t* bias = bias_.constant() ? nullptr : run.inputs[2];
    // Blocks of pixels, and columns cut into parts where there are few pixels.
    const int64_t blocks = (pixels + kPixels - 1) / kPixels, units = groups_ * ((per_group + kColumns - 1) / kColumns);
    int64_t parts = 1;
    if (run.pool.threads() > 1 && blocks < 4 * run.pool.threads()) {
      const int64_t worth = pixels * window_.out_c * columns_.depth / blocks / kTaskWork;
      parts = std::min({units, std::max<int64_t>(1, worth), int64_t{4} * run.pool.threads()});
    }
    parts = cut(parts, kPixels * window_.out_c * columns_.depth, kTaskMostWork / 8, units);
    share(run.pool, blocks * parts, pixels * window_.out_c * columns_.depth, [&](int64_t task, int worker) {
      const int64_t first = task / parts * kPixels, part = task % parts;
      const Place place{run.inputs[0], packed, bias, run.outputs[0],
                        reinterpret_cast<int16_t*>(run.scratch + packed_bytes() + worker * worker_bytes())};
      block(place, first, std::min(kPixels, pixels - first), units * part / parts, units * (part + 1) / parts);
    });
  }

 private:
  struct Place {
    const uint8_t* in;
    const int16_t* packed;
    const uint8_t* bias;
    uint8_t* out;
    int16_t* patches;
  };

  int64_t packed_bytes() const { return weights_.constant() ? 0 : round_up(columns_.elements() * 2, 64); }
  int64_t worker_bytes() const { return round_up(kPixels * columns_.depth * 2, 64); }

  // Pixels [first, first + count) and units (groups, cut into parts of kColumns columns) [begin, end).
  void block(const Place& place, int64_t first, int64_t count, int64_t begin, int64_t end) const {
    int64_t sums[kPixels * kColumns], plane_sums[kPixels * kColumns];
    const int64_t per_group = window_.out_c / groups_, cuts = (per_group + kColumns - 1) / kColumns;
    int64_t built = -1;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t group = unit / cuts, inside = unit % cuts * kColumns;
      if (group != built) {
        for (int64_t p = 0; p < count; ++p) patch(place.in, first + p, group, place.patches + p * columns_.depth);
        built = group;
      }
      const int64_t column = group * per_group + inside, wide = std::min(kColumns, per_group - inside);
      columns_.multiply(place.packed, place.patches, count, column, wide, sums, plane_sums);
      for (int64_t p = 0; p < count; ++p) {
        finish_.run(sums + p * kColumns, bias_, place.bias, column, wide,
                    place.out + ((first + p) * window_.out_c + column) * finish_.bytes());
      }
    }
  }

  // What one pixel's window sees, in the filter's order; real zero outside of the image and behind the end.
  void patch(const uint8_t* in, int64_t pixel, int64_t group, int16_t* out) const {
    const Window& w = window_;
    const int64_t x0 = pixel % w.out_w * w.stride_w - w.pad_left;
    const int64_t y0 = pixel / w.out_w % w.out_h * w.stride_h - w.pad_top;
    const int64_t image = pixel / w.out_w / w.out_h * w.in_h * w.in_w;
    int16_t* end = out + columns_.depth;
    for (int64_t i = 0; i < w.filter_h; ++i) {
      const int64_t y = y0 + i * w.dilation_h;
      if (y < 0 || y >= w.in_h) {
        out = std::fill_n(out, w.filter_w * depth_, int16_t{0});
        continue;
      }
      const int64_t row = (image + y * w.in_w) * w.in_c + group * depth_;
      if (w.dilation_w == 1 && groups_ == 1) {
        const int64_t low = std::min(w.filter_w, std::max<int64_t>(0, -x0));
        const int64_t high = std::max(low, std::min(w.filter_w, w.in_w - x0));
        out = std::fill_n(out, low * depth_, int16_t{0});
        input_.convert(in, row + (x0 + low) * depth_, (high - low) * depth_, out);
        out = std::fill_n(out + (high - low) * depth_, (w.filter_w - high) * depth_, int16_t{0});
        continue;
      }
      for (int64_t j = 0; j < w.filter_w; ++j, out += depth_) {
        const int64_t x = x0 + j * w.dilation_w;
        if (x < 0 || x >= w.in_w) {
          std::fill_n(out, depth_, int16_t{0});
        } else {
          input_.convert(in, row + x * w.in_c, depth_, out);
        }
      }
    }
    std::fill(out, end, int16_t{0});
  }

  Window window_;
  int64_t groups_, depth_;
  CenteredInput input_;
  CenteredWeights weights_;
  Bias bias_;
  Finish finish_;
  Columns columns_;
  std::vector<int16_t> packed_;
};

// Every output row from the input rows that it sees, converted and with every channel as often as it is filtered.
class GeneralDepthwise final : public Kernel {
 public:
  GeneralDepthwise(const Step& step, const CoreSet& cores, const Window& window, int64_t multiplier)
      : window_(window),
        multiplier_(multiplier),
        input_(step),
        weights_(step.input(1), step.integer("weight_zero_point")),
        bias_(step, 2, window.out_c),
        finish_(step, cores, window.out_c) {
    require(weights_.largest() <= 32767, "weights without their zero point do not fit 16 bits");
    // 32-bit sums are exact while taps * |a| * |w| <= 2^31 - 1.
    const int64_t product = input_.largest() * weights_.largest();
    narrow_ = product == 0 || window.taps() <= kMostSum / product;
    if (weights_.constant()) {
      packed_.resize(static_cast<size_t>(step.input(1).elements));
      for (size_t i = 0; i < packed_.size(); ++i)
        packed_[i] = static_cast<int16_t>(weights_.at(nullptr, static_cast<int64_t>(i)));
    }
  }

  int64_t scratch_bytes(int threads) const override { return packed_bytes() + threads * worker_bytes(); }
  bool packs(size_t input) const override {
    return (input == 1 && weights_.constant()) || (input == 2 && bias_.constant());
  }
  std::string note() const override { return narrow_ ? "16-bit products, 32-bit sums" : "64-bit sums"; }

  void run(const Run& run) const override {
    const Window& w = window_;
    if (w.pixels() == 0 || w.out_c == 0) return;
    const int16_t* packed = packed_.data();
    if (!weights_.constant()) {
      auto* target = reinterpret_cast<int16_t*>(run.scratch);
      for (int64_t i = 0; i < w.taps() * w.out_c; ++i) target[i] = static_cast<int16_t>(weights_.at(run.inputs[1], i));
      packed = target;
    }
    // Several rows per task: neighbouring ones share converted input rows.
    const int64_t rows = w.batch * w.out_h, work = w.pixels() * w.out_c * w.taps();
    const int64_t tasks = std::max<int64_t>(1, std::min({rows, work / kTaskWork, int64_t{4} * run.pool.threads()}));
    run.pool.parallel(tasks, [&](int64_t task, int worker) {
      Lines lines{reinterpret_cast<int16_t*>(run.scratch + packed_bytes() + worker * worker_bytes()), -1, 0};
      for (int64_t row = rows * task / tasks; row < rows * (task + 1) / tasks; ++row) {
        run.check(worker);
        if (narrow_) {
          output_row<int32_t>(run, packed, row, lines);
        } else {
          output_row<int64_t>(run, packed, row, lines);
        }
      }
    });
  }

 private:
  int64_t packed_bytes() const { return weights_.constant() ? 0 : round_up(window_.taps() * window_.out_c * 2, 64); }
  int64_t line() const { return window_.in_w * window_.out_c; }
  // Converted input rows that are kept. Distinct taps see distinct rows, so that there is one for every tap.
  int64_t slots() const { return std::max<int64_t>(1, std::min(window_.filter_h, window_.in_h)); }
  int64_t worker_bytes() const { return round_up(slots() * line() * 2, 64); }

  // Converted rows of one image: row y is in slot y % slots() when there is no dilation, in its tap's slot otherwise.
  struct Lines {
    int16_t* data;
    int64_t image;
    int64_t next;  // rows before this one were converted, the last slots() of them are still there
  };

  int64_t slot(int64_t y, int64_t tap) const { return window_.dilation_h == 1 ? y % slots() : tap; }

  template <class Sum>
  void output_row(const Run& run, const int16_t* weights, int64_t row, Lines& lines) const {
    const Window& w = window_;
    const int64_t y0 = row % w.out_h * w.stride_h - w.pad_top, image = row / w.out_h;
    // Taps above or below the image would only add zeros.
    const int64_t first = y0 < 0 ? (-y0 + w.dilation_h - 1) / w.dilation_h : 0;
    const int64_t last = std::min(w.filter_h, y0 < w.in_h ? (w.in_h - 1 - y0) / w.dilation_h + 1 : 0);
    if (image != lines.image) lines.image = image, lines.next = 0;
    for (int64_t i = first; i < last; ++i) {
      const int64_t y = y0 + i * w.dilation_h;
      if (w.dilation_h == 1 && y < lines.next) continue;
      input_.repeat(run.inputs[0], (image * w.in_h + y) * w.in_w * w.in_c, w.in_w * w.in_c, multiplier_,
                    lines.data + slot(y, i - first) * line());
      lines.next = y + 1;
    }
    const uint8_t* bias = bias_.constant() ? nullptr : run.inputs[2];
    uint8_t* out = run.outputs[0] + row * w.out_w * w.out_c * finish_.bytes();
    for (int64_t x = 0; x < w.out_w; ++x, out += w.out_c * finish_.bytes()) {
      const int64_t x0 = x * w.stride_w - w.pad_left;
      const int64_t left = x0 < 0 ? (-x0 + w.dilation_w - 1) / w.dilation_w : 0;
      const int64_t right = std::min(w.filter_w, x0 < w.in_w ? (w.in_w - 1 - x0) / w.dilation_w + 1 : 0);
      for (int64_t c = 0; c < w.out_c; c += kColumns) {
        const int64_t count = std::min(kColumns, w.out_c - c);
        Sum sums[kColumns] = {};
        for (int64_t i = first; i < last; ++i) {
          const int16_t* input = lines.data + slot(y0 + i * w.dilation_h, i - first) * line() + c;
          for (int64_t j = left; j < right; ++j) {
            const int16_t* a = input + (x0 + j * w.dilation_w) * w.out_c;
            const int16_t* f = weights + (i * w.filter_w + j) * w.out_c + c;
            for (int64_t k = 0; k < count; ++k) sums[k] += static_cast<Sum>(a[k] * f[k]);
          }
        }
        int64_t wide[kColumns];
        for (int64_t k = 0; k < count; ++k) wide[k] = sums[k];
        finish_.run(wide, bias_, bias, c, count, out + c * finish_.bytes());
      }
    }
  }

  Window window_;
  int64_t multiplier_;
  CenteredInput input_;
  CenteredWeights weights_;
  Bias bias_;
  Finish finish_;
  bool narrow_;
  std::vector<int16_t> packed_;
};

}  // namespace

std::unique_ptr<Kernel> make_general_conv2d(const Step& step, const CoreSet& cores) {
  const Window window = read_full_window(step);
  const Operand& filter = step.input(1);
  const int64_t groups = step.integer("groups", 1, std::max<int64_t>(1, window.in_c));
  require(step.output().type == step.input(0).type && filter.elements > 0, "both sides must have one type");
  require(window.in_c % groups == 0 && window.out_c % groups == 0, "channels do not split into groups");
  require(filter.rank() == 4 && filter.shape[0] == window.out_c && filter.shape[1] == window.filter_h &&
              filter.shape[2] == window.filter_w && filter.shape[3] == window.in_c / groups,
          "the filter's shape differs");
  return std::make_unique<GeneralConvolution>(step, cores, window, groups);
}

std::unique_ptr<Kernel> make_general_depthwise_conv2d(const Step& step, const CoreSet& cores) {
  const Window window = read_full_window(step);
  const Operand& filter = step.input(1);
  const int64_t multiplier = window.in_c > 0 ? window.out_c / window.in_c : 0;
  require(step.output().type == step.input(0).type && filter.elements > 0, "both sides must have one type");
  require(filter.rank() == 4 && filter.shape[0] == 1 && filter.shape[1] == window.filter_h &&
              filter.shape[2] == window.filter_w && filter.shape[3] == window.out_c && multiplier > 0 &&
              window.in_c * multiplier == window.out_c,
          "the filter's shape differs");
  return std::make_unique<GeneralDepthwise>(step, cores, window, multiplier);
}

std::unique_ptr<Kernel> make_general_fully_connected(const Step& step, const CoreSet& cores) {
  const Operand &in = step.input(0), &weights = step.input(1);
  require(weights.rank() == 2 && weights.shape[1] > 0, "weights have two axes");
  Window window{};
  window.in_c = weights.shape[1], window.out_c = weights.shape[0];
  window.batch = in.elements / window.in_c;
  window.in_h = window.in_w = window.out_h = window.out_w = window.filter_h = window.filter_w = 1;
  window.stride_h = window.stride_w = window.dilation_h = window.dilation_w = 1;
  require(window.batch * window.in_c == in.elements && window.batch * window.out_c == step.output().elements,
          "the shapes do not fit");
  return std::make_unique<GeneralConvolution>(step, cores, window, 1);
}

}  // namespace bittrue

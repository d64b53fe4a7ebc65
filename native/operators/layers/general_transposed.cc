// Transposed convolutions that are no 8-bit matrix product: 16-bit ones with 64-bit sums, and hybrid ones.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/share.h"
#include "operators/layers/columns.h"
#include "operators/layers/real_finish.h"
#include "operators/layers/transposed.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

// What one output phase needs: taps, and its own weights in the order in which it meets the input.
template <class Weight>
struct PhaseWeights {
  int64_t y, x;
  Phase down, across;
  std::vector<Weight> packed;
};

// Calls visit(phase of output rows, phase of output columns) for all that occur.
template <class Visit>
void for_all_phases(const Transposed& g, const Visit& visit) {
  const int64_t high = std::min(g.stride_h, g.out_h), wide = std::min(g.stride_w, g.out_w);
  require(high * wide <= 4096, "there are very many phases");
  for (int64_t y = 0; y < high; ++y) {
    for (int64_t x = 0; x < wide; ++x) visit(y, x);
  }
}

class IntegerTransposed final : public Kernel {
 public:
  IntegerTransposed(const Step& step, const CoreSet& cores, const Transposed& g)
      : g_(g), input_(step, kTransposedSource), bias_(step, kTransposedBias, g.out_c), finish_(step, cores, g.out_c) {
    const CenteredWeights weights(step.input(kTransposedWeights), step.integer("weight_zero_point"));
    require(weights.constant(), "weights are computed at run time");
    require(step.output().type == step.input(kTransposedSource).type, "both sides must have one type");
    for_all_phases(g, [&](int64_t y, int64_t x) {
      Part part{{y, x, g.vertical(y), g.horizontal(x), {}}, Columns(1, 1, 1, 1)};
      const int64_t across = part.weights.across.taps * g.in_c;
      part.columns = Columns(g.out_c, part.weights.down.taps * across, input_.largest(), weights.largest());
      part.weights.packed.resize(static_cast<size_t>(part.columns.elements()));
      for (int64_t c = 0; c < g.out_c; ++c) {
        part.columns.pack(c, part.weights.packed.data(), [&](int64_t k) {
          const int64_t u = y + g.pad_top - g.stride_h * (part.weights.down.first + k / across);
          const int64_t v = x + g.pad_left - g.stride_w * (part.weights.across.first + k % across / g.in_c);
          return weights.at(nullptr, ((c * g.filter_h + u) * g.filter_w + v) * g.in_c + k % g.in_c);
        });
      }
      deepest_ = std::max(deepest_, part.columns.depth);
      parts_.push_back(std::move(part));
    });
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }
  bool packs(size_t input) const override {
    return input == kTransposedWeights || (input == kTransposedBias && bias_.constant());
  }
  std::string note() const override { return "16-bit products, 64-bit sums"; }

  void run(const Run& run) const override {
    g_.check_shape(run);
    const int64_t each = (g_.out_h + g_.stride_h - 1) / g_.stride_h * g_.batch;
    share(run.pool, static_cast<int64_t>(parts_.size()) * each, g_.work(), [&](int64_t task, int worker) {
      const Part& part = parts_[static_cast<size_t>(task / each)];
      const int64_t n = task % each % g_.batch, line = task % each / g_.batch;
      if (line >= g_.rows(part.weights.y)) return;
      output_line(run, part, n, line, reinterpret_cast<int16_t*>(run.scratch + worker * worker_bytes()));
    });
  }

 private:
  struct Part {
    PhaseWeights<int16_t> weights;
    Columns columns;
  };

  int64_t worker_bytes() const { return round_up(kPixels * deepest_ * 2, 64); }

  void output_line(const Run& run, const Part& part, int64_t n, int64_t line, int16_t* patches) const {
    int64_t sums[kPixels * kColumns], plane_sums[kPixels * kColumns];
    const PhaseWeights<int16_t>& w = part.weights;
    const int64_t y = w.y + line * g_.stride_h, pixels = g_.columns(w.x), depth = part.columns.depth;
    const uint8_t* bias = bias_.constant() ? nullptr : run.inputs[kTransposedBias];
    for (int64_t first = 0; first < pixels; first += kPixels) {
      const int64_t count = std::min(kPixels, pixels - first);
      for (int64_t p = 0; p < count; ++p) {
        patch(run.inputs[kTransposedSource], part, n, line, first + p, patches + p * depth);
      }
      for (int64_t c = 0; c < g_.out_c; c += kColumns) {
        const int64_t wide = std::min(kColumns, g_.out_c - c);
        part.columns.multiply(w.packed.data(), patches, count, c, wide, sums, plane_sums);
        for (int64_t p = 0; p < count; ++p) {
          const int64_t x = w.x + (first + p) * g_.stride_w;
          const int64_t at = ((n * g_.out_h + y) * g_.out_w + x) * g_.out_c + c;
          finish_.run(sums + p * kColumns, bias_, bias, c, wide, run.outputs[0] + at * finish_.bytes());
        }
      }
    }
  }

  // What one output pixel sees; real zero outside of the image and behind the end.
  void patch(const uint8_t* in, const Part& part, int64_t n, int64_t line, int64_t column, int16_t* out) const {
    const PhaseWeights<int16_t>& w = part.weights;
    int16_t* end = out + part.columns.depth;
    const int64_t x = column + w.across.first, taps = w.across.taps;
    const int64_t low = std::min(taps, std::max<int64_t>(0, -x)), high = std::max(low, std::min(taps, g_.in_w - x));
    for (int64_t i = 0; i < w.down.taps; ++i) {
      const int64_t y = line + w.down.first + i;
      if (y < 0 || y >= g_.in_h) {
        out = std::fill_n(out, taps * g_.in_c, int16_t{0});
        continue;
      }
      out = std::fill_n(out, low * g_.in_c, int16_t{0});
      input_.convert(in, ((n * g_.in_h + y) * g_.in_w + x + low) * g_.in_c, (high - low) * g_.in_c, out);
      out = std::fill_n(out + (high - low) * g_.in_c, (taps - high) * g_.in_c, int16_t{0});
    }
    std::fill(out, end, int16_t{0});
  }

  Transposed g_;
  CenteredInput input_;
  Bias bias_;
  Finish finish_;
  std::vector<Part> parts_;
  int64_t deepest_ = 0;
};

// Every image is quantized first. Every output pixel adds up the input pixels that it meets in the order of memory, channel
// by channel, without those outside of the image; each product is scaled back. Then comes the bias.
class HybridTransposed final : public Kernel {
 public:
  HybridTransposed(const Step& step, const Transposed& g)
      : g_(g), padded_(round_up(g.out_c, kFilters)), images_(step, g.batch, kTransposedSource) {
    const Operand& weights = step.input(kTransposedWeights);
    require(step.input(kTransposedSource).type == Type::f32 && step.output().type == Type::f32,
            "both sides must be binary32");
    require(weights.constant != nullptr && weights.type != Type::f32 && images_.active(),
            "constant bytes are needed as weights");
    joined_ = step.rule("multiply_add") == "rounded_once";
    require(joined_ || step.rule("multiply_add") == "rounded_twice", "no native rule for this slot");
    require(step.rule("plain_range") == "type_limits", "no native rule for the range");
    const RealWeights values(weights);
    for_all_phases(g, [&](int64_t y, int64_t x) {
      PhaseWeights<float> part{y, x, g.vertical(y), g.horizontal(x), {}};
      // Panels of eight filters.
      const int64_t panel = part.down.taps * part.across.taps * g.in_c * kFilters;
      part.packed.resize(static_cast<size_t>(panel * padded_ / kFilters));
      float* target = part.packed.data();
      for (int64_t i = 0; i < part.down.taps; ++i) {
        const int64_t u = y + g.pad_top - g.stride_h * (part.down.first + i);
        for (int64_t j = 0; j < part.across.taps; ++j) {
          const int64_t v = x + g.pad_left - g.stride_w * (part.across.first + j);
          for (int64_t k = 0; k < g.in_c; ++k, target += kFilters) {
            for (int64_t c = 0; c < g.out_c; ++c) {
              target[c / kFilters * panel + c % kFilters] =
                  values.at(nullptr, ((c * g.filter_h + u) * g.filter_w + v) * g.in_c + k);
            }
          }
        }
      }
      parts_.push_back(std::move(part));
    });
    bias_.assign(static_cast<size_t>(padded_), 0.0f);
    has_bias_ = step.has_input(kTransposedBias);
    if (has_bias_) {
      const Operand& bias = step.input(kTransposedBias);
      require(bias.type == Type::f32 && bias.constant != nullptr && bias.elements == g.out_c,
              "one constant bias per filter is needed");
      std::memcpy(bias_.data(), bias.constant, static_cast<size_t>(bias.bytes()));
    }
    low_ = static_cast<float>(step.real("low")), high_ = static_cast<float>(step.real("high"));
    const Array& scales = step.array("weight_scales");
    require(scales.count == 1 || scales.count == g.out_c, "one scale, or one per filter");
    scales_.assign(static_cast<size_t>(padded_), 0.0f);
    for (int64_t c = 0; c < g.out_c; ++c) {
      scales_[static_cast<size_t>(c)] = static_cast<float>(scales.real(scales.count == 1 ? 0 : c));
    }
  }

  int64_t scratch_bytes(int) const override { return images_.bytes(); }
  bool packs(size_t input) const override { return input == kTransposedWeights || input == kTransposedBias; }
  std::string note() const override { return "quantized images, binary32 sums in order"; }

  void run(const Run& run) const override {
    g_.check_shape(run);
    const int64_t each = (g_.out_h + g_.stride_h - 1) / g_.stride_h * g_.batch;
    const auto* source = reinterpret_cast<const float*>(run.inputs[kTransposedSource]);
    const float* in = images_.run(run, source, run.scratch);
    const rules::RowScale* scales = images_.scales(run.scratch);
    share(run.pool, static_cast<int64_t>(parts_.size()) * each, g_.work(), [&](int64_t task, int) {
      const PhaseWeights<float>& part = parts_[static_cast<size_t>(task / each)];
      const int64_t n = task % each % g_.batch, line = task % each / g_.batch;
      if (line < g_.rows(part.y)) output_line(run, in, scales[n].scale, part, n, line);
    });
  }

 private:
  static constexpr int64_t kFilters = 8;  // of a panel

  // sums += f32(f32(f32(q * w) * scale of the filter) * scale of the image), product by product; the last one is not rounded
  // where it is joined.
  void add_scaled(const float* q, const float* weights, int64_t count, const float* scales, float scale,
                  float* sums) const {
    for (int64_t k = 0; k < count && joined_; ++k, weights += kFilters) {
      for (int64_t c = 0; c < kFilters; ++c) sums[c] = std::fma(q[k] * weights[c] * scales[c], scale, sums[c]);
    }
    for (int64_t k = 0; k < count && !joined_; ++k, weights += kFilters) {
      for (int64_t c = 0; c < kFilters; ++c) sums[c] += q[k] * weights[c] * scales[c] * scale;
    }
  }

  void output_line(const Run& run, const float* in, float scale, const PhaseWeights<float>& part, int64_t n,
                   int64_t line) const {
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    out += ((n * g_.out_h + part.y + line * g_.stride_h) * g_.out_w + part.x) * g_.out_c;
    const int64_t pixels = g_.columns(part.x), taps = part.across.taps;
    const int64_t top = std::max<int64_t>(0, -(line + part.down.first));
    const int64_t bottom = std::min(part.down.taps, g_.in_h - line - part.down.first);
    for (int64_t column = 0; column < pixels; ++column) {
      const int64_t x = column + part.across.first;
      const int64_t low = std::min(taps, std::max<int64_t>(0, -x)), high = std::max(low, std::min(taps, g_.in_w - x));
      for (int64_t c = 0; c < g_.out_c; c += kFilters) {
        float sums[kFilters] = {};
        for (int64_t i = top; i < bottom && high > low; ++i) {
          const int64_t y = line + part.down.first + i;
          const float* weights =
              part.packed.data() + part.down.taps * taps * g_.in_c * c + (i * taps + low) * g_.in_c * kFilters;
          add_scaled(in + ((n * g_.in_h + y) * g_.in_w + x + low) * g_.in_c, weights, (high - low) * g_.in_c,
                     scales_.data() + c, scale, sums);
        }
        const int64_t wide = std::min<int64_t>(kFilters, g_.out_c - c);
        float* target = out + column * g_.stride_w * g_.out_c + c;
        for (int64_t k = 0; k < wide; ++k) {
          const float sum = has_bias_ ? sums[k] + bias_[c + k] : sums[k];
          target[k] = rules::clamp(sum, low_, high_);
        }
      }
    }
  }

  Transposed g_;
  int64_t padded_;  // filters, rounded up
  RowQuantizer images_;
  std::vector<PhaseWeights<float>> parts_;
  std::vector<float> bias_, scales_;
  bool has_bias_ = false, joined_ = false;
  float low_ = 0, high_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_general_transposed(const Step& step, const CoreSet& cores, const Transposed& geometry) {
  if (step.text("arithmetic") != "rescaled") return std::make_unique<HybridTransposed>(step, geometry);
  return std::make_unique<IntegerTransposed>(step, cores, geometry);
}

}  // namespace bittrue

#include "operators/layers/tiled_layer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "core/share.h"
#include "operators/core/window.h"
#include "operators/layers/real_finish.h"
#include "operators/layers/tiled_product.h"
#include "operators/layers/transposed.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

constexpr int64_t kRate = 8;  // multiply-adds of one nanosecond, about

void require_reals(const Step& step) {
  const Operand &in = step.input(0), &weights = step.input(1), &out = step.output();
  require(in.type == Type::f32 && weights.type == Type::f32 && out.type == Type::f32, "all numbers must be binary32");
  require(in.dense() && weights.dense() && out.dense(), "all sides must be dense");
  require(in.elements > 0 && out.elements > 0 && weights.elements > 0, "there is nothing to do");
}

// Where rows of weights, all of the terms of one of them side by side, lie in an operand; `terms_step` between terms.
struct WeightRows {
  int64_t filters = 0, terms = 0;
  int64_t inner = 1;  // of `outer` times `inner` rows, row a * inner + b begins at a * outer_step + b * inner_step
  int64_t outer_step = 0, inner_step = 0, term_step = 1;

  void gather(const float* from, float* to) const {
    for (int64_t f = 0; f < filters; ++f) {
      const float* row = from + f / inner * outer_step + f % inner * inner_step;
      for (int64_t k = 0; k < terms; ++k) *to++ = row[k * term_step];
    }
  }
};

// The product, and its weights: kept where they are constants, else made in every run.
class Weights {
 public:
  Weights(const Step& step, const CoreSet& cores, const WeightRows& rows, int64_t count)
      : rows_(rows), product_(step, cores, rows.filters, rows.terms, count) {
    const Operand& weights = step.input(1);
    require(weights.elements == rows.filters * rows.terms, "the filter's shape differs");
    if (weights.constant == nullptr) return;
    std::vector<float> stored(static_cast<size_t>(weights.elements));
    std::memcpy(stored.data(), weights.constant, stored.size() * sizeof(float));
    kept_.resize(stored.size());
    rows_.gather(stored.data(), kept_.data());
    packed_.resize(static_cast<size_t>(product_.packed_floats()));
    product_.pack(kept_.data(), packed_.data());
  }

  struct Prepared {
    const float *rows, *packed;
  };
  const TiledProduct& product() const { return product_; }
  bool constant() const { return !packed_.empty(); }
  int64_t bytes() const {
    return constant() ? 0 : round_up(rows_.filters * rows_.terms * 4, 64) + round_up(product_.packed_floats() * 4, 64);
  }
  Prepared of(const Run& run, uint8_t* scratch) const {
    if (constant()) return {kept_.data(), packed_.data()};
    const auto* stored = reinterpret_cast<const float*>(run.inputs[1]);
    auto* rows = reinterpret_cast<float*>(scratch);
    auto* packed = reinterpret_cast<float*>(scratch + round_up(rows_.filters * rows_.terms * 4, 64));
    rows_.gather(stored, rows);
    product_.pack(rows, packed);
    return {rows, packed};
  }

 private:
  WeightRows rows_;
  TiledProduct product_;
  std::vector<float> kept_, packed_;
};

// Every window is a row.
class TiledLayer final : public Kernel {
 public:
  TiledLayer(const Step& step, const CoreSet& cores, const Window& window, const WeightRows& rows)
      : window_(window), weights_(step, cores, rows, window.pixels()), finish_(step, window.out_c, false) {
    require(rows.terms == window.taps() * window.in_c, "the filter's shape differs");
  }

  int64_t scratch_bytes(int threads) const override { return weights_.bytes() + threads * worker_bytes(); }
  bool packs(size_t input) const override { return input == 1 && weights_.constant(); }
  std::string note() const override { return "real sums in tiles"; }

  void run(const Run& run) const override {
    const TiledProduct& product = weights_.product();
    const Weights::Prepared prepared = weights_.of(run, run.scratch);
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    const auto* bias = finish_.has_bias() ? reinterpret_cast<const float*>(run.inputs[2]) : nullptr;
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const int64_t pixels = window_.pixels(), channels = window_.out_c, panels = product.panels();
    const int64_t work = pixels * channels * terms(), blocks = (pixels + TiledProduct::kRows - 1) / TiledProduct::kRows;
    const int threads = run.pool.threads_for(work / kRate);
    const int64_t parts = cut(threads > 1 && blocks < 4 * threads ? std::min<int64_t>(panels, 4 * threads) : 1,
                              work / blocks, kTaskMostWork, panels);
    std::atomic<bool> odd{false};
    run.pool.parallel(blocks * parts, threads, [&](int64_t task, int index) {
      uint8_t* scratch = run.scratch + weights_.bytes() + index * worker_bytes();
      const int64_t first = task / parts * TiledProduct::kRows, part = task % parts;
      const int64_t count = std::min(TiledProduct::kRows, pixels - first);
      const int64_t begin = panels * part / parts, end = panels * (part + 1) / parts;
      const float* rows[TiledProduct::kRows];
      auto* patches = reinterpret_cast<float*>(scratch + product.worker_bytes());
      find_rows(in, first, count, patches, rows);
      float* to = out + first * channels;
      product.multiply(rows, first, count, begin, end, prepared.rows, prepared.packed, bias, scratch, to);
      const int64_t from = begin * product.panel(), used = std::min(channels, end * product.panel()) - from;
      for (int64_t r = 0; r < count; ++r) {
        float* sums = to + r * channels + from;
        if (finish_.run(sums, from, used, nullptr, bias, false, sums)) odd = true;
      }
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (odd) throw Undefined{};
  }

 private:
  int64_t terms() const { return window_.taps() * window_.in_c; }
  bool gathered() const { return window_.taps() > 1 || window_.padded(); }
  int64_t worker_bytes() const {
    return weights_.product().worker_bytes() + (gathered() ? round_up(TiledProduct::kRows * terms() * 4, 64) : 0);
  }

  void find_rows(const float* in, int64_t first, int64_t count, float* patch, const float** rows) const {
    const Window& w = window_;
    for (int64_t r = 0; r < count; ++r) {
      const int64_t pixel = first + r, image = pixel / w.out_w / w.out_h / w.out_d;
      const int64_t x0 = pixel % w.out_w * w.stride_w - w.pad_left;
      const int64_t y0 = pixel / w.out_w % w.out_h * w.stride_h - w.pad_top;
      const int64_t z0 = pixel / w.out_w / w.out_h % w.out_d * w.stride_d - w.pad_front;
      const auto place = [&](int64_t z, int64_t y, int64_t x) {
        return in + (((image * w.in_d + z) * w.in_h + y) * w.in_w + x) * w.in_c;
      };
      if (!gathered()) {
        rows[r] = place(z0, y0, x0);
        continue;
      }
      rows[r] = patch;
      for (int64_t d = 0; d < w.filter_d; ++d) {
        for (int64_t i = 0; i < w.filter_h; ++i) {
          for (int64_t j = 0; j < w.filter_w; ++j, patch += w.in_c) {
            const int64_t z = z0 + d * w.dilation_d, y = y0 + i * w.dilation_h, x = x0 + j * w.dilation_w;
            const bool inside = z >= 0 && z < w.in_d && y >= 0 && y < w.in_h && x >= 0 && x < w.in_w;
            if (inside) {
              std::copy_n(place(z, y, x), w.in_c, patch);
            } else {
              std::fill_n(patch, w.in_c, 0.0f);
            }
          }
        }
      }
    }
  }

  Window window_;
  Weights weights_;
  RealFinish finish_;
};

// All positions of an image meet the filters of all taps; what they give is added in the order of positions.
class TiledTransposed final : public Kernel {
 public:
  struct Geometry {
    int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, taps[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, before[3] = {};
    int64_t batch = 1, depth = 1, filters = 1;
    int64_t positions() const { return in[0] * in[1] * in[2]; }
    int64_t places() const { return out[0] * out[1] * out[2]; }
    int64_t all_taps() const { return taps[0] * taps[1] * taps[2]; }
  };

  TiledTransposed(const Step& step, const CoreSet& cores, const Geometry& geometry, const WeightRows& rows)
      : g_(geometry),
        weights_(step, cores, rows, geometry.positions()),
        low_(static_cast<float>(step.real("low"))),
        high_(static_cast<float>(step.real("high"))),
        has_bias_(step.has_input(2)) {
    require(step.rule("plain_range") == "type_limits", "no native rule for the range");
    require(g_.positions() <= (int64_t{1} << 28) / (g_.all_taps() * g_.filters), "the products are very many");
    if (has_bias_) {
      const Operand& bias = step.input(2);
      require(bias.type == Type::f32 && bias.dense() && bias.elements == g_.filters, "one bias per filter is needed");
    }
    if (!step.has_input(kTransposedShape)) return;
    const Operand& shape = step.input(kTransposedShape);
    require(shape.type == Type::s32 && shape.elements == step.input(0).rank() && shape.dense(),
            "a shape has a 32-bit dimension for every axis");
    for (const int64_t size : step.output().shape) shape_.push_back(size);
  }

  int64_t scratch_bytes(int threads) const override {
    return weights_.bytes() + plane_bytes() + threads * weights_.product().worker_bytes();
  }
  bool packs(size_t input) const override { return input == 1 && weights_.constant(); }
  std::string note() const override { return "real sums in tiles, then by positions"; }

  void run(const Run& run) const override {
    const auto* shape = shape_.empty() ? nullptr : reinterpret_cast<const int32_t*>(run.inputs[kTransposedShape]);
    for (size_t i = 0; i < shape_.size(); ++i) {
      if (shape[i] != shape_[i]) throw Undefined{};
    }
    const Weights::Prepared prepared = weights_.of(run, run.scratch);
    auto* planes = reinterpret_cast<float*>(run.scratch + weights_.bytes());
    const auto* bias = has_bias_ ? reinterpret_cast<const float*>(run.inputs[2]) : nullptr;
    bool odd = false;
    for (int64_t n = 0; n < g_.batch; ++n) {
      multiply(run, reinterpret_cast<const float*>(run.inputs[0]) + n * g_.positions() * g_.depth, prepared, planes);
      float* out = reinterpret_cast<float*>(run.outputs[0]) + n * g_.places() * g_.filters;
      std::fill_n(out, g_.places() * g_.filters, 0.0f);
      spread(planes, out);
      for (int64_t p = 0; p < g_.places(); ++p, out += g_.filters) {
        for (int64_t o = 0; o < g_.filters; ++o) {
          const float total = bias == nullptr ? out[o] : out[o] + bias[o];
          odd |= total != total;
          out[o] = rules::clamp(total, low_, high_);
        }
      }
    }
    // Signs and payloads of NaN are the reference's to tell.
    if (odd) throw Undefined{};
  }

 private:
  int64_t row() const { return g_.all_taps() * g_.filters; }
  int64_t plane_bytes() const { return round_up(g_.positions() * row() * 4, 64); }

  void multiply(const Run& run, const float* image, const Weights::Prepared& prepared, float* planes) const {
    const TiledProduct& product = weights_.product();
    const int64_t blocks = (g_.positions() + TiledProduct::kRows - 1) / TiledProduct::kRows;
    const int threads = run.pool.threads_for(g_.positions() * row() * g_.depth / kRate);
    const int64_t parts = blocks < 4 * threads && threads > 1 ? std::min<int64_t>(product.panels(), 4 * threads) : 1;
    run.pool.parallel(blocks * parts, threads, [&](int64_t task, int index) {
      uint8_t* scratch = run.scratch + weights_.bytes() + plane_bytes() + index * product.worker_bytes();
      const int64_t first = task / parts * TiledProduct::kRows, part = task % parts;
      const int64_t count = std::min(TiledProduct::kRows, g_.positions() - first);
      const float* rows[TiledProduct::kRows];
      for (int64_t r = 0; r < count; ++r) rows[r] = image + (first + r) * g_.depth;
      product.multiply(rows, first, count, product.panels() * part / parts, product.panels() * (part + 1) / parts,
                       prepared.rows, prepared.packed, nullptr, scratch, planes + first * row());
    });
  }

  void spread(const float* planes, float* out) const {
    for (int64_t p = 0; p < g_.positions(); ++p) {
      const int64_t at[3] = {p / g_.in[2] / g_.in[1], p / g_.in[2] % g_.in[1], p % g_.in[2]};
      for (int64_t t = 0; t < g_.all_taps(); ++t, planes += g_.filters) {
        const int64_t tap[3] = {t / g_.taps[2] / g_.taps[1], t / g_.taps[2] % g_.taps[1], t % g_.taps[2]};
        int64_t place = 0;
        bool inside = true;
        for (int axis = 0; axis < 3; ++axis) {
          const int64_t to = at[axis] * g_.stride[axis] + tap[axis] - g_.before[axis];
          inside &= to >= 0 && to < g_.out[axis];
          place = place * g_.out[axis] + to;
        }
        if (!inside) continue;
        float* target = out + place * g_.filters;
        for (int64_t o = 0; o < g_.filters; ++o) target[o] += planes[o];
      }
    }
  }

  Geometry g_;
  Weights weights_;
  float low_, high_;
  bool has_bias_;
  std::vector<int64_t> shape_;
};

}  // namespace

std::unique_ptr<Kernel> make_tiled_convolution(const Step& step, const CoreSet& cores) {
  require_reals(step);
  require(step.integer("groups") == 1 && step.integer("channels_last") == 1, "channels in one group are last");
  const bool volumes = step.input(0).rank() == 5;
  const Window window = read_full_window(step, volumes);
  const std::string& layout = step.text("filter_layout");
  require(layout == "OSI" || layout == "SIO", "filters lie in an unknown order");
  const bool first = layout == "OSI";
  WeightRows rows;
  rows.filters = rows.inner = window.out_c, rows.terms = window.taps() * window.in_c;
  rows.inner_step = first ? rows.terms : 1, rows.term_step = first ? 1 : window.out_c;
  return std::make_unique<TiledLayer>(step, cores, window, rows);
}

std::unique_ptr<Kernel> make_tiled_fully_connected(const Step& step, const CoreSet& cores) {
  require_reals(step);
  const Window window = window_of_rows(step);
  WeightRows rows;
  rows.filters = rows.inner = window.out_c, rows.terms = rows.inner_step = window.in_c;
  return std::make_unique<TiledLayer>(step, cores, window, rows);
}

std::unique_ptr<Kernel> make_tiled_transposed(const Step& step, const CoreSet& cores) {
  require_reals(step);
  require(step.integer("groups") == 1 && step.integer("channels_last") == 1, "channels in one group are last");
  const Operand &in = step.input(0), &weights = step.input(1), &out = step.output();
  const int rank = in.rank(), axes = rank - 2;
  require((rank == 4 || rank == 5) && weights.rank() == rank && out.rank() == rank && out.shape[0] == in.shape[0],
          "two or three spatial axes are needed");
  const std::string& layout = step.text("filter_layout");
  require(layout == "OSI" || layout == "SOI", "filters lie in an unknown order");
  const bool first = layout == "OSI";
  TiledTransposed::Geometry g;
  g.batch = in.shape[0], g.depth = in.shape[rank - 1], g.filters = out.shape[rank - 1];
  const std::vector<int64_t>&strides = step.list("strides"), &dilations = step.list("dilations"),
        &before = step.list("before");
  require(static_cast<int>(strides.size()) == axes && static_cast<int>(dilations.size()) == axes &&
              static_cast<int>(before.size()) == axes,
          "every spatial axis needs a number");
  constexpr int64_t kMost = int64_t{1} << 24;
  for (int i = 0; i < axes; ++i) {
    const int axis = i + 3 - axes;
    g.in[axis] = in.shape[i + 1], g.out[axis] = out.shape[i + 1], g.taps[axis] = weights.shape[i + (first ? 1 : 0)];
    g.stride[axis] = strides[i], g.before[axis] = before[i];
    require(dilations[i] == 1 && strides[i] > 0 && strides[i] <= kMost && before[i] >= 0 && before[i] <= kMost &&
                g.in[axis] <= kMost && g.taps[axis] <= kMost,
            "a number of the geometry is out of range");
  }
  WeightRows rows;
  rows.filters = g.all_taps() * g.filters, rows.inner = g.filters, rows.terms = g.depth;
  rows.outer_step = first ? g.depth : g.filters * g.depth, rows.inner_step = first ? g.all_taps() * g.depth : g.depth;
  return std::make_unique<TiledTransposed>(step, cores, g, rows);
}

}  // namespace bittrue

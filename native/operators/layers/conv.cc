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
#include "operators/layers/fused_product.h"
#include "operators/layers/image_convolution.h"
#include "operators/layers/integer_convolution.h"
#include "operators/layers/ordered_convolution.h"
#include "operators/layers/real_convolution.h"
#include "operators/layers/real_layer.h"
#include "operators/layers/single_rows.h"
#include "operators/layers/whole_layer.h"

namespace bittrue {
namespace {

constexpr int64_t kLoopRows = 32;  // filters whose sums are held at a time
constexpr int64_t kLoopRate = 16;  // multiply-adds of one nanosecond, about

// The order of a product without blocks of its own.
void find_loop_order(RealConvolutionForm& f) {
  if (f.split > 0) return;
  f.split = FusedProduct::block_of(f.terms, f.positions, false);
  f.order = f.filters == 1     ? RealConvolutionForm::Order::fours
            : f.positions == 1 ? RealConvolutionForm::Order::lanes
                               : RealConvolutionForm::Order::blocks;
}

class OrderedReals final : public Kernel {
 public:
  OrderedReals(const Step& step, const CoreSet& cores, const RealConvolutionForm& form)
      : core_(cores.real_matmul()), f_(form) {
    most_ = core_.lanes * core_.vectors;
    panels_ = (f_.positions + most_ - 1) / most_;
    const Operand& filters = step.input(1);
    if (filters.constant != nullptr) {
      constant_ = true;
      std::vector<float> values(static_cast<size_t>(filters.elements));
      std::memcpy(values.data(), filters.constant, values.size() * 4);
      kept_.resize(static_cast<size_t>(f_.groups * f_.filters * f_.terms));
      arrange_filters(f_, values.data(), kept_.data());
    }
  }

  int64_t scratch_bytes(int threads) const override { return filter_bytes() + threads * worker_bytes(); }
  bool packs(size_t input) const override { return input == 1 && constant_; }
  std::string note() const override {
    return f_.order == RealConvolutionForm::Order::blocks ? "fused multiply-adds in blocks"
                                                          : "products and sums of single rows";
  }

  void run(const Run& run) const override {
    if (f_.batch * f_.positions == 0) return;
    const float *in = f_.at(run, 0), *bias = f_.bias(run), *begin = f_.begin(run);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const float* weights = kept_.data();
    if (!constant_) {
      auto* target = reinterpret_cast<float*>(run.scratch);
      arrange_filters(f_, f_.at(run, 1), target);
      weights = target;
    }
    const int64_t images = f_.batch * f_.groups, work = images * f_.filters * f_.terms * f_.positions;
    // Few panels are unfolded by several threads, each for filters of its own.
    const int threads = work / kLoopRate < kWorthSharing ? 1 : run.pool.threads();
    const int64_t chunks = (f_.filters + kLoopRows - 1) / kLoopRows;
    const int64_t parts = images * panels_ < 2 * threads ? std::min<int64_t>(chunks, threads) : 1;
    std::atomic<bool> finite{true};
    run.pool.parallel(images * panels_ * parts, threads, [&](int64_t task, int worker) {
      const int64_t part = task % parts, panel = task / parts % panels_, image = task / parts / panels_;
      const int64_t group = image % f_.groups, first = panel * most_, used = std::min(most_, f_.positions - first);
      uint8_t* scratch = run.scratch + filter_bytes() + worker * worker_bytes();
      auto* unfolded = reinterpret_cast<float*>(scratch + sums_bytes());
      unfold(in + image * f_.depth * f_.h.dimension * f_.w.dimension, first, used, unfolded);
      const int64_t low = chunks * part / parts * kLoopRows;
      const int64_t end = std::min(f_.filters, chunks * (part + 1) / parts * kLoopRows);
      bool right = true;
      for (int64_t m = low; m < end; m += kLoopRows) {
        const int64_t row = group * f_.filters + m;
        const int64_t count = std::min(kLoopRows, end - m), place = (image * f_.filters + m) * f_.positions + first;
        if (begin != nullptr && begin != out) {
          for (int64_t r = 0; r < count; ++r) {
            std::memcpy(out + place + r * f_.positions, begin + place + r * f_.positions,
                        static_cast<size_t>(used) * 4);
          }
        }
        right &= multiply(weights + row * f_.terms, count, unfolded, used, bias == nullptr ? nullptr : bias + row,
                          out + place, scratch);
      }
      if (!right) finite.store(false, std::memory_order_relaxed);
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  int64_t width(int64_t used) const { return round_up(used, core_.lanes); }
  int64_t filter_bytes() const { return constant_ ? 0 : round_up(f_.groups * f_.filters * f_.terms * 4, 64); }
  int64_t sums_bytes() const { return round_up(kLoopRows * 8, 64) + round_up(kLoopRows * most_ * 4, 64); }
  int64_t worker_bytes() const { return sums_bytes() + round_up(f_.terms * most_ * 4, 64); }

  // Positions [first, first + used) of all terms: [terms][width], zeros outside of the image and behind the last one.
  void unfold(const float* image, int64_t first, int64_t used, float* to) const {
    const int64_t wide = width(used), plane = f_.h.dimension * f_.w.dimension, y = first / f_.w.out,
                  x = first % f_.w.out;
    for (int64_t c = 0; c < f_.depth; c += f_.block) {
      for (int64_t i = 0; i < f_.h.taps; ++i) {
        for (int64_t j = 0; j < f_.w.taps; ++j) {
          for (int64_t b = 0; b < f_.block; ++b, to += wide) {
            if (c + b < f_.depth) {
              unfold_term(image + (c + b) * plane, i * f_.h.dilation - f_.h.before, j, y, x, used, to);
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
    const int64_t low = f_.w.first[j], high = f_.w.last[j], shift = j * f_.w.dilation - f_.w.before;
    for (int64_t left = used; left > 0; ++y, x = 0) {
      const int64_t count = std::min(left, f_.w.out - x), line = y * f_.h.stride + down;
      int64_t begin = std::min(std::max<int64_t>(low - x, 0), count), end = std::min(std::max(high - x, begin), count);
      if (line < 0 || line >= f_.h.dimension) begin = end = count;
      const float* from = plane + line * f_.w.dimension + x * f_.w.stride + shift;
      for (int64_t n = 0; n < begin; ++n) to[n] = 0.0f;
      take_every(from + begin * f_.w.stride, f_.w.stride, end - begin, to + begin);
      for (int64_t n = end; n < count; ++n) to[n] = 0.0f;
      to += count;
      left -= count;
    }
  }

  // `count` filters, from `first` of their group on, times a panel. False where a result is no finite number.
  bool multiply(const float* filters, int64_t count, const float* panel, int64_t used, const float* bias, float* out,
                uint8_t* scratch) const {
    if (f_.order == RealConvolutionForm::Order::fours) return multiply_row(filters, panel, used, bias, out);
    const int64_t wide = width(used);
    auto** pointers = reinterpret_cast<const float**>(scratch);
    const bool whole = used == wide;
    RealRows product;
    product.rows = pointers;
    product.capacity = product.count = count;
    product.depth = f_.terms;
    product.part = f_.split;
    product.sums = whole ? out : reinterpret_cast<float*>(scratch + round_up(kLoopRows * 8, 64));
    product.stride = whole ? f_.positions : wide;
    for (int64_t r = 0; r < count; ++r) {
      pointers[r] = filters + r * f_.terms;
      float* sums = product.sums + r * product.stride;
      if (!f_.begins) {
        // Adding -0 changes nothing.
        std::fill_n(sums, wide, -0.0f);
      } else if (!whole) {
        std::copy_n(out + r * f_.positions, used, sums);
        std::fill(sums + used, sums + wide, 0.0f);
      }
    }
    core_.run_in_parts(product, panel, wide);
    for (int64_t r = 0; !whole && r < count; ++r) {
      std::memcpy(out + r * f_.positions, product.sums + r * wide, static_cast<size_t>(used) * 4);
    }
    bool finite = true;
    for (int64_t r = 0; r < count; ++r) {
      finite &= finish(out + r * f_.positions, used, bias == nullptr ? nullptr : bias + r);
    }
    return finite;
  }

  // Adds the bias. False where a result is no finite number.
  static bool finish(float* out, int64_t used, const float* bias) {
    return bias == nullptr ? all_finite(out, used) : add_to_all(out, *bias, used, out);
  }

  // The group's only filter.
  bool multiply_row(const float* row, const float* panel, int64_t used, const float* bias, float* out) const {
    if (!f_.begins) std::memset(out, 0, static_cast<size_t>(used) * 4);
    add_fours(row, panel, width(used), f_.terms, used, out);
    return finish(out, used, bias);
  }

  const RealMatmul& core_;
  RealConvolutionForm f_;
  int64_t most_ = 0, panels_ = 0;
  bool constant_ = false;
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
  const RealConvolutionForm form(step);
  if (auto kernel = make_plane_convolution(step, cores, form)) return kernel;
  if (auto kernel = make_few_positions(step, cores, form)) return kernel;
  require(form.order != RealConvolutionForm::Order::lanes, "there are very many windows");
  return std::make_unique<OrderedReals>(step, cores, form);
}

RealConvolutionForm::RealConvolutionForm(const Step& step)
    : h(read_spatial_axis(step, 0)), w(read_spatial_axis(step, 1)) {
  const Operand &in = step.input(0), &given = step.input(1), &out = step.output();
  const bool real = in.type == Type::f32 && given.type == Type::f32 && out.type == Type::f32;
  require(real && in.dense() && given.dense() && out.dense(), "no native kernel for these types");
  require(step.rule("real_product") == "binary32_fused_blocks", "no native rule for this slot");
  const int rank = in.rank();
  require(given.rank() == rank, "the filter's shape differs");
  require((rank == 3 ? 1 : given.shape[2]) == h.taps && given.shape[rank - 1] == w.taps, "the filter's shape differs");
  batch = in.shape[0];
  const int64_t in_c = in.shape[1], out_c = out.shape[1];
  groups = step.integer("groups", 1, std::max<int64_t>(1, in_c));
  require(out.shape[0] == batch && in_c > 0 && out_c > 0 && in_c % groups == 0 && out_c % groups == 0,
          "channels do not split into groups");
  depth = in_c / groups;
  filters = out_c / groups;
  require(given.shape[0] == out_c && given.shape[1] == depth, "the filter's shape differs");
  positions = h.out * w.out;
  block = std::max<int64_t>(1, step.integer("block", 0, depth));
  terms = round_up(depth, block) * taps();
  require(terms <= int64_t{1} << 24, "a filter is very large");
  if (step.has_input(kAddend)) {
    const Operand& addend = step.input(kAddend);
    require(addend.type == Type::f32 && addend.dense() && addend.elements == out.elements,
            "the addend's shape differs");
    begins = true;
  }
  require(step.integer("channels_last", 0, 1) == 0, "channels are last");
  split = step.integer("split", 0, int64_t{1} << 40);
  find_loop_order(*this);
  if (step.has_input(2)) {
    const Operand& addend = step.input(2);
    require(addend.type == Type::f32 && addend.dense() && addend.elements == out_c, "one bias per filter is needed");
    added = true;
  }
}

void arrange_filters(const RealConvolutionForm& form, const float* from, float* to) {
  const int64_t taps = form.taps(), block = form.block;
  for (int64_t m = 0; m < form.groups * form.filters; ++m, from += form.depth * taps) {
    for (int64_t c = 0; c < form.depth; c += block) {
      for (int64_t t = 0; t < taps; ++t) {
        for (int64_t i = 0; i < block; ++i) *to++ = c + i < form.depth ? from[(c + i) * taps + t] : 0.0f;
      }
    }
  }
}
}  // namespace bittrue

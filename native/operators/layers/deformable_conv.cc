// deformable_conv: convolutions whose taps lie between pixels, by the rule binary32_fused_blocks. Taps are made in the
// panels of columns that the product reads.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "core/kernel.h"
#include "core/rounding.h"
#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/core/registry.h"
#include "operators/layers/fused_product.h"
#include "operators/layers/single_rows.h"

namespace bittrue {
namespace {

class DeformableConv final : public Kernel {
 public:
  DeformableConv(const Step& step, const CoreSet& cores)
      : groups_(step.integer("group", 1, 1 << 30)),
        parts_(step.integer("offset_group", 1, 1 << 30)),
        shape_(step, groups_, parts_),
        product_(cores.real_matmul(), shape_.depth, shape_.positions, 1.0f, false),
        added_(step.has_input(3)),
        weighed_(step.has_input(4)) {
    require(shape_.size[0] * shape_.size[1] < int64_t{1} << 31, "planes are very large");
    require(step.rule("real_product") == "binary32_fused_blocks", "no native rule for this slot");
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      require(!step.has_input(i) || (step.input(i).type == Type::f32 && step.input(i).dense()), "no such native types");
    }
    require(step.output().type == Type::f32 && step.output().dense(), "no native kernel for these types");
    const int64_t factors = shape_.images * parts_ * shape_.taps() * shape_.positions;
    require(step.input(2).elements == 2 * factors && (!added_ || step.input(3).elements == shape_.filters * groups_) &&
                (!weighed_ || step.input(4).elements == factors),
            "the shapes do not fit");
  }

  bool tells_nan() const override { return true; }
  std::string note() const override { return "taps between pixels, fused multiply-adds in blocks"; }
  int64_t scratch_bytes(int threads) const override { return packed_bytes() + threads * product_.worker_bytes(); }

  void run(const Run& run) const override {
    const int64_t panels = product_.panels(), rows = FusedProduct::kRows, blocks = (shape_.filters + rows - 1) / rows;
    const int64_t pixels = shape_.images * shape_.channels * shape_.size[0] * shape_.size[1];
    if (!all_finite(reinterpret_cast<const float*>(run.inputs[0]), pixels)) throw Undefined();
    std::atomic<bool> finite{true};
    for (int64_t image = 0; image < shape_.images; ++image) {
      run.pool.parallel(parts_ * panels, [&](int64_t task, int worker) {
        run.check(worker);
        make_taps(run, image, task / panels, task % panels);
      });
      run.pool.parallel(groups_ * panels * blocks, [&](int64_t task, int worker) {
        run.check(worker);
        const int64_t block = task % blocks * rows;
        if (!multiply(run, image, task / blocks / panels, task / blocks % panels, block, worker)) {
          finite.store(false, std::memory_order_relaxed);
        }
      });
    }
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  // Images, filters and windows that fit together.
  struct Shape {
    Shape(const Step& step, int64_t groups, int64_t parts) {
      const Operand &x = step.input(0), &weights = step.input(1), &out = step.output();
      require(x.rank() == 4 && weights.rank() == 4 && out.rank() == 4 && out.elements > 0 && x.elements > 0,
              "the shapes do not fit");
      images = x.shape[0], channels = x.shape[1], filters = weights.shape[0] / groups;
      depth = weights.shape[1] * weights.shape[2] * weights.shape[3];
      positions = out.shape[2] * out.shape[3], across = out.shape[3];
      require(weights.shape[1] * groups == channels && channels % parts == 0 && filters * groups == weights.shape[0] &&
                  out.shape[0] == images && out.shape[1] == weights.shape[0] && depth > 0,
              "the shapes do not fit");
      const std::vector<int64_t>&strides = step.list("strides"), &dilations = step.list("dilations");
      const std::vector<int64_t>& pads = step.list("pads");
      require(strides.size() == 2 && dilations.size() == 2 && pads.size() == 4, "windows have two axes");
      for (int i = 0; i < 2; ++i) {
        size[i] = x.shape[2 + i], kernel[i] = weights.shape[2 + i];
        stride[i] = strides[i], dilation[i] = dilations[i], pad[i] = pads[i];
      }
    }
    int64_t taps() const { return kernel[0] * kernel[1]; }

    int64_t images, channels, filters, depth, positions, across;
    int64_t size[2], kernel[2], stride[2], dilation[2], pad[2];
  };

  typedef float Four __attribute__((vector_size(16)));

  // Of some positions the first of four neighbours, the neighbours' weights, and the factor; zeros behind the last one.
  static constexpr int64_t kMost = 64;
  struct Places {
    int32_t offsets[kMost];
    float weights[4][kMost], factors[kMost];
  };

  int64_t packed_bytes() const { return round_up(groups_ * product_.matrix_numbers() * 4, 64); }

  // The taps of one panel's positions in all channels that share offsets.
  void make_taps(const Run& run, int64_t image, int64_t part, int64_t panel) const {
    const Shape& s = shape_;
    const int64_t wide = product_.width(panel), begin = panel * product_.panel(), plane = s.size[0] * s.size[1];
    const int64_t together = s.channels / parts_, of_group = s.channels / groups_;
    const float* pixels = reinterpret_cast<const float*>(run.inputs[0]) + image * s.channels * plane;
    auto* packed = reinterpret_cast<float*>(run.scratch);
    const int64_t beside = s.size[1] > 1 ? 1 : 0, below = s.size[0] > 1 ? s.size[1] : 0;
    for (int64_t tap = 0; tap < s.taps(); ++tap) {
      const int64_t row = (image * parts_ + part) * s.taps() + tap;
      const float* offsets = reinterpret_cast<const float*>(run.inputs[2]) + 2 * row * s.positions;
      const float* factors = weighed_ ? reinterpret_cast<const float*>(run.inputs[4]) + row * s.positions : nullptr;
      for (int64_t first = 0; first < wide; first += kMost) {
        const int64_t width = std::min(kMost, wide - first), at = begin + first;
        const int64_t used = std::clamp<int64_t>(s.positions - at, 0, width);
        Places places;
        std::memset(&places, 0, sizeof places);
        for (int64_t n = 0; n < used; ++n) {
          place(offsets, tap, at + n, n, &places);
          places.factors[n] = factors == nullptr ? 1.0f : factors[at + n];
        }
        for (int64_t c = part * together; c < (part + 1) * together; ++c) {
          float* to = packed + c / of_group * product_.matrix_numbers() + begin * s.depth +
                      (c % of_group * s.taps() + tap) * wide + first;
          weigh(places, pixels + c * plane, beside, below, width, to);
        }
      }
    }
  }

  static void weigh(const Places& places, const float* plane, int64_t beside, int64_t below, int64_t count, float* to) {
    const int64_t steps[4] = {0, beside, below, below + beside};
    for (int64_t n = 0; n < count; n += 4) {
      const float *one = plane + places.offsets[n], *two = plane + places.offsets[n + 1];
      const float *three = plane + places.offsets[n + 2], *four = plane + places.offsets[n + 3];
      Four products[4], factors;
      for (int k = 0; k < 4; ++k) {
        const int64_t step = steps[k];
        Four weights;
        std::memcpy(&weights, places.weights[k] + n, sizeof weights);
        products[k] = weights * Four{one[step], two[step], three[step], four[step]};
      }
      std::memcpy(&factors, places.factors + n, sizeof factors);
      const Four made = (((products[0] + products[1]) + products[2]) + products[3]) * factors;
      std::memcpy(to + n, &made, sizeof made);
    }
  }

  // Neighbours outside of the image count 0 times, which pixels inside do as well: of numbers that are finite, only the
  // sign of a zero could differ, which no sum shows that begins with 0.
  void place(const float* offsets, int64_t tap, int64_t position, int64_t n, Places* places) const {
    const Shape& s = shape_;
    const int64_t output[2] = {position / s.across, position % s.across};
    const int64_t number[2] = {tap / s.kernel[1], tap % s.kernel[1]};
    int64_t first[2] = {};
    float weights[2][2] = {};
    bool inside = true;
    for (int i = 0; i < 2; ++i) {
      const float at = static_cast<float>(output[i] * s.stride[i] - s.pad[i] + number[i] * s.dilation[i]) +
                       offsets[i * s.positions + position];
      inside = inside && at > -1.0f && at < static_cast<float>(s.size[i]);
      if (!inside) break;
      const float floor = std::floor(at), part = at - floor;
      const auto low = static_cast<int64_t>(floor);
      // Where the first pixel, or the second one, lies outside, the pair begins with the other one.
      first[i] = std::clamp<int64_t>(low, 0, std::max<int64_t>(s.size[i] - 2, 0));
      if (low >= 0) weights[i][low - first[i]] = 1.0f - part;
      if (low + 1 < s.size[i]) weights[i][low + 1 - first[i]] = part;
    }
    places->offsets[n] = inside ? static_cast<int32_t>(first[0] * s.size[1] + first[1]) : 0;
    for (int k = 0; k < 4; ++k) places->weights[k][n] = inside ? weights[0][k / 2] * weights[1][k % 2] : 0.0f;
  }

  bool multiply(const Run& run, int64_t image, int64_t group, int64_t panel, int64_t first, int worker) const {
    const Shape& s = shape_;
    const int64_t count = std::min(FusedProduct::kRows, s.filters - first), filter = group * s.filters + first;
    const auto* packed = reinterpret_cast<const float*>(run.scratch) + group * product_.matrix_numbers();
    const float* rows = reinterpret_cast<const float*>(run.inputs[1]) + filter * s.depth;
    const int64_t begin = panel * product_.panel(), wide = std::min(product_.panel(), s.positions - begin);
    float* out = reinterpret_cast<float*>(run.outputs[0]) + (image * s.filters * groups_ + filter) * s.positions;
    bool finite = true;
    if (s.filters == 1) {
      std::fill(out + begin, out + begin + wide, 0.0f);
      add_fours(rows, packed + begin * s.depth, product_.width(panel), s.depth, wide, out + begin);
      finite = all_finite(out + begin, wide);
    } else if (s.positions == 1) {
      // Which rows are folded alike follows from the place among all filters.
      for (int64_t r = 0; r < count; ++r) {
        out[r] = sum_lanes_of_eight(rows + r * s.depth, packed, product_.width(0), s.depth, first + r, s.filters);
      }
      finite = all_finite(out, count);
    } else {
      uint8_t* scratch = run.scratch + packed_bytes() + worker * product_.worker_bytes();
      finite = product_.multiply(rows, count, packed, panel, Addend(), out, s.positions, scratch);
    }
    const float* bias = added_ ? reinterpret_cast<const float*>(run.inputs[3]) + filter : nullptr;
    for (int64_t r = 0; bias != nullptr && r < count; ++r) {
      float* row = out + r * s.positions + begin;
      finite &= add_to_all(row, bias[r], wide, row);
    }
    return finite;
  }

  int64_t groups_, parts_;
  Shape shape_;
  FusedProduct product_;
  bool added_, weighed_;
};

std::unique_ptr<Kernel> make_deformable_conv(const Step& step, const CoreSet& cores) {
  require_rounded_twice(step);
  return std::make_unique<DeformableConv>(step, cores);
}

BITTRUE_OPERATOR(deformable_conv, make_deformable_conv)

}  // namespace
}  // namespace bittrue

// conv of real numbers with channels first on images of few positions: windows of all images are the rows of a product
// with panels of filters. A single position without blocks meets filters in 8 lanes.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/layers/fused_product.h"
#include "operators/layers/real_convolution.h"
#include "operators/layers/single_rows.h"

namespace bittrue {
namespace {

constexpr int64_t kWindowRate = 16;   // multiply-adds of one nanosecond, about
constexpr int64_t kLaneFilters = 64;  // of one task of lanes: a multiple of 4, which fold their lanes together
constexpr int64_t kMostWindowFloats = int64_t{1} << 24;  // numbers of all windows

class FewPositions final : public Kernel {
 public:
  FewPositions(const Step& step, const CoreSet& cores, const RealConvolutionForm& form)
      : f_(form), product_(cores.real_matmul(), form.terms, form.filters, 1.0f, std::max<int64_t>(1, form.split)) {
    if (lanes()) return;
    const Operand& filters = step.input(1);
    std::vector<float> values(static_cast<size_t>(filters.elements));
    std::vector<float> arranged(static_cast<size_t>(f_.groups * f_.filters * f_.terms));
    std::memcpy(values.data(), filters.constant, values.size() * 4);
    for (int64_t m = 0; m < f_.groups * f_.filters; ++m) {
      arrange_filter(f_, values.data() + m * f_.depth * f_.taps(), arranged.data() + m * f_.terms);
    }
    packed_.resize(static_cast<size_t>(f_.groups * product_.matrix_numbers()));
    for (int64_t g = 0; g < f_.groups; ++g) {
      product_.pack_all(arranged.data() + g * f_.filters * f_.terms, true,
                        packed_.data() + g * product_.matrix_numbers());
    }
  }

  int64_t scratch_bytes(int threads) const override { return windows_bytes() + threads * worker_bytes(); }
  bool tells_nan() const override { return true; }
  bool packs(size_t input) const override { return input == 1 && !lanes(); }
  std::string note() const override {
    return lanes() ? "products and sums of single rows" : "fused multiply-adds in blocks";
  }

  void run(const Run& run) const override {
    const int64_t rows = this->rows(), work = f_.groups * rows * f_.filters * f_.terms;
    if (rows == 0) return;
    const int threads = run.pool.threads_for(work / kWindowRate);
    auto* windows = reinterpret_cast<float*>(run.scratch);
    run.pool.parallel(f_.groups * f_.batch, threads, [&](int64_t i, int) {
      const float* image = f_.at(run, 0) + (i % f_.batch * f_.groups + i / f_.batch) * f_.depth * f_.channel();
      for (int64_t n = 0; n < f_.positions; ++n) window(image, n, windows + (i * f_.positions + n) * f_.terms);
    });
    const int64_t height = most_rows(), chunks = (rows + height - 1) / height;
    const int64_t parts = lanes() ? (f_.filters + kLaneFilters - 1) / kLaneFilters : product_.panels();
    std::atomic<bool> finite{true};
    run.pool.parallel(f_.groups * parts * chunks, threads, [&](int64_t task, int worker) {
      const int64_t chunk = task % chunks, part = task / chunks % parts, group = task / chunks / parts;
      const int64_t first = chunk * height, count = std::min(height, rows - first);
      const float* own = windows + (group * rows + first) * f_.terms;
      uint8_t* scratch = run.scratch + windows_bytes() + worker * worker_bytes();
      auto* sums = reinterpret_cast<float*>(scratch);
      const int64_t step = lanes() ? kLaneFilters : panel(), low = part * step, used = std::min(step, f_.filters - low);
      if (lanes()) {
        sums_of_lanes_of_eight(f_.at(run, 1) + (group * f_.filters + low) * f_.terms, own, f_.terms, used, sums);
      } else {
        // The panel's columns come first.
        product_.multiply(own, count, packed_.data() + group * product_.matrix_numbers(), part, {}, sums - low, step,
                          scratch + sums_bytes());
      }
      if (!keep(run, sums, step, group, first, count, low, used)) finite.store(false, std::memory_order_relaxed);
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  bool lanes() const { return f_.order == RealConvolutionForm::Order::lanes; }
  int64_t rows() const { return f_.batch * f_.positions; }
  int64_t panel() const { return product_.panel(); }
  // Rows that are worked on together: all filters are read again for the next ones, so that these are not few.
  int64_t most_rows() const {
    if (lanes()) return 1;
    const int64_t chunks = std::max<int64_t>(1, rows() / FusedProduct::kRows);
    return (rows() + chunks - 1) / chunks;
  }
  int64_t windows_bytes() const { return round_up(f_.groups * rows() * f_.terms * 4, 64); }
  int64_t sums_bytes() const { return round_up(most_rows() * std::max(kLaneFilters, panel()) * 4, 64); }
  int64_t worker_bytes() const { return sums_bytes() + product_.worker_bytes(); }

  // [C / block][taps][block], zeros outside of the image.
  void window(const float* image, int64_t position, float* to) const {
    const int64_t z = position / f_.w.out / f_.h.out, y0 = position / f_.w.out % f_.h.out * f_.h.stride - f_.h.before;
    const int64_t x0 = position % f_.w.out * f_.w.stride - f_.w.before;
    for (int64_t c = 0; c < f_.depth; c += f_.block, image += f_.block * f_.channel()) {
      const int64_t used = std::min(f_.block, f_.depth - c);
      for (int64_t line = 0; line < f_.d.taps * f_.h.taps; ++line) {
        const float* plane = f_.plane_of(image, z, line / f_.h.taps);
        const int64_t y = y0 + line % f_.h.taps * f_.h.dilation;
        for (int64_t j = 0; j < f_.w.taps; ++j, to += f_.block) {
          const int64_t x = x0 + j * f_.w.dilation;
          const bool inside = plane != nullptr && y >= 0 && y < f_.h.dimension && x >= 0 && x < f_.w.dimension;
          const float* from = inside ? plane + y * f_.w.dimension + x : nullptr;
          for (int64_t b = 0; b < f_.block; ++b) to[b] = inside && b < used ? from[b * f_.channel()] : 0.0f;
        }
      }
    }
  }

  // Rows [first, first + count) of the sums of filters [low, low + used), which are `step` apart.
  bool keep(const Run& run, const float* sums, int64_t step, int64_t group, int64_t first, int64_t count, int64_t low,
            int64_t used) const {
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const float *begin = f_.begin(run), *bias = f_.bias(run);
    uint32_t odd = 0;
    for (int64_t m = 0; m < used; ++m) {
      const int64_t filter = group * f_.filters + low + m;
      const float addend = bias == nullptr ? 0.0f : bias[filter];
      for (int64_t r = 0; r < count; ++r) {
        const int64_t image = (first + r) / f_.positions, position = (first + r) % f_.positions;
        const int64_t place = (image * f_.groups * f_.filters + filter) * f_.positions + position;
        float value = sums[r * step + m];
        // The lanes' sum begins with 0 where nothing else is.
        if (begin != nullptr || lanes()) value += begin == nullptr ? 0.0f : begin[place];
        if (bias != nullptr) value += addend;
        out[place] = f_.limits(value);
        odd |= static_cast<uint32_t>(!all_finite(&value, 1));
      }
    }
    return odd == 0;
  }

  RealConvolutionForm f_;
  FusedProduct product_;
  std::vector<float> packed_;
};

}  // namespace

std::unique_ptr<Kernel> make_few_positions(const Step& step, const CoreSet& cores, const RealConvolutionForm& form) {
  if (form.groups * form.batch * form.positions * form.terms > kMostWindowFloats) return nullptr;
  if (form.order == RealConvolutionForm::Order::lanes) return std::make_unique<FewPositions>(step, cores, form);
  const int64_t lanes = cores.real_matmul().lanes;
  // Filters are the columns of panels there.
  const bool wasteful =
      8 * form.filters * round_up(form.positions, lanes) > 9 * form.positions * round_up(form.filters, lanes);
  if (form.order != RealConvolutionForm::Order::blocks || step.input(1).constant == nullptr || !wasteful)
    return nullptr;
  // What sums of several blocks begin with would have to be there first.
  if (form.begins && form.terms > form.split) return nullptr;
  return std::make_unique<FewPositions>(step, cores, form);
}

}  // namespace bittrue

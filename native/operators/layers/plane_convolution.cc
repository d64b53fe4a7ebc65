// conv of real numbers with channels first and filters of one channel: each plane is copied into a frame of zeros, where
// every tap of a filter is the same plane elsewhere. With strides, a frame has a plane for each remainder of a place.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/layers/image_frame.h"
#include "operators/layers/real_convolution.h"
#include "operators/layers/single_rows.h"

namespace bittrue {
namespace {

constexpr int64_t kPlaneFilters = 4;     // of a channel; more are a product of matrices
constexpr int64_t kFrameFloats = 6144;   // numbers of a frame, about: it stays in the first cache
constexpr int64_t kPlaneOutputs = 8192;  // of one task, about
constexpr int64_t kPlaneRate = 8;        // outputs of one tap in a nanosecond
constexpr int64_t kWideLine = 64;        // narrower lines run on into the gaps between them
constexpr int64_t kMostCopies = 3;       // of a plane: more of them take longer than the gaps
constexpr int64_t kMostSums = 1 << 24;   // numbers of a plane whose windows are added up
constexpr int64_t kPlaneLanes = 16;      // numbers behind a frame that may be read

// A frame for windows that meet all lines and columns in steps of one and give lines as wide as the image's: a copy of the
// plane per column of taps, without gaps between its lines. Columns that a tap would find at the other end of the line
// before or behind are zeros there.
class EvenFrame {
 public:
  EvenFrame(const SpatialAxis& h, const SpatialAxis& w) : h_(h), w_(w) {
    const int64_t reach = std::max(std::abs(shift(w, 0)), std::abs(shift(w, w.taps - 1)));
    const int64_t below = h.out - 1 + shift(h, h.taps - 1) - (h.dimension - 1);
    lead_ = std::max<int64_t>(0, h.before) * w.dimension + reach;
    plane_ = h.dimension * w.dimension;
    size_ = lead_ + plane_ + std::max<int64_t>(0, below) * w.dimension + reach;
    fits_ = h.stride == 1 && w.stride == 1 && w.out == w.dimension && w.out < kWideLine && w.taps <= kMostCopies &&
            size_ <= kFrameFloats / w.taps;
    for (int64_t i = 0; i < h.taps && fits_; ++i) {
      for (int64_t j = 0; j < w.taps; ++j) {
        offsets_.push_back(j * size_ + lead_ + shift(h, i) * w.dimension + shift(w, j));
      }
    }
  }

  bool fits() const { return fits_; }
  int64_t floats() const { return w_.taps * size_; }
  int64_t offset(int64_t tap) const { return offsets_[tap]; }

  void fill(const float* plane, float* to, bool around) const {
    for (int64_t j = 0; j < w_.taps; ++j, to += size_) {
      if (around) std::fill_n(to, lead_, 0.0f), std::fill(to + lead_ + plane_, to + size_, 0.0f);
      std::memcpy(to + lead_, plane, static_cast<size_t>(plane_) * 4);
      const int64_t moved = shift(w_, j), out = std::min(std::abs(moved), w_.dimension);
      float* line = to + lead_ + (moved < 0 ? w_.dimension - out : 0);
      for (int64_t y = 0; y < h_.dimension && out > 0; ++y, line += w_.dimension) std::fill_n(line, out, 0.0f);
    }
  }

 private:
  static int64_t shift(const SpatialAxis& axis, int64_t tap) { return tap * axis.dilation - axis.before; }

  SpatialAxis h_, w_;
  int64_t lead_ = 0, plane_ = 0, size_ = 0;
  bool fits_ = false;
  std::vector<int64_t> offsets_;
};

class PlaneConvolution final : public Kernel {
 public:
  // `kept` are the filters where they are constants.
  PlaneConvolution(const CoreSet& cores, const RealConvolutionForm& form, std::vector<float> kept)
      : core_(cores.real_plane()),
        f_(form),
        even_frame_(form.h, form.w),
        even_(even_frame_.fits() && form.order != RealConvolutionForm::Order::fours),
        tile_w_(std::min<int64_t>(form.w.out, 4096)),
        tile_h_(even_ ? form.h.out : lines_of_tile(form, tile_w_)),
        frame_(form.h, form.w, tile_h_, tile_w_),
        kept_(std::move(kept)) {
    require(frame_floats() <= int64_t{1} << 24, "a frame is very large");
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }
  bool tells_nan() const override { return true; }
  bool packs(size_t input) const override { return input == 1 && !kept_.empty(); }
  std::string note() const override {
    return f_.order == RealConvolutionForm::Order::blocks ? "fused multiply-adds in planes"
                                                          : "products and sums of single rows";
  }

  void run(const Run& run) const override {
    const int64_t down = (f_.h.out + tile_h_ - 1) / tile_h_, across = (f_.w.out + tile_w_ - 1) / tile_w_;
    const int64_t tiles = down * across, planes = f_.batch * f_.groups, outputs = tile_h_ * tile_w_ * f_.filters;
    const int64_t together = std::max<int64_t>(1, kPlaneOutputs / std::max<int64_t>(1, outputs));
    if (planes * tiles == 0) return;
    const int64_t work = planes * f_.positions * f_.filters * f_.terms;
    const int threads = run.pool.threads_for(work / kPlaneRate);
    std::atomic<bool> finite{true};
    run.pool.parallel((planes * tiles + together - 1) / together, threads, [&](int64_t task, int worker) {
      const Worker mine = place(run.scratch + worker * worker_bytes());
      bool right = true;
      std::fill_n(mine.frame + frame_floats() - kPlaneLanes, kPlaneLanes, 0.0f);
      for (int64_t i = task * together; i < std::min(planes * tiles, (task + 1) * together); ++i) {
        // Planes of a single tile leave the zeros around them as they are.
        const bool around = tiles > 1 || i == task * together;
        right &= tile(run, mine, i / tiles, i % tiles / across * tile_h_, i % across * tile_w_, around);
      }
      if (!right) finite.store(false, std::memory_order_relaxed);
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  struct Worker {
    const float** inputs;
    float *frame, *sums;
  };

  // Lines above and below, which each tile copies again, shall be few.
  static int64_t lines_of_tile(const RealConvolutionForm& form, int64_t width) {
    const FrameAxis rows(form.h, 1), columns(form.w, width);
    const int64_t fit = kFrameFloats / (rows.slots() * columns.slots() * columns.size);
    return std::min(form.h.out, std::max<int64_t>({fit, 8 * (rows.size - 1), 1}));
  }
  int64_t frame_floats() const { return (even_ ? even_frame_.floats() : frame_.floats()) + kPlaneLanes; }
  bool runs_on() const { return !even_ && f_.w.out < kWideLine && f_.order != RealConvolutionForm::Order::fours; }
  int64_t sums_bytes() const { return runs_on() ? round_up(tile_h_ * frame_.pitch() * 4, 64) : 0; }
  int64_t worker_bytes() const { return round_up(f_.terms * 8, 64) + round_up(frame_floats() * 4, 64) + sums_bytes(); }
  Worker place(uint8_t* scratch) const {
    Worker w{};
    w.inputs = reinterpret_cast<const float**>(scratch);
    w.frame = reinterpret_cast<float*>(scratch + round_up(f_.terms * 8, 64));
    w.sums = w.frame + round_up(frame_floats(), 16);
    for (int64_t t = 0; t < f_.terms; ++t) w.inputs[t] = w.frame + (even_ ? even_frame_.offset(t) : frame_.offset(t));
    return w;
  }

  // All filters of a plane, at outputs from line y0 and column x0 on. False where a result is no finite number.
  bool tile(const Run& run, const Worker& worker, int64_t plane, int64_t y0, int64_t x0, bool around) const {
    const int64_t lines = std::min(tile_h_, f_.h.out - y0), used = std::min(tile_w_, f_.w.out - x0);
    const int64_t pitch = frame_.pitch(), filter = plane % f_.groups * f_.filters;
    const bool fours = f_.order == RealConvolutionForm::Order::fours;
    const float* image = f_.at(run, 0) + plane * f_.plane();
    if (even_) {
      even_frame_.fill(image, worker.frame, around);
    } else {
      frame_.fill(image, y0, x0, worker.frame, around);
    }
    bool finite = true;
    for (int64_t m = 0; m < f_.filters; ++m) {
      const int64_t first = (plane * f_.filters + m) * f_.positions + y0 * f_.w.out + x0;
      const float* begin = f_.begins ? f_.begin(run) + first : nullptr;
      float* out = reinterpret_cast<float*>(run.outputs[0]) + first;
      const float bias = f_.added ? f_.bias(run)[filter + m] : -0.0f;  // adding -0 changes nothing
      RealPlaneRows rows;
      rows.inputs = worker.inputs;
      rows.weights = (kept_.empty() ? f_.at(run, 1) : kept_.data()) + (filter + m) * f_.terms;
      rows.taps = f_.terms, rows.lines = lines, rows.step = pitch, rows.count = used;
      rows.out = out, rows.out_step = f_.w.out;
      if (begin == nullptr) rows.bias = bias, rows.low = f_.limits.low, rows.high = f_.limits.high;
      if (even_) rows.lines = 1, rows.count = f_.positions;
      if (runs_on()) rows.lines = 1, rows.count = (lines - 1) * pitch + used, rows.out = worker.sums;
      if (!fours) finite &= core_(rows);
      for (int64_t y = 0; y < lines && runs_on(); ++y) {
        take_every(worker.sums + y * pitch, 1, used, out + y * f_.w.out);
      }
      if (!fours && begin == nullptr) continue;
      for (int64_t y = 0; y < lines; ++y) {
        float* to = out + y * f_.w.out;
        const float* more = begin == nullptr ? nullptr : begin + y * f_.w.out;
        if (fours) {
          if (more == nullptr) std::fill_n(to, used, 0.0f);
          if (more != nullptr) std::copy_n(more, used, to);
          add_fours(rows.weights, [&](int64_t k) { return worker.inputs[k] + y * pitch; }, f_.terms, used, to);
        } else {
          for (int64_t x = 0; x < used; ++x) to[x] += more[x];
        }
        finite &= add_to_all(to, bias, used, to);
        f_.limits.apply(to, used);
      }
    }
    return finite;
  }

  RealPlane core_;
  RealConvolutionForm f_;
  EvenFrame even_frame_;
  bool even_;
  int64_t tile_w_, tile_h_;
  ImageFrame frame_;
  std::vector<float> kept_;
};

}  // namespace

std::unique_ptr<Kernel> make_plane_convolution(const Step& step, const CoreSet& cores,
                                               const RealConvolutionForm& form) {
  const bool single_chain = form.order == RealConvolutionForm::Order::blocks && form.terms <= form.split;
  if (form.depth > 1 || form.block > 1 || form.filters > kPlaneFilters || form.is_volume()) return nullptr;
  if (form.order != RealConvolutionForm::Order::fours && !single_chain) return nullptr;
  const Operand& filters = step.input(1);
  std::vector<float> kept(static_cast<size_t>(filters.constant == nullptr ? 0 : filters.elements));
  if (!kept.empty()) std::memcpy(kept.data(), filters.constant, kept.size() * 4);
  if (single_chain && form.order == RealConvolutionForm::Order::blocks) {
    auto lanes = make_lane_windows(cores, form, RealLaneRows::Join::products, kept.empty() ? nullptr : kept.data());
    if (lanes != nullptr) return lanes;
  }
  return std::make_unique<PlaneConvolution>(cores, form, std::move(kept));
}

std::unique_ptr<Kernel> make_plane_sums(const CoreSet& cores, const RealConvolutionForm& form) {
  RealConvolutionForm channels = form;
  std::swap(channels.batch, channels.groups);
  if (auto lanes = make_lane_windows(cores, channels, RealLaneRows::Join::sums)) return lanes;
  const FrameAxis lines(form.h, form.h.out), columns(form.w, form.w.out);
  if (form.is_volume() || lines.slots() * lines.size * columns.slots() * columns.size > kMostSums) return nullptr;
  // A product with 1 is exact.
  return std::make_unique<PlaneConvolution>(cores, form, std::vector<float>(static_cast<size_t>(form.terms), 1.0f));
}

}  // namespace bittrue

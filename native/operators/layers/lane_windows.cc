// Windows over real images with channels first, sixteen channels side by side: their planes are transposed into a frame with
// what lies outside around it, a few lines at a time, and so are the results. Every lane is a channel, however narrow lines are.
#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/layers/real_convolution.h"

namespace bittrue {
namespace {

using Join = RealLaneRows::Join;

constexpr int64_t kChannels = RealLaneRows::kChannels;
constexpr int64_t kFewChannels = 8;          // fewer leave most lanes empty
constexpr int64_t kSide = 4;                 // of the squares that transpositions are made of
constexpr int64_t kLaneFrame = 1 << 15;      // numbers of a frame, about
constexpr int64_t kMostLaneFrame = 1 << 20;  // that one line may need
constexpr int64_t kLaneRate = 16;            // taps of outputs in a nanosecond, about
constexpr int64_t kLaneTaskTaps = 1 << 18;   // of one task, about

class LaneWindows final : public Kernel {
 public:
  // `filters`: [groups][terms] of products that are known; else they are read when running.
  LaneWindows(const CoreSet& cores, const RealConvolutionForm& form, Join join, const float* filters)
      : core_(cores.real_lanes()),
        transpose_(cores.transpose_reals()),
        f_(form),
        join_(join),
        start_(join == Join::largest ? kLowest : 0.0f) {
    pitch_ = reach(f_.w) + (f_.w.out - 1) * f_.w.stride;
    const int64_t fit = (kLaneFrame / (pitch_ * kChannels) - reach(f_.h)) / f_.h.stride + 1;
    lines_ = std::clamp<int64_t>(fit, 1, f_.h.out);
    rows_ = reach(f_.h) + (lines_ - 1) * f_.h.stride;
    for (int64_t i = 0; i < f_.h.taps; ++i) {
      for (int64_t j = 0; j < f_.w.taps; ++j) {
        offsets_.push_back((i * f_.h.dilation * pitch_ + j * f_.w.dilation) * kChannels);
      }
    }
    skips_ = join != Join::products;
    if (filters == nullptr) return;
    skips_ = all_finite(filters, f_.groups * f_.terms);
    kept_.resize(static_cast<size_t>(blocks() * f_.terms * kChannels));
    for (int64_t b = 0; b < blocks(); ++b) arrange(filters, b, kept_.data() + b * f_.terms * kChannels);
  }

  // Whether frames are of a usual size.
  static bool fits(const RealConvolutionForm& form) {
    const int64_t width = reach(form.w) + (form.w.out - 1) * form.w.stride;
    return !form.is_volume() && form.filters == 1 && form.depth <= 1 && form.positions >= kSide &&
           form.w.dimension >= kSide && form.groups >= kFewChannels && width <= kMostLaneFrame &&
           reach(form.h) <= kMostLaneFrame && width * reach(form.h) * kChannels <= kMostLaneFrame;
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_floats() * 4; }
  bool tells_nan() const override { return join_ == Join::products; }
  bool packs(size_t input) const override { return input == 1 && !kept_.empty(); }
  std::string note() const override {
    return join_ == Join::products ? "fused multiply-adds, channels in lanes"
           : join_ == Join::sums   ? "sums of windows, channels in lanes"
                                   : "largest of windows, channels in lanes";
  }

  void run(const Run& run) const override {
    const int64_t tiles = (f_.h.out + lines_ - 1) / lines_, all = f_.batch * blocks() * tiles;
    if (all == 0) return;
    const int64_t each = lines_ * f_.w.out * kChannels * f_.terms;
    const int threads = run.pool.threads_for(all * each / kLaneRate);
    const int64_t together = std::max<int64_t>(1, kLaneTaskTaps / std::max<int64_t>(1, each));
    std::atomic<bool> finite{true};
    run.pool.parallel((all + together - 1) / together, threads, [&](int64_t task, int worker) {
      float* scratch = reinterpret_cast<float*>(run.scratch) + worker * worker_floats();
      bool right = true;
      for (int64_t i = task * together; i < std::min(all, (task + 1) * together); ++i) {
        right &= tile(run, i / tiles / blocks(), i / tiles % blocks(), i % tiles * lines_, scratch);
      }
      if (!right) finite.store(false, std::memory_order_relaxed);
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr float kLowest = std::numeric_limits<float>::lowest();

  // How many lines or columns the taps of one output span.
  static int64_t reach(const SpatialAxis& axis) { return (axis.taps - 1) * axis.dilation + 1; }
  int64_t blocks() const { return (f_.groups + kChannels - 1) / kChannels; }
  int64_t filter_floats() const { return join_ == Join::products && kept_.empty() ? f_.terms * kChannels : 0; }
  int64_t frame_floats() const { return rows_ * pitch_ * kChannels; }
  int64_t worker_floats() const { return filter_floats() + kChannels + frame_floats() + lines_ * f_.w.out * kChannels; }

  // Filters of a block, a term's side by side.
  void arrange(const float* filters, int64_t block, float* to) const {
    for (int64_t c = 0; c < kChannels; ++c) {
      const int64_t channel = block * kChannels + c;
      for (int64_t t = 0; t < f_.terms; ++t) {
        to[t * kChannels + c] = channel < f_.groups ? filters[channel * f_.terms + t] : 0.0f;
      }
    }
  }

  // Taps [low, high) of a window's height.
  struct Taps {
    bool operator==(const Taps& other) const { return low == other.low && high == other.high; }
    int64_t low, high;
  };
  // Those that output line y finds inside of the image: all others change nothing, but where they meet a filter that is
  // no finite number.
  Taps taps_of(int64_t y) const {
    if (!skips_) return {0, f_.h.taps};
    const int64_t top = y * f_.h.stride - f_.h.before, last = f_.h.dimension - 1 - top;
    const int64_t low = top < 0 ? (-top + f_.h.dilation - 1) / f_.h.dilation : 0;
    const int64_t high = last < 0 ? 0 : std::min(f_.h.taps, last / f_.h.dilation + 1);
    return {std::min(low, high), high};
  }

  // A few lines of a block's channels, from y0 on. False where a result of products is no finite number.
  bool tile(const Run& run, int64_t image, int64_t block, int64_t y0, float* scratch) const {
    const int64_t first = block * kChannels, count = std::min(kChannels, f_.groups - first);
    const int64_t lines = std::min(lines_, f_.h.out - y0), plane = image * f_.groups + first;
    float *biases = scratch + filter_floats(), *frame = biases + kChannels, *results = frame + frame_floats();
    const float* begin = f_.begins ? f_.begin(run) + plane * f_.positions + y0 * f_.w.out : nullptr;
    RealLaneRows rows;
    rows.join = join_, rows.start = start_;
    if (join_ == Join::products) {
      if (kept_.empty()) arrange(f_.at(run, 1), block, scratch);
      rows.weights = kept_.empty() ? scratch : kept_.data() + block * f_.terms * kChannels;
      // Adding -0 changes nothing.
      std::fill_n(biases, kChannels, -0.0f);
      if (f_.added && begin == nullptr) std::copy_n(f_.bias(run) + first, count, biases);
      rows.biases = biases;
      if (begin == nullptr) rows.low = f_.limits.low, rows.high = f_.limits.high;
    }
    fill(f_.at(run, 0) + plane * f_.plane(), count, y0, lines, frame);
    rows.count = f_.w.out;
    rows.step = f_.h.stride * pitch_ * kChannels, rows.stride = f_.w.stride * kChannels;
    rows.out_step = f_.w.out * kChannels;
    bool finite = true;
    const float* weights = rows.weights;
    for (int64_t y = 0; y < lines; y += rows.lines) {
      const Taps taps = taps_of(y0 + y);
      for (rows.lines = 1; y + rows.lines < lines && taps_of(y0 + y + rows.lines) == taps;) ++rows.lines;
      const int64_t skipped = taps.low * f_.w.taps;
      rows.offsets = offsets_.data() + skipped, rows.taps = (taps.high - taps.low) * f_.w.taps;
      if (weights != nullptr) rows.weights = weights + skipped * kChannels;
      rows.image = frame + y * rows.step, rows.out = results + y * rows.out_step;
      finite &= core_(rows);
    }
    float* out = reinterpret_cast<float*>(run.outputs[0]) + plane * f_.positions + y0 * f_.w.out;
    transpose_(results, kChannels, out, f_.positions, count, lines * f_.w.out);
    for (int64_t c = 0; c < count && begin != nullptr; ++c, out += f_.positions, begin += f_.positions) {
      for (int64_t n = 0; n < lines * f_.w.out; ++n) out[n] += begin[n];
      finite &= add_to_all(out, f_.added ? f_.bias(run)[first + c] : -0.0f, lines * f_.w.out, out);
      f_.limits.apply(out, lines * f_.w.out);
    }
    return finite;
  }

  // What windows of `lines` lines from y0 on see of `count` channels; the other lanes hold zeros.
  void fill(const float* planes, int64_t count, int64_t y0, int64_t lines, float* frame) const {
    const int64_t top = y0 * f_.h.stride - f_.h.before, used = reach(f_.h) + (lines - 1) * f_.h.stride;
    const int64_t low = std::clamp<int64_t>(f_.w.before, 0, pitch_);
    const int64_t high = std::clamp<int64_t>(f_.w.before + f_.w.dimension, low, pitch_);
    if (count < kChannels) std::fill_n(frame, used * pitch_ * kChannels, 0.0f);
    for (int64_t y = top; y < top + used; ++y, frame += pitch_ * kChannels) {
      if (y < 0 || y >= f_.h.dimension) {
        std::fill_n(frame, pitch_ * kChannels, start_);
        continue;
      }
      std::fill_n(frame, low * kChannels, start_);
      transpose_(planes + y * f_.w.dimension + low - f_.w.before, f_.plane(), frame + low * kChannels, kChannels,
                 high - low, count);
      std::fill_n(frame + high * kChannels, (pitch_ - high) * kChannels, start_);
    }
  }

  RealLanes core_;
  TransposeReals transpose_;
  RealConvolutionForm f_;
  Join join_;
  float start_;
  bool skips_ = false;
  int64_t pitch_ = 0, lines_ = 1, rows_ = 0;  // columns of a frame, lines of outputs, lines of a frame
  std::vector<int64_t> offsets_;
  std::vector<float> kept_;  // [blocks][terms][16]
};

}  // namespace

std::unique_ptr<Kernel> make_lane_windows(const CoreSet& cores, const RealConvolutionForm& form, Join join,
                                          const float* filters) {
  if (!LaneWindows::fits(form)) return nullptr;
  return std::make_unique<LaneWindows>(cores, form, join, filters);
}

}  // namespace bittrue

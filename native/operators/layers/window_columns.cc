// conv of real numbers by the rule binary32_fused_windows_of_7: a chain down each column of a window inside of the image,
// whose sums are then added in halves of eight; a chain row by row for windows that reach beyond it.
#include <algorithm>
#include <atomic>
#include <memory>

#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/layers/image_frame.h"
#include "operators/layers/real_convolution.h"

namespace bittrue {
namespace {

constexpr int64_t kSide = 7;
constexpr int64_t kTaps = kSide * kSide;
constexpr int64_t kBehind = 16;     // numbers behind a plane that may be read
constexpr int64_t kOutputRate = 1;  // outputs of one filter in a nanosecond, about

// Outputs [first, end) of an axis whose windows lie inside of the image.
struct InsideAxis {
  explicit InsideAxis(const SpatialAxis& axis) {
    first = std::min(axis.out, (axis.before + axis.stride - 1) / axis.stride);
    const int64_t last = axis.dimension + axis.before - kSide;
    end = std::clamp<int64_t>(last < 0 ? 0 : last / axis.stride + 1, first, axis.out);
  }
  int64_t count() const { return end - first; }
  int64_t first, end;
};

class WindowColumns final : public Kernel {
 public:
  WindowColumns(const CoreSet& cores, const RealConvolutionForm& form)
      : core_(cores.real_plane()),
        f_(form),
        frame_(form.h, form.w, form.h.out, form.w.out),
        lines_(form.h),
        columns_(form.w) {
    require(frame_.floats() <= int64_t{1} << 24, "a frame is very large");
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }
  bool tells_nan() const override { return true; }
  std::string note() const override { return "fused multiply-adds down the windows' columns"; }

  void run(const Run& run) const override {
    const int64_t planes = f_.batch * f_.groups;
    if (planes * f_.positions == 0) return;
    const int64_t work = planes * f_.filters * f_.positions;
    const int threads = run.pool.threads_for(work / kOutputRate);
    std::atomic<bool> finite{true};
    run.pool.parallel(planes, threads, [&](int64_t plane, int worker) {
      if (!channel(run, place(run.scratch + worker * worker_bytes()), plane)) {
        finite.store(false, std::memory_order_relaxed);
      }
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  struct Worker {
    const float** inputs;
    float *frame, *begin, *lanes, *weights;
  };

  int64_t plane_floats() const { return round_up(f_.h.out * frame_.pitch() + kBehind, 16); }
  int64_t frame_floats() const { return round_up(frame_.floats() + kBehind, 16); }
  int64_t lane_floats() const { return round_up(lines_.count() * columns_.count(), 16); }
  int64_t worker_bytes() const {
    return round_up((kTaps + 1) * 8, 64) + 4 * (frame_floats() + plane_floats() + kSide * lane_floats() + 128);
  }
  Worker place(uint8_t* scratch) const {
    Worker w{};
    w.inputs = reinterpret_cast<const float**>(scratch);
    w.frame = reinterpret_cast<float*>(scratch + round_up((kTaps + 1) * 8, 64));
    w.begin = w.frame + frame_floats();
    w.lanes = w.begin + plane_floats();
    w.weights = w.lanes + kSide * lane_floats();
    return w;
  }

  // All filters of a channel. False where a result is no finite number.
  bool channel(const Run& run, const Worker& worker, int64_t plane) const {
    const int64_t pitch = frame_.pitch();
    std::fill_n(worker.frame + frame_.floats(), kBehind, 0.0f);
    frame_.fill(f_.at(run, 0) + plane * f_.plane(), 0, 0, worker.frame);
    bool finite = true;
    for (int64_t m = 0; m < f_.filters; ++m) {
      const int64_t filter = plane % f_.groups * f_.filters + m, first = (plane * f_.filters + m) * f_.positions;
      const float* begin = f_.begins ? f_.begin(run) + first : nullptr;
      const float* weights = f_.at(run, 1) + filter * kTaps;
      const float bias = f_.added ? f_.bias(run)[filter] : -0.0f;  // adding -0 changes nothing
      float* out = reinterpret_cast<float*>(run.outputs[0]) + first;
      // The first tap is what the sum begins with, times 1.
      worker.weights[0] = 1;
      std::copy_n(weights, kTaps, worker.weights + 1);
      std::fill_n(worker.begin, plane_floats(), 0.0f);
      for (int64_t y = 0; y < f_.h.out && begin != nullptr; ++y) {
        std::copy_n(begin + y * f_.w.out, f_.w.out, worker.begin + y * pitch);
      }
      const int64_t down = lines_.count() > 0 && columns_.count() > 0 ? lines_.count() : 0;
      const int64_t top = down > 0 ? lines_.first : f_.h.out, bottom = down > 0 ? lines_.end : f_.h.out;
      finite &= in_turn(worker, bias, 0, 0, top, f_.w.out, out);
      finite &= in_turn(worker, bias, top, 0, down, columns_.first, out);
      finite &= in_turn(worker, bias, top, columns_.end, down, f_.w.out - columns_.end, out);
      finite &= in_turn(worker, bias, bottom, 0, f_.h.out - bottom, f_.w.out, out);
      if (down > 0) finite &= by_columns(worker, weights, begin, bias, out);
    }
    return finite;
  }

  // Windows that reach beyond the image.
  bool in_turn(const Worker& worker, float bias, int64_t y, int64_t x, int64_t lines, int64_t count, float* out) const {
    if (lines == 0 || count == 0) return true;
    const int64_t pitch = frame_.pitch(), from = y * pitch + x;
    worker.inputs[0] = worker.begin + from;
    for (int64_t t = 0; t < kTaps; ++t) worker.inputs[t + 1] = worker.frame + frame_.offset(t) + from;
    RealPlaneRows rows;
    const int64_t first = f_.begins ? 0 : 1;
    rows.inputs = worker.inputs + first, rows.weights = worker.weights + first, rows.taps = kTaps + 1 - first;
    rows.lines = lines, rows.step = pitch, rows.count = count;
    rows.bias = bias, rows.low = f_.limits.low, rows.high = f_.limits.high;
    rows.out = out + y * f_.w.out + x, rows.out_step = f_.w.out;
    return core_(rows);
  }

  // Windows inside of it.
  bool by_columns(const Worker& worker, const float* weights, const float* begin, float bias, float* out) const {
    const int64_t pitch = frame_.pitch(), from = lines_.first * pitch + columns_.first, count = columns_.count();
    bool finite = true;
    for (int64_t j = 0; j < kSide; ++j) {
      float column[kSide];
      for (int64_t i = 0; i < kSide; ++i) {
        column[i] = weights[i * kSide + j];
        worker.inputs[i] = worker.frame + frame_.offset(i * kSide + j) + from;
      }
      RealPlaneRows rows;
      rows.inputs = worker.inputs, rows.weights = column, rows.taps = kSide;
      rows.lines = lines_.count(), rows.step = pitch, rows.count = count;
      rows.out = worker.lanes + j * lane_floats(), rows.out_step = count;
      finite &= core_(rows);
    }
    for (int64_t y = 0; y < lines_.count(); ++y) {
      const int64_t place = (lines_.first + y) * f_.w.out + columns_.first;
      const float* lane[kSide];
      for (int64_t j = 0; j < kSide; ++j) lane[j] = worker.lanes + j * lane_floats() + y * count;
      float* to = out + place;
      for (int64_t x = 0; x < count; ++x) {
        // The eighth lane is +0.
        const float even = (lane[0][x] + lane[4][x]) + (lane[2][x] + lane[6][x]);
        to[x] = even + ((lane[1][x] + lane[5][x]) + (lane[3][x] + 0.0f));
      }
      for (int64_t x = 0; x < count && begin != nullptr; ++x) to[x] += begin[place + x];
      finite &= add_to_all(to, bias, count, to);
      f_.limits.apply(to, count);
    }
    return finite;
  }

  RealPlane core_;
  RealConvolutionForm f_;
  ImageFrame frame_;
  InsideAxis lines_, columns_;
};

}  // namespace

std::unique_ptr<Kernel> make_window_columns(const CoreSet& cores, const RealConvolutionForm& form) {
  const SpatialAxis &h = form.h, &w = form.w;
  require(form.depth == 1 && !form.is_volume() && h.taps == kSide && w.taps == kSide, "other windows");
  require(h.dilation == 1 && w.dilation == 1 && h.before >= 0 && w.before >= 0, "other windows");
  return std::make_unique<WindowColumns>(cores, form);
}

}  // namespace bittrue

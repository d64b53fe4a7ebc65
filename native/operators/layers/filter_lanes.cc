// conv of real numbers with channels first whose sums are those of blocks of channels, every lane a filter, so that narrow
// images fill vectors as wide ones do. Images are laid out block by block, a position's channels side by side; windows with
// the same taps inside of the image go together, and taps outside of it are left out.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "core/memory.h"
#include "core/share.h"
#include "operators/layers/real_convolution.h"

namespace bittrue {
namespace {

constexpr int64_t kFilterRate = 16;     // multiply-adds of one nanosecond, about
constexpr int64_t kChunk = 512;         // positions that are worked on together, about:
constexpr int64_t kSmallChunk = 128;    // fewer where a block's filters leave room for their sums in the first cache
constexpr int64_t kSmallPanel = 4096;   // numbers of these filters
constexpr int64_t kLaidOut = 1 << 20;   // numbers of images that are laid out together, about
constexpr int64_t kPlanes = 16;         // whose numbers are brought together at once
constexpr int64_t kMostTaps = 1 << 12;  // of all kinds of windows
constexpr int64_t kMostLine = 1 << 12;  // outputs of an axis

// Outputs [first, end) of an axis whose taps [low, high) lie inside of the image.
struct Stretch {
  int64_t first = 0, end = 0, low = 0, high = 0;
};

std::vector<Stretch> stretches_of(const SpatialAxis& axis) {
  std::vector<Stretch> found;
  for (int64_t i = 0; i < axis.out; ++i) {
    const auto [low, high] = axis.taps_inside(i);
    if (!found.empty() && found.back().low == low && found.back().high == high) {
      found.back().end = i + 1;
    } else {
      found.push_back({i, i + 1, low, high});
    }
  }
  return found;
}

// Filters [filter, filter + count) of a group, `width` lanes.
struct Panel {
  int64_t filter = 0, count = 0, width = 0;
};

std::vector<Panel> panels_of(const WindowProduct& core, int64_t filters) {
  std::vector<Panel> found;
  for (int64_t m = 0; m < filters;) {
    int64_t vectors = core.vectors;
    while (vectors > 1 && (vectors - 1) * core.lanes >= filters - m) vectors /= 2;
    const int64_t width = vectors * core.lanes;
    found.push_back({m, std::min(width, filters - m), width});
    m += width;
  }
  return found;
}

class FilterLanes final : public Kernel {
 public:
  FilterLanes(const Step& step, const CoreSet& cores, const RealConvolutionForm& form)
      : core_(cores.window_product()),
        transpose_(cores.transpose_reals()),
        f_(form),
        channels_(channels_of_sum(f_)),
        blocks_((f_.terms + f_.split - 1) / f_.split),
        down_(stretches_of(f_.h)),
        across_(stretches_of(f_.w)),
        panels_(panels_of(core_, f_.filters)) {
    const int64_t most = f_.split * width() > kSmallPanel ? kChunk : kSmallChunk;
    lines_ = std::clamp<int64_t>(most / f_.w.out, 1, f_.h.out);
    const int64_t chunks = (f_.h.out + lines_ - 1) / lines_;
    lines_ = (f_.h.out + chunks - 1) / chunks;
    for (const Stretch& y : down_) {
      for (const Stretch& x : across_) find_taps(y, x);
    }
    const Operand& filters = step.input(1);
    std::vector<float> values(static_cast<size_t>(filters.elements));
    std::memcpy(values.data(), filters.constant, values.size() * 4);
    packed_.reset(static_cast<float*>(lasting_memory(static_cast<size_t>(f_.groups * group_floats() * 4))));
    pack(values.data(), packed_.get());
  }

  // Whether the sums are those of blocks of channels, and the kernel's tables are of a usual size.
  static bool fits(const Step& step, const RealConvolutionForm& form) {
    const bool blocked = step.integer("split", 0, int64_t{1} << 40) > 0;
    if (!blocked || form.is_volume() || step.input(1).constant == nullptr || form.positions == 0) return false;
    // Else the channels of a sum follow each other otherwise.
    if (form.taps() > 1 && channels_of_sum(form) != form.block) return false;
    if (form.w.out > kMostLine || form.h.out > kMostLine || form.taps() > kMostTaps) return false;
    const auto kinds = [](const SpatialAxis& axis) { return static_cast<int64_t>(stretches_of(axis).size()); };
    return kinds(form.h) * kinds(form.w) * form.taps() <= kMostTaps;
  }

  // Whether that takes less time than positions in lanes: lanes that are left empty, gaps between lines and taps outside of
  // the image count, and the change of layout.
  static bool pays(const RealConvolutionForm& form, int64_t lanes) {
    const auto met = [](const SpatialAxis& axis) {
      int64_t found = 0;
      for (int64_t t = 0; t < axis.taps; ++t) found += axis.last[t] - axis.first[t];
      return static_cast<double>(found);
    };
    const auto wide = [&](int64_t count) { return static_cast<double>(round_up(count, lanes)); };
    const bool point = form.block == form.depth && form.taps() == 1;
    const double gaps = static_cast<double>(form.w.out + (form.w.taps - 1) * form.w.dilation);
    const double columns =
        point ? wide(form.positions) / static_cast<double>(form.h.out) : std::min(wide(form.w.out), gaps);
    const double depth = static_cast<double>(form.depth), filters = static_cast<double>(form.filters);
    const double moved = static_cast<double>(lanes) / 4 * (1 / depth + 1 / filters) / static_cast<double>(form.taps());
    const double ours = met(form.h) * met(form.w) * wide(form.filters) * (1 + moved);
    return ours < met(form.h) * static_cast<double>(form.w.taps) * columns * filters;
  }

  int64_t scratch_bytes(int threads) const override { return images_bytes() + threads * worker_bytes(); }
  bool tells_nan() const override { return true; }
  bool packs(size_t input) const override { return input == 1; }
  std::string note() const override { return "fused multiply-adds in blocks, filters in lanes"; }

  void run(const Run& run) const override {
    if (f_.batch * f_.positions == 0) return;
    const int64_t images = f_.batch * f_.groups, chunks = (f_.h.out + lines_ - 1) / lines_;
    const int64_t panels = static_cast<int64_t>(panels_.size());
    const int threads = run.pool.threads_for(images * f_.positions * f_.filters * f_.terms / kFilterRate);
    auto* laid_out = reinterpret_cast<float*>(run.scratch);
    std::atomic<bool> finite{true};
    for (int64_t first = 0; first < images; first += together()) {
      const int64_t some = std::min(together(), images - first);
      if (!lies_there()) {
        run.pool.parallel(some * blocks_, threads, [&](int64_t task, int) {
          lay_out(f_.at(run, 0) + (first + task / blocks_) * f_.depth * f_.plane(), task % blocks_,
                  laid_out + task / blocks_ * image_floats());
        });
      }
      const int64_t parts = threads > 1 && some * chunks < 4 * threads ? panels : 1;
      run.pool.parallel(some * chunks * parts, threads, [&](int64_t task, int worker) {
        const int64_t part = task % parts, chunk = task / parts % chunks, image = task / parts / chunks;
        const float* from =
            lies_there() ? f_.at(run, 0) + (first + image) * f_.depth * f_.plane() : laid_out + image * image_floats();
        uint8_t* scratch = run.scratch + images_bytes() + worker * worker_bytes();
        if (!work_on(run, first + image, from, chunk * lines_, panels * part / parts, panels * (part + 1) / parts,
                     scratch, worker)) {
          finite.store(false, std::memory_order_relaxed);
        }
      });
    }
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  struct Freed {
    void operator()(float* memory) const { std::free(memory); }
  };
  // Channels whose products are one sum.
  static int64_t channels_of_sum(const RealConvolutionForm& form) {
    return std::min(form.split / form.taps(), round_up(form.depth, form.block));
  }

  // Taps of the windows of one pair of stretches, and where they are in `taps_`.
  struct Kind {
    size_t first = 0, end = 0;
  };
  // Windows of one kind in a chunk, and where they are in its places.
  struct Part {
    Kind kind;
    int64_t first = 0, count = 0;
  };

  // Taps of a line lie side by side, unless they are dilated.
  void find_taps(const Stretch& y, const Stretch& x) {
    Kind kind{taps_.size(), 0};
    const int64_t side_by_side = f_.w.dilation == 1 ? std::max<int64_t>(1, x.high - x.low) : 1;
    for (int64_t i = y.low; i < y.high; ++i) {
      for (int64_t j = x.low; j < x.high; j += side_by_side) {
        taps_.push_back({(i * f_.h.dilation * f_.w.dimension + j * f_.w.dilation) * channels_,
                         (i * f_.w.taps + j) * channels_, side_by_side * channels_});
      }
    }
    kind.end = taps_.size();
    kinds_.push_back(kind);
  }

  // Images of blocks of one channel are used where they lie.
  bool lies_there() const { return channels_ == 1; }
  int64_t image_floats() const { return blocks_ * f_.plane() * channels_; }
  int64_t together() const { return std::max<int64_t>(1, kLaidOut / std::max<int64_t>(1, image_floats())); }
  int64_t images_bytes() const {
    return lies_there() ? 0 : round_up(std::min(together(), f_.batch * f_.groups) * image_floats() * 4, 64);
  }
  int64_t width() const { return panels_.front().width; }
  int64_t group_floats() const { return (panels_.back().filter + panels_.back().width) * f_.terms; }
  int64_t places_bytes() const {
    return round_up(lines_ * f_.w.out * static_cast<int64_t>(sizeof(RealWindows::Place)), 64);
  }
  int64_t worker_bytes() const {
    return places_bytes() + round_up(width() * 4, 64) + round_up(lines_ * f_.w.out * width() * 4, 64) +
           round_up(static_cast<int64_t>(kinds_.size() * sizeof(Part)), 64);
  }

  // Filters as [group][panel][terms][lane], zeros in lanes of none.
  void pack(const float* from, float* to) const {
    std::vector<float> rows(static_cast<size_t>(width() * f_.terms));
    for (int64_t g = 0; g < f_.groups; ++g) {
      for (const Panel& panel : panels_) {
        std::fill(rows.begin(), rows.end(), 0.0f);
        for (int64_t m = 0; m < panel.count; ++m, from += f_.depth * f_.taps()) {
          arrange_filter(f_, from, rows.data() + m * f_.terms);
        }
        transpose_(rows.data(), f_.terms, to, panel.width, f_.terms, panel.width);
        to += panel.width * f_.terms;
      }
    }
  }

  // A block's channels of every position side by side, the lacking ones of the last block zeros.
  void lay_out(const float* image, int64_t block, float* to) const {
    const int64_t first = block * channels_, used = std::min(channels_, f_.depth - first);
    to += first * f_.plane();
    if (used < channels_ && f_.taps() > 1) std::fill_n(to, f_.plane() * channels_, 0.0f);
    bring_together(image + first * f_.plane(), f_.plane(), to, channels_, f_.plane(), used);
  }
  // Numbers of `planes` planes side by side, few planes at a time, so that they are read ahead.
  void bring_together(const float* from, int64_t step, float* to, int64_t width, int64_t count, int64_t planes) const {
    for (int64_t c = 0; c < planes; c += kPlanes) {
      transpose_(from + c * step, step, to + c, width, count, std::min(kPlanes, planes - c));
    }
  }

  // Panels [low, high) of the outputs of an image's group from line `top` on. False where a result is no finite number.
  bool work_on(const Run& run, int64_t image, const float* from, int64_t top, int64_t low, int64_t high,
               uint8_t* scratch, int index) const {
    const int64_t lines = std::min(lines_, f_.h.out - top), count = lines * f_.w.out;
    auto* places = reinterpret_cast<RealWindows::Place*>(scratch);
    auto* biases = reinterpret_cast<float*>(scratch + places_bytes());
    float* sums = biases + round_up(width(), 16);
    auto* parts = reinterpret_cast<Part*>(sums + round_up(lines_ * f_.w.out * width(), 16));
    bool finite = true;
    int64_t part_count = 0;
    for (int64_t p = low; p < high; ++p) {
      const Panel& panel = panels_[p];
      if (p == low || panel.width != panels_[p - 1].width) {
        part_count = find_places(top, lines, panel.width, places, parts);
      }
      const int64_t filter = image % f_.groups * f_.filters + panel.filter;
      const int64_t plane = (image * f_.filters + panel.filter) * f_.positions + top * f_.w.out;
      const float* packed = packed_.get() + image % f_.groups * group_floats() + panel.filter * f_.terms;
      // Adding -0 changes nothing.
      std::fill_n(biases, panel.width, -0.0f);
      if (f_.added) std::copy_n(f_.bias(run) + filter, panel.count, biases);
      RealWindows windows;
      windows.sums = sums;
      windows.low = f_.limits.low, windows.high = f_.limits.high;
      if (f_.begins) {
        if (panel.count < panel.width) std::fill_n(sums, count * panel.width, 0.0f);
        bring_together(f_.begin(run) + plane, f_.positions, sums, panel.width, count, panel.count);
      }
      for (int64_t b = 0; b < blocks_; ++b) {
        run.check(index);
        windows.image = from + b * f_.plane() * channels_;
        windows.begun = b > 0 || f_.begins;
        windows.biases = b + 1 == blocks_ ? biases : nullptr;
        // The last block of channels without neighbours may be a smaller one.
        const RealWindows::Taps only{0, 0, std::min(f_.split, f_.terms - b * f_.split)};
        for (int64_t i = 0; i < part_count; ++i) {
          const Part& part = parts[i];
          windows.places = places + part.first, windows.count = part.count;
          windows.taps = taps_.data() + part.kind.first;
          windows.tap_count = static_cast<int64_t>(part.kind.end - part.kind.first);
          if (f_.taps() == 1 && windows.tap_count == 1) windows.taps = &only;
          finite &= core_.run(windows, packed + b * f_.split * panel.width, panel.width);
        }
      }
      transpose_(sums, panel.width, reinterpret_cast<float*>(run.outputs[0]) + plane, f_.positions, panel.count, count);
    }
    return finite;
  }

  // The windows of `lines` lines from `top` on, kind by kind; how many kinds there are.
  int64_t find_places(int64_t top, int64_t lines, int64_t width, RealWindows::Place* places, Part* parts) const {
    int64_t found = 0, kinds = 0;
    for (size_t i = 0; i < down_.size(); ++i) {
      const int64_t first = std::max(down_[i].first, top), end = std::min(down_[i].end, top + lines);
      if (first >= end) continue;
      for (size_t j = 0; j < across_.size(); ++j) {
        const Stretch& x = across_[j];
        Part& part = parts[kinds++] = {kinds_[i * across_.size() + j], found, 0};
        for (int64_t y = first; y < end; ++y) {
          const int64_t line = (y * f_.h.stride - f_.h.before) * f_.w.dimension - f_.w.before;
          for (int64_t n = x.first; n < x.end; ++n) {
            places[found++] = {(line + n * f_.w.stride) * channels_, ((y - top) * f_.w.out + n) * width};
          }
        }
        part.count = found - part.first;
      }
    }
    return kinds;
  }

  const WindowProduct& core_;
  TransposeReals transpose_;
  RealConvolutionForm f_;
  int64_t channels_, blocks_, lines_ = 1;  // channels of a block, blocks of an image, lines of a chunk
  std::vector<Stretch> down_, across_;
  std::vector<Panel> panels_;
  std::vector<RealWindows::Taps> taps_;
  std::vector<Kind> kinds_;  // [down][across]
  std::unique_ptr<float, Freed> packed_;
};

}  // namespace

std::unique_ptr<Kernel> make_filter_lanes(const Step& step, const CoreSet& cores, const RealConvolutionForm& form) {
  if (!FilterLanes::fits(step, form) || !FilterLanes::pays(form, cores.window_product().lanes)) return nullptr;
  return std::make_unique<FilterLanes>(step, cores, form);
}

}  // namespace bittrue

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
#include "operators/layers/exact_products.h"
#include "operators/layers/fused_product.h"
#include "operators/layers/image_convolution.h"
#include "operators/layers/image_frame.h"
#include "operators/layers/integer_convolution.h"
#include "operators/layers/integer_finish.h"
#include "operators/layers/late_layer.h"
#include "operators/layers/ordered_convolution.h"
#include "operators/layers/real_convolution.h"
#include "operators/layers/real_layer.h"
#include "operators/layers/single_rows.h"
#include "operators/layers/tiled_layer.h"
#include "operators/layers/tiled_product.h"
#include "operators/layers/whole_layer.h"

namespace bittrue {
namespace {

constexpr int64_t kLoopRows = 36;       // filters that are worked on together: a multiple of most tiles' height
constexpr int64_t kLoopRate = 16;       // multiply-adds of one nanosecond, about
constexpr int64_t kLoopWidth = 1024;    // columns of a tile
constexpr int64_t kLoopFrames = 65536;  // numbers of a tile's frames, about
constexpr int64_t kLoopPacked = 65536;  // numbers of panels that are packed together, about
constexpr int64_t kLoopSpots = 64;      // that one call works on
constexpr int64_t kFirstCache = 8192;   // numbers of packed panels among them
constexpr int64_t kLoopColumns = 512;   // of panels that are worked on together, about

// The order of a product without blocks of its own.
void find_loop_order(RealConvolutionForm& f) {
  if (f.split > 0) return;
  f.split = FusedProduct::block_of(f.terms, f.positions, false);
  f.order = f.filters == 1     ? RealConvolutionForm::Order::fours
            : f.positions == 1 ? RealConvolutionForm::Order::lanes
                               : RealConvolutionForm::Order::blocks;
}

// Planes of all channels lie in frames, where every term is a panel of positions elsewhere. Where that wastes little, panels
// are parts of the output's lines; else they run on into the gaps between the frame's lines, which are left out afterwards.
// Filters of one tap that meet every position have no frames: panels of the image itself are packed.
class OrderedReals final : public Kernel {
 public:
  OrderedReals(const Step& step, const CoreSet& cores, const RealConvolutionForm& form)
      : core_(cores.real_matmul()),
        f_(as_line(where_met(step, form))),
        bare_(is_bare(f_)),
        most_(core_.lanes * (bare_ ? core_.vectors : std::min(core_.vectors, RealMatmul::kPlacedVectors))),
        together_(panels_together()),
        tile_w_(std::min(f_.w.out,
                         bare_ ? std::clamp(kLoopFrames / layers(), 2 * together_ * most_, kLoopWidth) : kLoopWidth)),
        tile_h_(lines_of_tile()),
        frame_(f_.h, f_.w, tile_h_, tile_w_),
        by_lines_(goes_by_lines()) {
    require(frame_.floats() <= int64_t{1} << 30 && planes() <= (int64_t{1} << 34) / frame_.floats(),
            "frames are very large");
    const Operand& filters = step.input(1);
    if (filters.constant != nullptr) {
      constant_ = true;
      std::vector<float> values(static_cast<size_t>(filters.elements));
      std::memcpy(values.data(), filters.constant, values.size() * 4);
      skips_ = f_.taps() < form.taps() || passes_over(step, form);
      if (f_.taps() < form.taps()) values = met_taps(form, values.data());
      kept_.resize(static_cast<size_t>(filter_floats()));
      std::vector<float> one(static_cast<size_t>(f_.terms));
      lay_out_filters(values.data(), one.data(), kept_.data());
    }
    find_bands();
    if (bare_) return;
    for (int64_t c = 0; c < layers(); c += f_.block) {
      for (int64_t t = 0; t < f_.h.taps * f_.w.taps; ++t) {
        for (int64_t i = c; i < c + f_.block; ++i) {
          places_.push_back(std::min(i, layers()) * plane_floats() + frame_.offset(t));
        }
      }
    }
  }

  int64_t scratch_bytes(int threads) const override { return filter_bytes() + threads * worker_bytes(); }
  bool tells_nan() const override { return true; }
  bool packs(size_t input) const override { return input == 1 && constant_; }
  std::string note() const override {
    return f_.order == RealConvolutionForm::Order::blocks ? "fused multiply-adds in blocks"
                                                          : "products and sums of single rows";
  }

  void run(const Run& run) const override {
    if (f_.batch * f_.positions == 0) return;
    const float* weights = constant_ ? kept_.data() : f_.at(run, 1);
    if (filter_bytes() > 0) {
      auto* target = reinterpret_cast<float*>(run.scratch);
      lay_out_filters(weights, target + filter_floats(), target);
      weights = target;
    }
    // Every plane of the output is an image.
    const int64_t images = f_.batch * f_.groups * f_.d.out, work = images * f_.filters * f_.terms * plane();
    const int64_t across = (f_.w.out + tile_w_ - 1) / tile_w_, tiles = (f_.h.out + tile_h_ - 1) / tile_h_ * across;
    // Few tiles are laid out by several threads, each for filters of its own.
    const int threads = run.pool.threads_for(work / kLoopRate);
    const int64_t chunks = (f_.filters + kLoopRows - 1) / kLoopRows;
    const int64_t parts = images * tiles < 2 * threads ? std::min<int64_t>(chunks, threads) : 1;
    std::atomic<bool> finite{true};
    run.pool.parallel(images * tiles * parts, threads, [&](int64_t task, int worker) {
      const int64_t part = task % parts, number = task / parts % tiles;
      Tile tile;
      tile.image = task / parts / tiles / f_.d.out, tile.z = task / parts / tiles % f_.d.out;
      tile.y = number / across * tile_h_, tile.x = number % across * tile_w_;
      tile.lines = std::min(tile_h_, f_.h.out - tile.y), tile.used = std::min(tile_w_, f_.w.out - tile.x);
      tile.low = chunks * part / parts * kLoopRows;
      tile.end = std::min(f_.filters, chunks * (part + 1) / parts * kLoopRows);
      tile.weights = weights;
      if (!work_on(run, tile, run.scratch + filter_bytes() + worker * worker_bytes(), worker)) {
        finite.store(false, std::memory_order_relaxed);
      }
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  // Outputs of plane z of an image's group from line y and column x on, and filters [low, end).
  struct Tile {
    int64_t image = 0, z = 0, y = 0, x = 0, lines = 0, used = 0, low = 0, end = 0;
    const float* weights = nullptr;
  };
  // Lines of the output, and which terms of every sum are added there: others meet padding.
  struct Band {
    int64_t end = 0, from = 0, to = 0;
  };
  struct Worker {
    const float** pointers;
    float *sums, *packed, *frames;
  };

  // The taps of an axis that meet the image in some window, one after the other: all where none does.
  struct Met {
    explicit Met(const SpatialAxis& axis) {
      const auto meets = [&](int64_t tap) { return axis.first[tap] < axis.last[tap]; };
      while (begin < axis.taps && !meets(begin)) ++begin;
      end = axis.taps;
      while (end > begin && !meets(end - 1)) --end;
      if (begin == end) begin = 0, end = axis.taps;
    }
    void keep(SpatialAxis& axis) const {
      axis.taps = end - begin, axis.before -= begin * axis.dilation;
      axis.first = {axis.first.begin() + begin, axis.first.begin() + end};
      axis.last = {axis.last.begin() + begin, axis.last.begin() + end};
    }
    int64_t begin = 0, end = 0;
  };
  // Whether sums are those of blocks of channels, which pass over taps that meet padding. Zeros times infinity or NaN are
  // the reference's.
  static bool passes_over(const Step& step, const RealConvolutionForm& form) {
    const Operand& filters = step.input(1);
    if (form.block == 1 || form.split != form.block * form.taps() || form.order != RealConvolutionForm::Order::blocks ||
        filters.constant == nullptr) {
      return false;
    }
    std::vector<float> values(static_cast<size_t>(filters.elements));
    std::memcpy(values.data(), filters.constant, values.size() * 4);
    return all_finite(values.data(), filters.elements);
  }
  // Without taps that only ever meet padding, as those of widely dilated filters.
  static RealConvolutionForm where_met(const Step& step, const RealConvolutionForm& form) {
    RealConvolutionForm met = form;
    Met(form.h).keep(met.h), Met(form.w).keep(met.w);
    if (met.taps() == form.taps() || !passes_over(step, form)) return form;
    met.split = met.block * met.taps();
    met.terms = round_up(met.depth, met.block) * met.taps();
    return met;
  }
  // Filters [M][C][taps] with those taps alone.
  static std::vector<float> met_taps(const RealConvolutionForm& form, const float* filters) {
    const Met h(form.h), w(form.w);
    std::vector<float> found;
    for (int64_t i = 0; i < form.groups * form.filters * form.depth; ++i, filters += form.taps()) {
      for (int64_t y = h.begin; y < h.end; ++y) {
        found.insert(found.end(), filters + y * form.w.taps + w.begin, filters + y * form.w.taps + w.end);
      }
    }
    return found;
  }
  // Filters of one tap that meet every position need no frames.
  static bool is_bare(const RealConvolutionForm& form) {
    const auto own = [](const SpatialAxis& axis) {
      return axis.taps == 1 && axis.stride == 1 && axis.before == 0 && axis.dimension == axis.out;
    };
    return own(form.d) && own(form.h) && own(form.w) && form.depth % form.block == 0;
  }
  // Such images are a single line.
  static RealConvolutionForm as_line(RealConvolutionForm form) {
    if (!is_bare(form)) return form;
    form.w.dimension = form.w.out = form.positions;
    form.h.dimension = form.h.out = form.d.dimension = form.d.out = 1;
    return form;
  }
  // About what `lines` lines cost: half a panel is not worked on twice as fast.
  int64_t cost_of(int64_t lines, const Band& band) const {
    const int64_t columns = (by_lines_ ? 0 : lines - 1) * frame_.pitch() + f_.w.out, rest = columns % most_;
    const int64_t cost = columns / most_ * 4 + (2 * rest > most_ ? 4 : rest > 0 ? 3 : 0);
    return (by_lines_ ? lines : 1) * cost * (band.to - band.from);
  }
  // Lines whose windows meet other taps go together unless they cost more so.
  void find_bands() {
    if (!skips_) {
      bands_ = {{f_.h.out, 0, f_.terms}};
      return;
    }
    const int64_t line_terms = f_.w.taps * f_.block;
    for (int64_t y = 0; y < f_.h.out; ++y) {
      const auto [low, high] = f_.h.taps_inside(y);
      bands_.push_back({y + 1, low * line_terms, high * line_terms});
      while (bands_.size() > 1) {
        const Band last = bands_.back(), before = bands_[bands_.size() - 2];
        const int64_t begin = bands_.size() > 2 ? bands_[bands_.size() - 3].end : 0;
        const Band both{last.end, std::min(before.from, last.from), std::max(before.to, last.to)};
        const int64_t apart = cost_of(before.end - begin, before) + cost_of(last.end - before.end, last);
        if (cost_of(last.end - begin, both) > apart) break;
        bands_.pop_back();
        bands_.back() = both;
      }
    }
  }
  int64_t panels_together() const {
    const int64_t columns = bare_ ? std::min(kLoopColumns, kLoopPacked / f_.terms) : kLoopColumns;
    return std::max<int64_t>(1, columns / most_);
  }
  // At least a few panels, and as many lines as fit into a cache.
  int64_t lines_of_tile() const {
    const int64_t pitch = FrameAxis(f_.w, tile_w_).size;
    const int64_t fit = kLoopFrames / std::max<int64_t>(1, layers() * pitch), least = (2 * most_ + pitch - 1) / pitch;
    return std::max<int64_t>(1, std::min(f_.h.out, std::max(fit, least)));
  }
  // Panels that end with a line go back into it, which needs lines as wide as they are.
  bool goes_by_lines() const {
    if (bare_ || f_.order == RealConvolutionForm::Order::fours || f_.w.out < most_ || tile_w_ < f_.w.out) return false;
    return round_up(f_.w.out, core_.lanes) <= frame_.pitch();
  }
  // Planes that filters meet: of a channel, one for every tap of depth.
  int64_t layers() const { return f_.depth * f_.d.taps; }
  int64_t plane() const { return f_.h.out * f_.w.out; }  // of the output
  // Channels that fill up the last block are zeros.
  int64_t planes() const { return layers() + (layers() % f_.block == 0 ? 0 : 1); }
  // Planes begin at an odd number of cache lines, so that they do not share the cache's sets.
  int64_t plane_floats() const { return round_up(frame_.floats(), 16) | 16; }
  int64_t frame_bytes() const { return bare_ ? 0 : round_up((planes() * plane_floats() + most_) * 4, 64); }
  // Filters of one tap that fill whole blocks lie there as they are wanted.
  bool lie_there() const { return !constant_ && f_.taps() == 1 && f_.depth % f_.block == 0; }
  int64_t filter_bytes() const { return constant_ || lie_there() ? 0 : round_up((filter_floats() + f_.terms) * 4, 64); }
  // Others are laid [chunk][part][filter][terms of a part], so that those that are worked on together lie together.
  int64_t part_terms() const { return lie_there() ? f_.terms : std::min(f_.split, f_.terms); }
  int64_t filter_terms() const { return round_up(f_.terms, part_terms()); }
  int64_t filter_floats() const { return f_.groups * f_.filters * filter_terms(); }
  // Filters of the chunk that begins with filter m.
  int64_t chunk_at(int64_t m) const { return std::min(kLoopRows, f_.filters - m); }
  void lay_out_filters(const float* from, float* one, float* to) const {
    const int64_t part = part_terms();
    for (int64_t g = 0; g < f_.groups; ++g) {
      for (int64_t m = 0; m < f_.filters; ++m, from += f_.depth * f_.taps()) {
        const int64_t first = m / kLoopRows * kLoopRows, count = chunk_at(first);
        float* place = to + (g * f_.filters + first) * filter_terms() + (m - first) * part;
        arrange_filter(f_, from, one);
        for (int64_t k = 0; k < f_.terms; k += part, place += count * part) {
          std::copy_n(one + k, std::min(part, f_.terms - k), place);
        }
      }
    }
  }
  int64_t pointer_bytes() const { return round_up(kLoopRows * 8, 64); }
  int64_t sums_bytes() const { return by_lines_ ? 0 : round_up(kLoopRows * together_ * most_ * 4, 64); }
  int64_t packed_bytes() const { return bare_ ? round_up(f_.terms * together_ * most_ * 4, 64) : 0; }
  int64_t worker_bytes() const { return pointer_bytes() + sums_bytes() + packed_bytes() + frame_bytes(); }
  Worker place(uint8_t* scratch) const {
    Worker w{};
    w.pointers = reinterpret_cast<const float**>(scratch);
    w.sums = reinterpret_cast<float*>(scratch + pointer_bytes());
    w.packed = reinterpret_cast<float*>(scratch + pointer_bytes() + sums_bytes());
    w.frames = reinterpret_cast<float*>(scratch + pointer_bytes() + sums_bytes() + packed_bytes());
    return w;
  }

  bool work_on(const Run& run, const Tile& tile, uint8_t* scratch, int index) const {
    const Worker worker = place(scratch);
    const float* image = f_.at(run, 0) + tile.image * f_.depth * f_.channel();
    for (int64_t c = 0; c < planes() && !bare_; ++c) {
      float* frame = worker.frames + c * plane_floats();
      const float* from =
          c < layers() ? f_.plane_of(image + c / f_.d.taps * f_.channel(), tile.z, c % f_.d.taps) : nullptr;
      if (from != nullptr) frame_.fill(from, tile.y, tile.x, frame);
      std::fill(frame + (from != nullptr ? frame_.floats() : 0), frame + plane_floats(), 0.0f);
    }
    if (!bare_) std::fill_n(worker.frames + planes() * plane_floats(), most_, 0.0f);
    bool finite = true;
    int64_t begin = 0;
    for (const Band& band : bands_) {
      const int64_t low = std::clamp<int64_t>(begin - tile.y, 0, tile.lines);
      const int64_t end = std::clamp<int64_t>(band.end - tile.y, 0, tile.lines);
      begin = band.end;
      if (low == end) continue;
      finite &= by_lines_ ? lines(run, tile, worker, band, low, end, index)
                          : run_on(run, tile, worker, image, band, low, end, index);
    }
    return finite;
  }

  // All filters and lines [low, high) of a tile that run on into each other.
  bool run_on(const Run& run, const Tile& tile, const Worker& worker, const float* image, const Band& band, int64_t low,
              int64_t high, int index) const {
    // Wide gaps between lines, as dilated filters leave, are passed over.
    const int64_t pitch = frame_.pitch(), step = together_ * most_;
    const int64_t together = 2 * round_up(tile.used, core_.lanes) <= pitch ? 1 : high - low;
    bool finite = true;
    for (int64_t y = low; y < high; y += together) {
      const int64_t end = (y + together - 1) * pitch + tile.used;
      for (int64_t first = y * pitch; first < end; first += step) {
        run.check(index);
        const int64_t columns = std::min(step, end - first);
        if (bare_) pack(image + tile.x + first, columns, worker.packed);
        for (int64_t m = tile.low; m < tile.end; m += kLoopRows) {
          finite &= multiply(run, tile, worker, band, m, std::min(kLoopRows, tile.end - m), first, columns);
        }
      }
    }
    return finite;
  }

  // Panels of `columns` positions of all channels, filled up with zeros; some lines of the cache at a time.
  void pack(const float* image, int64_t columns, float* to) const {
    for (int64_t c = 0; c < f_.depth; ++c, image += f_.positions) {
      for (int64_t p = 0; p < columns; p += most_) {
        const int64_t used = std::min(most_, columns - p), wide = round_up(used, core_.lanes);
        float* panel = to + p * f_.terms + c * wide;
        take_every(image + p, 1, used, panel);
        std::fill(panel + used, panel + wide, 0.0f);
      }
    }
  }

  // body(line, column, place, count) for the stretches of lines in the `wide` places from `first` on.
  template <class Body>
  void for_lines(const Tile& tile, int64_t first, int64_t wide, const Body& body) const {
    const int64_t pitch = frame_.pitch();
    if (pitch == f_.w.out) {
      // Lines without gaps are one.
      body(tile.y, first, 0, std::min(wide, tile.lines * pitch - first));
      return;
    }
    for (int64_t y = first / pitch; y < tile.lines && y * pitch < first + wide; ++y) {
      const int64_t low = std::max(first, y * pitch), high = std::min(first + wide, y * pitch + tile.used);
      if (low < high) body(tile.y + y, tile.x + low - y * pitch, low - first, high - low);
    }
  }

  // Where the tile's plane of filter m begins in the output.
  int64_t first_of(const Tile& tile, int64_t m) const {
    return (tile.image * f_.filters + m) * f_.positions + tile.z * plane();
  }

  // A product of filters from filter m on, without its panel.
  RealRows product_of(const Run& run, const Tile& tile, const Worker& worker, const Band& band, int64_t m,
                      int64_t count) const {
    const int64_t row = tile.image % f_.groups * f_.filters + m, part = part_terms();
    const float* weights = tile.weights + row * filter_terms();
    RealRows product;
    product.rows = worker.pointers;
    product.capacity = product.count = count;
    product.depth = f_.terms;
    product.part = f_.split;
    product.gap = lie_there() ? 0 : (count - 1) * part;
    product.biases = f_.added ? f_.bias(run) + row : nullptr;
    product.low = f_.limits.low, product.high = f_.limits.high;
    product.places = bare_ ? nullptr : places_.data();
    if (skips_) product.from = band.from, product.to = band.to;
    product.begins = kNothing<float>.numbers;
    for (int64_t r = 0; r < count; ++r) worker.pointers[r] = weights + r * part;
    return product;
  }

  // All filters and lines [low, high) of a tile, straight into the output. False where a result is no finite number.
  bool lines(const Run& run, const Tile& tile, const Worker& worker, const Band& band, int64_t low, int64_t high,
             int index) const {
    const int64_t pitch = frame_.pitch(), width = f_.w.out, group = kLoopColumns / width + 1;
    bool finite = true;
    for (int64_t y = low; y < high; y += group) {
      run.check(index);
      for (int64_t m = tile.low; m < tile.end; m += kLoopRows) {
        RealRows product = product_of(run, tile, worker, band, m, std::min(kLoopRows, tile.end - m));
        const int64_t at = first_of(tile, m) + (tile.y + y) * width;
        product.sums = reinterpret_cast<float*>(run.outputs[0]) + at;
        product.stride = f_.positions;
        if (f_.begins) product.begins = f_.begin(run) + at, product.begins_stride = f_.positions;
        RealSpot spots[kLoopSpots];
        product.spots = spots;
        const auto multiply = [&](int64_t wide, int64_t begin, int64_t end) {
          product.spot_count = 0;
          for (int64_t line = 0; line < std::min(group, high - y); ++line) {
            for (int64_t x = begin; x < end; x += wide) {
              spots[product.spot_count++] = {line * pitch + x, line * width + x};
              if (product.spot_count < kLoopSpots) continue;
              finite &= core_.run_placed(product, worker.frames + y * pitch, wide);
              product.spot_count = 0;
            }
          }
          if (product.spot_count > 0) finite &= core_.run_placed(product, worker.frames + y * pitch, wide);
        };
        multiply(most_, 0, width / most_ * most_);
        // Those at the ends of lines may begin before others have ended, whose sums they make again.
        const int64_t wide = round_up(width % most_, core_.lanes);
        if (wide > 0) multiply(wide, width - wide, width);
      }
    }
    return finite;
  }

  // `count` filters of the group from filter m on, at `columns` places. False where a result is no finite number.
  bool multiply(const Run& run, const Tile& tile, const Worker& worker, const Band& band, int64_t m, int64_t count,
                int64_t first, int64_t columns) const {
    const int64_t begins = first_of(tile, m), step = together_ * most_;
    const bool fours = f_.order == RealConvolutionForm::Order::fours;
    RealRows product = product_of(run, tile, worker, band, m, count);
    auto* out = reinterpret_cast<float*>(run.outputs[0]) + begins;
    const float* begin = f_.begins ? f_.begin(run) + begins : nullptr;
    const int64_t pitch = frame_.pitch(), line = pitch == f_.w.out ? 0 : first / pitch;
    const bool one_line = pitch == f_.w.out || first - line * pitch + columns <= tile.used;
    // Columns that go straight into the output.
    const int64_t filled = columns % most_ % core_.lanes == 0 ? columns : columns - columns % most_;
    const int64_t direct = one_line && !fours ? filled : 0;
    if (begin != nullptr || fours) {
      for (int64_t r = 0; r < count; ++r) std::fill_n(worker.sums + r * step + direct, step - direct, 0.0f);
    }
    for (int64_t r = 0; begin != nullptr && r < count; ++r) {
      for_lines(tile, first + direct, columns - direct, [&](int64_t y, int64_t x, int64_t from, int64_t length) {
        std::copy_n(begin + r * f_.positions + y * f_.w.out + x, length, worker.sums + r * step + direct + from);
      });
    }
    bool finite = true;
    for (int64_t p = 0; fours && p < columns; p += most_) {
      const int64_t wide = round_up(std::min(most_, columns - p), core_.lanes);
      const float* panel = bare_ ? worker.packed + p * f_.terms : worker.frames + first + p;
      float* sums = worker.sums + p;
      add_fours(
          *worker.pointers, [&](int64_t k) { return panel + (bare_ ? k * wide : places_[k]); }, f_.terms, wide, sums);
      finite &= add_to_all(sums, f_.added ? *product.biases : -0.0f, wide, sums);
      f_.limits.apply(sums, wide);
    }
    RealSpot spots[kLoopSpots];
    product.spots = spots;
    for (int64_t p = 0, next = 0; p < columns && !fours; p = next) {
      const int64_t used = std::min(most_, columns - p), wide = round_up(used, core_.lanes);
      // Panels of a width that are parts of the frames go together, and so do packed ones that fit into the first cache:
      // what is written then lies side by side.
      const int64_t packed = f_.terms > f_.split ? 1 : std::max<int64_t>(1, kFirstCache / (most_ * f_.terms));
      const int64_t together = std::min({(columns - p) / most_, kLoopSpots, bare_ ? packed : kLoopSpots});
      product.spot_count = used < most_ ? 1 : together;
      for (int64_t i = 0; i < product.spot_count; ++i) spots[i] = {i * most_ * (bare_ ? f_.terms : 1), i * most_};
      next = p + product.spot_count * most_;
      const float* panel = bare_ ? worker.packed + p * f_.terms : worker.frames + first + p;
      const bool whole = p < direct;
      const int64_t place = (tile.y + line) * f_.w.out + tile.x + first - line * pitch + p;
      product.sums = whole ? out + place : worker.sums + p;
      product.stride = whole ? f_.positions : step;
      if (begin != nullptr) {
        product.begins = whole ? begin + place : nullptr;
        product.begins_stride = f_.positions;
      }
      finite &= (bare_ ? core_.run_in_parts : core_.run_placed)(product, panel, wide);
    }
    for (int64_t r = 0; r < count && direct < columns; ++r) {
      for_lines(tile, first + direct, columns - direct, [&](int64_t y, int64_t x, int64_t from, int64_t length) {
        std::memcpy(out + r * f_.positions + y * f_.w.out + x, worker.sums + r * step + direct + from,
                    static_cast<size_t>(length) * 4);
      });
    }
    return finite;
  }

  const RealMatmul& core_;
  RealConvolutionForm f_;
  bool bare_;
  int64_t most_, together_, tile_w_, tile_h_;
  ImageFrame frame_;
  bool by_lines_, constant_ = false, skips_ = false;
  std::vector<Band> bands_;
  std::vector<float> kept_;
  std::vector<int64_t> places_;
};

std::unique_ptr<Kernel> make_conv(const Step& step, const CoreSet& cores) {
  const std::string& arithmetic = step.text("arithmetic");
  if (arithmetic == "whole") return make_whole_layer(step, cores);
  if (step.rules.count("center") != 0) return make_conv(without_center(step), cores);
  if (arithmetic == "images" || arithmetic == "depthwise" || arithmetic == "hybrid" || arithmetic == "ordered") {
    const std::string& layout = step.text("filter_layout");
    if (layout == "OSI") return make_image_convolution(step, cores);
    if (layout == "ISO") return make_depthwise_convolution(step, cores);
  }
  const bool cubes = arithmetic == "ordered" && step.input(0).rank() == 5;
  if (cubes && step.rule("sum_of_products") == "binary32_fused_from_bias") return make_tiled_convolution(step, cores);
  if (TiledProduct::suits(step)) return make_tiled_convolution(step, cores);
  if (arithmetic == "ordered") return make_ordered_convolution(step, cores);
  if (needs_late_layer(step)) return make_late_layer(step, cores, make_conv);
  if (step.output().type != Type::f32) return make_integer_convolution(step, cores);
  return make_real_convolution(step, cores);
}

std::unique_ptr<Kernel> make_conv_or_exact(const Step& step, const CoreSet& cores) {
  return make_or_exact(step, cores, make_conv);
}

BITTRUE_OPERATOR(conv, make_conv_or_exact)

}  // namespace

std::unique_ptr<Kernel> make_real_convolution(const Step& step, const CoreSet& cores) {
  const RealConvolutionForm form(step);
  if (form.order == RealConvolutionForm::Order::columns) return make_window_columns(cores, form);
  if (auto kernel = make_plane_convolution(step, cores, form)) return kernel;
  if (auto kernel = make_filter_lanes(step, cores, form)) return kernel;
  if (auto kernel = make_few_positions(step, cores, form)) return kernel;
  require(form.order != RealConvolutionForm::Order::lanes, "there are very many windows");
  return std::make_unique<OrderedReals>(step, cores, form);
}

RealConvolutionForm::RealConvolutionForm(const Step& step)
    : d(read_spatial_axis(step, 'd')), h(read_spatial_axis(step, 'h')), w(read_spatial_axis(step, 'w')) {
  const Operand &in = step.input(0), &given = step.input(1), &out = step.output();
  const bool real = in.type == Type::f32 && given.type == Type::f32 && out.type == Type::f32;
  require(real && in.dense() && given.dense() && out.dense(), "no native kernel for these types");
  const std::string& rule = step.rule("real_product");
  const bool by_columns = rule == "binary32_fused_windows_of_7";
  require(by_columns || rule == "binary32_fused_blocks" || rule == "binary32_fused_blocks_of_8",
          "no native rule for this slot");
  const int rank = in.rank();
  require(given.rank() == rank, "the filter's shape differs");
  require(given.shape[rank - 1] == w.taps && (rank < 4 || given.shape[rank - 2] == h.taps) &&
              (rank < 5 || given.shape[2] == d.taps),
          "the filter's shape differs");
  batch = in.shape[0];
  const int64_t in_c = in.shape[1], out_c = out.shape[1];
  groups = step.integer("groups", 1, std::max<int64_t>(1, in_c));
  require(out.shape[0] == batch && in_c > 0 && out_c > 0 && in_c % groups == 0 && out_c % groups == 0,
          "channels do not split into groups");
  depth = in_c / groups;
  filters = out_c / groups;
  require(given.shape[0] == out_c && given.shape[1] == depth, "the filter's shape differs");
  positions = d.out * h.out * w.out;
  block = std::max<int64_t>(1, step.integer("block", 0, depth));
  require(block == 1 || !is_volume(), "channels of volumes are not in blocks");
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
  require(step.integer("turned", 0, 1) == 0, "windows are rows of the image");
  find_loop_order(*this);
  if (by_columns) order = Order::columns;
  if (step.has_input(2)) {
    const Operand& addend = step.input(2);
    require(addend.type == Type::f32 && addend.dense() && addend.elements == out_c, "one bias per filter is needed");
    added = true;
  }
  limits = RealLimits(step);
}

void arrange_filter(const RealConvolutionForm& form, const float* from, float* to) {
  const int64_t taps = form.taps(), block = form.block;
  for (int64_t c = 0; c < form.depth; c += block) {
    const int64_t used = std::min(block, form.depth - c);
    for (int64_t t = 0; t < taps; ++t, to += block) {
      take_every(from + c * taps + t, taps, used, to);
      std::fill(to + used, to + block, 0.0f);
    }
  }
}
}  // namespace bittrue

// Pools with channels first over one to three axes: the largest element, and the average and the length of real numbers, of
// windows and of whole images.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "arithmetic/elementary.h"
#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/layers/real_convolution.h"
#include "operators/layers/spatial_axis.h"
#include "operators/pooling/pools.h"

namespace bittrue {
namespace {

constexpr int64_t kParallelPlanes = 40000;  // elements

void require_real_images(const Step& step) {
  const Operand &in = step.input(0), &out = step.output();
  require(in.type == Type::f32 && out.type == Type::f32 && in.dense() && out.dense(),
          "no native kernel for these types");
}

// Windows over planes: body(plane in, plane out, worker).
class PlanePool : public Kernel {
 public:
  explicit PlanePool(const Step& step) {
    d_ = read_spatial_axis(step, 'd');
    h_ = read_spatial_axis(step, 'h');
    w_ = read_spatial_axis(step, 'w');
    const Operand &in = step.input(0), &out = step.output();
    require(in.shape[0] == out.shape[0] && in.shape[1] == out.shape[1], "a pool keeps batches and channels");
    images_ = in.shape[0] * in.shape[1];
  }

 protected:
  template <class Element, class Body>
  void for_images(const Run& run, const Body& body) const {
    const auto* in = reinterpret_cast<const Element*>(run.inputs[0]);
    auto* out = reinterpret_cast<Element*>(run.outputs[0]);
    const bool small = images_ * lines() * w_.out * line_taps() * w_.taps < kParallelPlanes;
    run.pool.parallel(images_, small ? 1 : run.pool.threads(), [&](int64_t image, int worker) {
      body(in + image * d_.dimension * h_.dimension * w_.dimension, out + image * lines() * w_.out, worker);
    });
  }

  // Lines of the output, and lines that a window meets, of all planes.
  int64_t lines() const { return d_.out * h_.out; }
  int64_t line_taps() const { return d_.taps * h_.taps; }
  // The line that tap `i` of output line `y` reads; null outside of the image.
  template <class Element>
  const Element* line(const Element* image, int64_t y, int64_t i) const {
    const int64_t deep = y / h_.out * d_.stride - d_.before + i / h_.taps * d_.dilation;
    const int64_t at = y % h_.out * h_.stride - h_.before + i % h_.taps * h_.dilation;
    if (deep < 0 || deep >= d_.dimension || at < 0 || at >= h_.dimension) return nullptr;
    return image + (deep * h_.dimension + at) * w_.dimension;
  }

  // What the windows of a line see, one element after the other: parts of lines of the image between borders.
  int64_t seen() const { return (w_.out - 1) * w_.stride + (w_.taps - 1) * w_.dilation + 1; }
  int64_t seen_bytes(int64_t element) const { return round_up(seen() * element, 64); }
  // to[n] = `start`, joined with what each line that output line y meets has there, from where windows see it on.
  template <class Element, class Join>
  void down(const Element* image, int64_t y, Element start, Element* to, const Join& join) const {
    const int64_t count = inside(), first = std::max<int64_t>(0, -w_.before);
    const int64_t deep = y / h_.out * d_.stride - d_.before, tall = y % h_.out * h_.stride - h_.before;
    const Element* found[3];
    int lines = 0;
    bool begun = false;
    const auto join_found = [&] {
      if (lines == 3) join_lines<3>(found, count, begun, start, to, join);
      if (lines == 2) join_lines<2>(found, count, begun, start, to, join);
      if (lines == 1) join_lines<1>(found, count, begun, start, to, join);
      begun |= lines > 0, lines = 0;
    };
    for (int64_t i = 0, z = deep; i < d_.taps && count > 0; ++i, z += d_.dilation) {
      if (z < 0 || z >= d_.dimension) continue;
      for (int64_t j = 0, at = tall; j < h_.taps; ++j, at += h_.dilation) {
        if (at < 0 || at >= h_.dimension) continue;
        found[lines++] = image + (z * h_.dimension + at) * w_.dimension + first;
        if (lines == 3) join_found();
      }
    }
    join_found();
    if (!begun) std::fill_n(to, count, start);
  }
  // What is begun goes on from `to`.
  template <int kLines, class Element, class Join>
  static void join_lines(const Element* const* lines, int64_t count, bool begun, Element start, Element* __restrict to,
                         const Join& join) {
    const Element *a = lines[0], *b = lines[kLines > 1 ? 1 : 0], *c = lines[kLines > 2 ? 2 : 0];
    const auto joined = [&](Element value, int64_t n) __attribute__((always_inline)) {
      value = join(value, a[n]);
      if (kLines > 1) value = join(value, b[n]);
      if (kLines > 2) value = join(value, c[n]);
      return value;
    };
    if (begun) {
      for (int64_t n = 0; n < count; ++n) to[n] = joined(to[n], n);
    } else {
      for (int64_t n = 0; n < count; ++n) to[n] = joined(start, n);
    }
  }
  int64_t border() const { return std::min(seen(), std::max<int64_t>(0, w_.before)); }
  int64_t inside() const {
    return std::max<int64_t>(0, std::min(w_.dimension, seen() - w_.before) - std::max<int64_t>(0, -w_.before));
  }
  // out[n] = finish(all taps of window n, joined one after the other, n).
  template <class Element, class Join, class Finish>
  void across(const Element* __restrict x, Element* __restrict out, const Join& join, const Finish& finish) const {
    const int64_t dilation = w_.dilation, stride = w_.stride, count = w_.out;
    const auto two = [&](const Element* at) __attribute__((always_inline)) { return join(at[0], at[1]); };
    const bool close = dilation == 1;
    if (close && stride == 2 && w_.taps == 2) {
      for (int64_t n = 0; n < count; ++n) out[n] = finish(two(x + 2 * n), n);
    } else if (close && stride == 2 && w_.taps == 3) {
      for (int64_t n = 0; n < count; ++n) out[n] = finish(join(two(x + 2 * n), x[2 * n + 2]), n);
    } else if (close && stride == 1 && w_.taps == 2) {
      for (int64_t n = 0; n < count; ++n) out[n] = finish(two(x + n), n);
    } else if (close && stride == 1 && w_.taps == 3) {
      for (int64_t n = 0; n < count; ++n) out[n] = finish(join(two(x + n), x[n + 2]), n);
    } else if (stride == 1) {
      std::copy_n(x, count, out);
      for (int64_t j = 1; j < w_.taps; ++j) {
        for (int64_t n = 0; n < count; ++n) out[n] = join(out[n], x[j * dilation + n]);
      }
      for (int64_t n = 0; n < count; ++n) out[n] = finish(out[n], n);
    } else {
      for (int64_t n = 0; n < count; ++n) {
        Element value = x[n * stride];
        for (int64_t j = 1; j < w_.taps; ++j) value = join(value, x[n * stride + j * dilation]);
        out[n] = finish(value, n);
      }
    }
  }

  SpatialAxis d_, h_, w_;
  int64_t images_ = 0;
};

// Whether the bits of a number are such that `what` says so.
template <class Element, class What>
bool any_of(const Element* from, int64_t count, const What& what) {
  uint32_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, from + i, sizeof(Element));
    found |= static_cast<uint32_t>(what(bits));
  }
  return found != 0;
}
bool is_negative_zero(uint32_t bits) { return bits == 0x80000000u; }
bool is_zero(uint32_t bits) { return bits << 1 == 0; }

// The first of equal values stays, and NaN never wins. Where only zeros of both signs could be equal and are not there, the
// lines of a window are compared first, side by side.
template <class Element>
class MaxPlanes final : public PlanePool {
 public:
  explicit MaxPlanes(const Step& step) : PlanePool(step) {}
  int64_t scratch_bytes(int threads) const override { return threads * seen_bytes(sizeof(Element)); }
  std::string note() const override { return "largest of windows"; }

  void run(const Run& run) const override {
    for_images<Element>(run, [&](const Element* in, Element* out, int worker) {
      if (std::is_same_v<Element, float> && any_of(in, d_.dimension * h_.dimension * w_.dimension, is_negative_zero)) {
        in_order(in, out);
      } else {
        side_by_side(in, out, run.scratch + worker * seen_bytes(sizeof(Element)));
      }
    });
  }

  // Of a plane in which the order of comparisons does not show; `scratch` is one worker's.
  void side_by_side(const Element* in, Element* out, uint8_t* scratch) const {
    auto* most = reinterpret_cast<Element*>(scratch);
    std::fill_n(most, seen(), kLowest);
    for (int64_t y = 0; y < lines(); ++y, out += w_.out) {
      down(in, y, kLowest, most + border(), Larger());
      across(most, out, Larger(), [](Element value, int64_t) { return value; });
    }
  }

 private:
  static constexpr Element kLowest = std::numeric_limits<Element>::lowest();

  struct Larger {
    Element operator()(Element first, Element other) const { return first < other ? other : first; }
  };

  void in_order(const Element* in, Element* out) const {
    for (int64_t y = 0; y < lines(); ++y, out += w_.out) {
      std::fill_n(out, w_.out, kLowest);
      for (int64_t i = 0; i < line_taps(); ++i) {
        const Element* from = line(in, y, i);
        if (from != nullptr) take(from, out);
      }
    }
  }

  void take(const Element* from, Element* out) const {
    for (int64_t j = 0; j < w_.taps; ++j) {
      const Element* x = from + j * w_.dilation - w_.before;
      const int64_t low = w_.first[j], high = w_.last[j];
      if (w_.stride == 1) {
        for (int64_t n = low; n < high; ++n) out[n] = out[n] < x[n] ? x[n] : out[n];
      } else {
        for (int64_t n = low; n < high; ++n) out[n] = out[n] < x[n * w_.stride] ? x[n * w_.stride] : out[n];
      }
    }
  }
};

// Largest of windows by the slot `extreme`: another kernel's, and once more, as slowly as the order asks for, of planes in
// which NaN, infinities or zeros of both signs could meet.
class OrderedMaxima final : public PlanePool {
 public:
  OrderedMaxima(const Step& step, std::unique_ptr<Kernel> plain)
      : PlanePool(step), plain_(std::move(plain)), planes_(dynamic_cast<const MaxPlanes<float>*>(plain_.get())) {
    require(step.rule("extreme") == "last_in_vectors" && step.input(0).rank() <= 5, "no native rule for this slot");
    const std::string& way = step.text("way");
    vectors_ = way == "vectors", from_first_ = way == "from_first";
    columns_ = way == "columns", volumes_ = way == "columns_of_volumes", lanes_ = way == "lanes";
    require(vectors_ || from_first_ || columns_ || volumes_ || lanes_ || way == "in_order", "no native order");
    const bool close = d_.dilation == 1 && h_.dilation == 1 && w_.dilation == 1;
    require((close && w_.before >= 0) || !(columns_ || volumes_ || lanes_), "no native order");
  }
  int64_t scratch_bytes(int threads) const override { return plain_scratch(threads) + threads * row_bytes(); }
  std::string note() const override { return plain_->note(); }

  void run(const Run& run) const override {
    if (planes_ == nullptr) plain_->run(run);
    const int64_t plain = plain_scratch(run.pool.threads()), part = plain_->scratch_bytes(1);
    uint8_t* rows = run.scratch + plain;
    for_images<float>(run, [&](const float* in, float* out, int worker) {
      const int64_t size = d_.dimension * h_.dimension * w_.dimension;
      const bool finite = all_finite(in, size);
      // While what was looked at is in cache.
      if (finite && planes_ != nullptr) planes_->side_by_side(in, out, run.scratch + worker * part);
      // Of equal finite numbers, only zeros show which one was kept.
      const auto zeros = [&] { return any_of(out, lines() * w_.out, is_zero) && any_of(in, size, is_negative_zero); };
      if (finite && !zeros()) {
        return;
      } else if (lanes_) {
        *out = in_lanes(in, size);
      } else if (columns_ || volumes_) {
        in_columns(in, out, reinterpret_cast<float*>(rows + worker * row_bytes()));
      } else {
        in_order(in, out);
      }
    });
  }

 private:
  static constexpr float kLeast = std::numeric_limits<float>::lowest();

  static float in_vector(float kept, float x) { return kept > x ? kept : x; }
  static float alone(float kept, float x) { return kept < x ? x : kept; }

  int64_t plain_scratch(int threads) const { return round_up(plain_->scratch_bytes(threads), 64); }
  int64_t row_bytes() const { return round_up((w_.before + w_.dimension + seen()) * 4, 64); }

  void in_order(const float* in, float* out) const {
    for (int64_t y = 0; y < lines(); ++y) {
      for (int64_t n = 0; n < w_.out; ++n, ++out) {
        float kept = kLeast;
        bool begun = !from_first_;
        for (int64_t i = 0; i < line_taps(); ++i) {
          const float* from = line(in, y, i);
          for (int64_t j = 0; j < w_.taps && from != nullptr; ++j) {
            if (n < w_.first[j] || n >= w_.last[j]) continue;
            const float x = from[n * w_.stride + j * w_.dilation - w_.before];
            kept = !begun ? x : vectors_ ? in_vector(kept, x) : alone(kept, x);
            begun = true;
          }
        }
        *out = kept;
      }
    }
  }

  void in_columns(const float* in, float* out, float* row) const {
    const int64_t whole = w_.dimension / 4 * 4;
    std::fill_n(row, row_bytes() / 4, kLeast);
    for (int64_t y = 0; y < lines(); ++y) {
      for (int64_t x = 0; x < w_.dimension; ++x) {
        float kept = kLeast;
        bool begun = volumes_;
        for (int64_t i = 0; i < line_taps(); ++i) {
          const float* from = line(in, y, i);
          if (from == nullptr) continue;
          kept = !begun ? from[x] : x < whole ? in_vector(kept, from[x]) : alone(kept, from[x]);
          begun = true;
        }
        row[w_.before + x] = kept;
      }
      for (int64_t n = 0; n < w_.out; ++n, ++out) {
        const float* from = row + n * w_.stride;
        float kept = from[0];
        for (int64_t j = 1; j < w_.taps; ++j) kept = in_vector(kept, from[j]);
        *out = kept;
      }
    }
  }

  static float in_lanes(const float* in, int64_t count) {
    float lanes[4] = {kLeast, kLeast, kLeast, kLeast};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
      for (int lane = 0; lane < 4; ++lane) lanes[lane] = in_vector(lanes[lane], in[i + lane]);
    }
    float kept = in_vector(in_vector(lanes[0], lanes[2]), in_vector(lanes[1], lanes[3]));
    for (; i < count; ++i) kept = alone(kept, in[i]);
    return kept;
  }

  std::unique_ptr<Kernel> plain_;
  const MaxPlanes<float>* planes_;  // what `plain_` is, plane by plane
  bool vectors_ = false, from_first_ = false, columns_ = false, volumes_ = false, lanes_ = false;
};

// The first of equal values and its place, tap by tap over whole lines of windows. `from_first`: from the first tap on, so
// that a NaN there stays; else what is no more than the lowest finite number has no place.
template <class Element>
class PlacedMaxima final : public PlanePool {
 public:
  explicit PlacedMaxima(const Step& step)
      : PlanePool(step), from_first_(std::is_integral_v<Element> || step.rules.count("extreme") != 0) {
    const Operand &in = step.input(0), &out = step.output();
    require(type_bytes(in.type) == sizeof(Element) && in.dense() && out.dense() && in.type == out.type,
            "no native kernel for these types");
    require(step.rules.count("extreme") == 0 ||
                (step.rule("extreme") == "last_in_vectors" && step.text("way") == "from_first"),
            "no native order");
    by_columns_ = step.integers.count("storage_order") != 0 && step.integer("storage_order", 0, 1) != 0;
    if (step.outputs.size() < 2) return;
    const Operand& places = step.output(1);
    require(places.type == Type::s64 && places.dense() && places.shape == out.shape, "one place per element is needed");
    places_ = true;
  }
  int64_t scratch_bytes(int threads) const override { return places_ ? 0 : threads * row_bytes(); }
  std::string note() const override { return "largest of windows"; }

  void run(const Run& run) const override {
    const int64_t size = d_.dimension * h_.dimension * w_.dimension;
    const auto* all_in = reinterpret_cast<const Element*>(run.inputs[0]);
    const auto* all_out = reinterpret_cast<const Element*>(run.outputs[0]);
    for_images<Element>(run, [&](const Element* in, Element* out, int worker) {
      for (int64_t y = 0; y < lines(); ++y, out += w_.out) {
        auto* places = places_ ? reinterpret_cast<int64_t*>(run.outputs[1]) + (out - all_out)
                               : reinterpret_cast<int64_t*>(run.scratch + worker * row_bytes());
        std::fill_n(out, w_.out, std::numeric_limits<Element>::lowest());
        std::fill_n(places, w_.out, int64_t{-1});
        for (int64_t i = 0; i < line_taps(); ++i) {
          const Element* from = line(in, y, i);
          for (int64_t j = 0; j < w_.taps && from != nullptr; ++j) take(in, from, j, out, places);
        }
        if (places_) finish(places, (in - all_in) / size * size);
      }
    });
  }

 private:
  int64_t row_bytes() const { return round_up(w_.out * int64_t{sizeof(int64_t)}, 64); }

  void take(const Element* image, const Element* from, int64_t j, Element* out, int64_t* places) const {
    const int64_t shift = j * w_.dilation - w_.before, begin = from - image + shift;
    const int64_t stride = w_.stride, last = w_.last[j];
    const bool from_first = from_first_;
    for (int64_t n = w_.first[j]; n < last; ++n) {
      const Element x = from[n * stride + shift], kept = out[n];
      const int64_t place = places[n];
      // Without a branch, which would be hard to predict.
      const bool taken = (kept < x) | (from_first & (place < 0));
      out[n] = taken ? x : kept;
      places[n] = place ^ ((place ^ (begin + n * stride)) & -static_cast<int64_t>(taken));
    }
  }

  // Places count the whole tensor, the last axis fastest, or the first one inside of an image.
  void finish(int64_t* places, int64_t before) const {
    for (int64_t n = 0; n < w_.out; ++n) {
      if (places[n] < 0) continue;
      if (by_columns_) {
        const int64_t w = places[n] % w_.dimension, line = places[n] / w_.dimension;
        places[n] = line / h_.dimension + d_.dimension * (line % h_.dimension + h_.dimension * w);
      }
      places[n] += before;
    }
  }

  bool from_first_, by_columns_ = false, places_ = false;
};

// 4 lanes, (l0 + l2) + (l1 + l3), then what is left.
float sum_lanes(const float* x, int64_t count) {
  float lanes[4] = {};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (int lane = 0; lane < 4; ++lane) lanes[lane] += x[i + lane];
  }
  float total = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  for (; i < count; ++i) total += x[i];
  return total;
}

void require_order(const Step& step) {
  require(step.rule("real_sum") == "binary32_packets_4", "no native rule for this slot");
}

// Averages of real numbers, zeros outside of the image, over the number of taps that count.
class RealAverage : public PlanePool {
 public:
  explicit RealAverage(const Step& step) : PlanePool(step) {
    require_real_images(step);
    const std::string& counted = step.text("counted");
    require(counted == "inside" || counted == "padded" || counted == "taps", "no native count");
    const bool padding = counted != "inside", full = counted == "taps";
    const bool volumes = step.input(0).rank() == 5;
    const std::vector<int64_t> planes = counts(d_, padding, full, volumes ? step.integer("pad_back") : 0);
    const std::vector<int64_t> rows =
        counts(h_, padding, full, step.input(0).rank() > 3 ? step.integer("pad_bottom") : 0);
    for (const int64_t plane : planes) {
      for (const int64_t row : rows) rows_.push_back(plane * row);
    }
    widths_ = counts(w_, padding, full, step.integer("pad_right"));
  }

 protected:
  // Taps that count, by output: all; those up to the end of the padding; or those inside of the image.
  static std::vector<int64_t> counts(const SpatialAxis& axis, bool padding, bool full, int64_t after) {
    std::vector<int64_t> result;
    for (int64_t o = 0; o < axis.out; ++o) {
      int64_t count = 0;
      for (int64_t tap = 0; tap < axis.taps; ++tap) {
        const int64_t at = o * axis.stride + tap * axis.dilation - axis.before;
        count += padding ? full || at < axis.dimension + after : at >= 0 && at < axis.dimension;
      }
      result.push_back(count);
    }
    return result;
  }

  std::vector<int64_t> rows_, widths_;  // taps that count, by line and by column of the output
};

// Sums that are rounded once, divided: in binary64, and where that may lie in the middle between two results with what its
// sums lose. What is not certain then is left to the reference.
class RoundedAverage final : public RealAverage {
 public:
  explicit RoundedAverage(const Step& step) : RealAverage(step) {}
  std::string note() const override { return "sums of windows"; }

  void run(const Run& run) const override {
    std::atomic<bool> known{true};
    for_images<float>(run, [&](const float* in, float* out, int) {
      bool all = true;
      for (int64_t y = 0; y < lines(); ++y) {
        for (int64_t x = 0; x < w_.out; ++x, ++out) {
          Taps taps{in, y, x, 0, w_.taps};
          const auto outside = [&](int64_t j) { return x < w_.first[j] || x >= w_.last[j]; };
          while (taps.low < taps.high && outside(taps.low)) ++taps.low;
          while (taps.low < taps.high && outside(taps.high - 1)) --taps.high;
          all = (plain(taps, *out) || careful(taps, *out)) && all;
        }
      }
      if (!all) known.store(false, std::memory_order_relaxed);
    });
    if (!known.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  // The taps of one window that lie inside of the image: [low, high) of each line.
  struct Taps {
    const float* image;
    int64_t y, x, low, high;
  };

  // body(pointer to the first of `count` taps) for every line.
  template <class Body>
  void for_lines(const Taps& taps, const Body& body) const {
    for (int64_t i = 0; i < line_taps(); ++i) {
      const float* from = line(taps.image, taps.y, i);
      if (from != nullptr) body(from + taps.x * w_.stride + taps.low * w_.dilation - w_.before, taps.high - taps.low);
    }
  }
  double divisor(const Taps& taps) const { return static_cast<double>(rows_[taps.y] * widths_[taps.x]); }
  double terms() const { return static_cast<double>(line_taps() * w_.taps); }

  bool plain(const Taps& taps, float& result) const {
    double sums[4] = {}, sizes[4] = {};
    for_lines(taps, [&](const float* from, int64_t count) {
      for (int64_t j = 0; j < count; j += 4) {
        const int64_t most = std::min<int64_t>(4, count - j);
        for (int64_t lane = 0; lane < most; ++lane) {
          const double term = from[(j + lane) * w_.dilation];
          sums[lane] += term;
          sizes[lane] += std::fabs(term);
        }
      }
    });
    const double value = ((sums[0] + sums[1]) + (sums[2] + sums[3])) / divisor(taps);
    const double error = ((sizes[0] + sizes[1]) + (sizes[2] + sizes[3])) / divisor(taps) * (terms() + 4) * 0x1p-52;
    result = static_cast<float>(value);
    return static_cast<float>(value - error) == static_cast<float>(value + error) && result != 0 &&
           std::isfinite(result);
  }

  // False where the result is not certain, or no number.
  bool careful(const Taps& taps, float& result) const {
    double sum = 0, lost = 0, size = 0;
    bool exact = true;
    for_lines(taps, [&](const float* from, int64_t count) {
      for (int64_t j = 0; j < count; ++j) {
        const double term = from[j * w_.dilation], total = sum + term;
        const double second = total - sum, missing = (sum - (total - second)) + (term - second);
        exact &= missing == 0;
        lost += missing;
        size += std::fabs(term);
        sum = total;
      }
    });
    const double value = (sum + lost) / divisor(taps);
    // Errors of the lost parts' sum, of its sum with the rest, and of the quotient.
    const double error = std::fabs(value) * 0x1p-50 + size / divisor(taps) * terms() * 0x1p-100;
    result = static_cast<float>(value);
    const bool settled = exact && std::fma(value, divisor(taps), -sum) == 0;
    const bool close = static_cast<float>(value - error) == static_cast<float>(value + error);
    // Of a zero, only what was exact tells the sign.
    return (settled || (close && (result != 0 || exact))) && std::isfinite(result);
  }
};

// Sums over windows in an order, divided.
class AveragePlanes final : public RealAverage {
 public:
  AveragePlanes(const Step& step, const CoreSet& cores) : RealAverage(step), divide_(cores.pair_loop()) {
    require_order(step);
    const std::string& order = step.text("order");
    columns_ = order == "columns";
    start_ = step.input(0).rank() == 4 ? -0.0f : 0.0f;
    lanes_ = order == "lanes";
    require(columns_ || lanes_ || order == "in_order", "no native order");
    for (const SpatialAxis& axis : {d_, h_, w_}) {
      const bool whole = axis.taps == axis.dimension && axis.out == 1 && axis.before == 0;
      require(!lanes_ || (whole && (axis.dilation == 1 || axis.taps == 1)), "the window is not the image");
    }
    if (columns_ || lanes_) return;
    RealConvolutionForm form;
    form.d = d_, form.h = h_, form.w = w_;
    form.batch = images_, form.depth = form.filters = 1;
    form.positions = lines() * w_.out, form.terms = form.split = form.taps();
    sums_ = make_plane_sums(cores, form);
    for (int64_t i = 0; sums_ != nullptr && i < form.positions; ++i) {
      divisors_.push_back(static_cast<float>(rows_[i / w_.out] * widths_[i % w_.out]));
    }
  }
  int64_t scratch_bytes(int threads) const override {
    const int64_t own = threads * worker_bytes();
    return sums_ == nullptr ? own : std::max(own, sums_->scratch_bytes(threads));
  }
  std::string note() const override { return "sums of windows"; }

  void run(const Run& run) const override {
    std::atomic<bool> finite{true};
    if (sums_ != nullptr) sums_->run(run);
    for_images<float>(run, [&](const float* in, float* out, int worker) {
      if (sums_ != nullptr) {
        if (!divide_all(out)) finite.store(false, std::memory_order_relaxed);
        return;
      }
      auto* seen_sums = reinterpret_cast<float*>(run.scratch + worker * worker_bytes());
      if (columns_) std::fill_n(seen_sums, seen(), 0.0f);
      int64_t counted = -1;  // the taps of lines that divisors are for
      float* divisors = seen_sums + seen();
      for (int64_t y = 0; y < lines() && !lanes_; ++y) {
        float* to = out + y * w_.out;
        for (int64_t x = 0; x < w_.out && rows_[y] != counted; ++x) {
          divisors[x] = static_cast<float>(rows_[y] * widths_[x]);
        }
        counted = rows_[y];
        const auto divide = [&](float sum, int64_t x) { return sum / divisors[x]; };
        if (columns_) {
          // Rows of the padding are left out: nothing changes a sum that begins with -0. Columns of it are 0, and so
          // begin sums in volumes.
          const auto add = [](float sum, float x) { return sum + x; };
          down(in, y, start_, seen_sums + border(), add);
          across(seen_sums, to, add, divide);
        } else {
          sum_in_order(in, y, to);
          for (int64_t x = 0; x < w_.out; ++x) to[x] = divide(to[x], x);
        }
      }
      if (lanes_) {
        *out = sum_lanes(in, d_.dimension * h_.dimension * w_.dimension) / static_cast<float>(rows_[0] * widths_[0]);
      }
      if (!all_finite(out, lines() * w_.out)) finite.store(false, std::memory_order_relaxed);
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  int64_t worker_bytes() const { return round_up((seen() + w_.out) * 4, 64); }

  // The sums of a plane over the taps that count. Whether all results are finite.
  bool divide_all(float* sums) const {
    const auto count = static_cast<int64_t>(divisors_.size());
    divide_({PairLoop::quotient, PairLoop::f32}, sums, divisors_.data(), sums, count);
    return all_finite(sums, count);
  }

  void sum_in_order(const float* in, int64_t y, float* out) const {
    std::fill_n(out, w_.out, 0.0f);
    for (int64_t i = 0; i < line_taps(); ++i) {
      const float* from = line(in, y, i);
      for (int64_t j = 0; j < w_.taps && from != nullptr; ++j) add(from + j * w_.dilation - w_.before, j, out);
    }
  }

  void add(const float* x, int64_t j, float* sums) const {
    if (w_.stride == 1) {
      for (int64_t n = w_.first[j]; n < w_.last[j]; ++n) sums[n] += x[n];
    } else {
      for (int64_t n = w_.first[j]; n < w_.last[j]; ++n) sums[n] += x[n * w_.stride];
    }
  }

  bool columns_ = false, lanes_ = false;
  float start_ = 0.0f;
  PairLoopCore divide_;
  std::unique_ptr<Kernel> sums_;  // of whole planes in order; null: line by line
  std::vector<float> divisors_;   // of a plane of those
};

// Lengths of windows: the sum of sizes, or the root of the sum of squares, in the order of the taps.
class Lengths final : public PlanePool {
 public:
  explicit Lengths(const Step& step) : PlanePool(step), squares_(step.integer("p", 1, 2) == 2) {
    require_real_images(step);
    require_order(step);
  }
  std::string note() const override { return "sums of windows"; }

  void run(const Run& run) const override {
    std::atomic<bool> finite{true};
    for_images<float>(run, [&](const float* in, float* out, int) {
      for (int64_t y = 0; y < lines(); ++y) {
        float* to = out + y * w_.out;
        std::fill_n(to, w_.out, 0.0f);
        for (int64_t i = 0; i < line_taps(); ++i) {
          const float* from = line(in, y, i);
          for (int64_t j = 0; j < w_.taps && from != nullptr; ++j) add(from + j * w_.dilation - w_.before, j, to);
        }
        for (int64_t n = 0; n < w_.out && squares_; ++n) to[n] = arithmetic::power(to[n], 0.5f);
      }
      if (!all_finite(out, lines() * w_.out)) finite.store(false, std::memory_order_relaxed);
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  void add(const float* x, int64_t j, float* sums) const {
    for (int64_t n = w_.first[j]; n < w_.last[j]; ++n) {
      const float value = x[n * w_.stride];
      sums[n] += squares_ ? value * value : std::fabs(value);
    }
  }

  bool squares_;
};

// Whether every window is a whole image without padding.
bool is_whole(const Step& step) {
  const Operand &in = step.input(0), &out = step.output();
  if (in.rank() < 3 || in.elements == 0 || out.elements != in.shape[0] * in.shape[1]) return false;
  const int64_t size = in.elements / out.elements;
  const int axes = in.rank() <= 5 ? in.rank() - 2 : 1;
  const char* const names[][4] = {{"filter_w", "dilation_w", "pad_left", "pad_right"},
                                  {"filter_h", "dilation_h", "pad_top", "pad_bottom"},
                                  {"filter_d", "dilation_d", "pad_front", "pad_back"}};
  for (int i = 0; i < axes; ++i) {
    const auto& [filter, dilation, before, after] = names[i];
    const int64_t dimension = in.rank() <= 5 ? in.shape[in.rank() - 1 - i] : size;
    if (step.integer(filter) != dimension || (dimension > 1 && step.integer(dilation) != 1)) return false;
    if (step.integer(before) != 0 || step.integer(after) != 0) return false;
  }
  return true;
}

class WholePlanes : public Kernel {
 public:
  explicit WholePlanes(const Step& step) {
    require_real_images(step);
    const Operand& in = step.input(0);
    planes_ = step.output().elements;
    require(in.rank() >= 3 && planes_ == in.shape[0] * in.shape[1], "one result per plane");
    require(planes_ > 0 && in.elements > 0, "there is nothing to do");
    size_ = in.elements / planes_;
  }

 protected:
  static constexpr int64_t kTogether = 8;  // planes whose sums do not wait for one another

  template <class Body>
  void for_planes(const Run& run, const Body& body) const {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const bool small = planes_ * size_ < kParallelPlanes;
    run.pool.parallel((planes_ + kTogether - 1) / kTogether, small ? 1 : run.pool.threads(), [&](int64_t task, int) {
      const int64_t first = task * kTogether;
      body(in + first * size_, std::min(kTogether, planes_ - first), out + first);
    });
  }

  int64_t planes_ = 0, size_ = 0;
};

class GlobalAverage final : public WholePlanes {
 public:
  explicit GlobalAverage(const Step& step) : WholePlanes(step) {
    require_order(step);
    lanes_ = step.text("order") == "lanes";
    require(lanes_ || step.text("order") == "in_order", "no native order");
  }
  std::string note() const override { return "sums of planes"; }

  void run(const Run& run) const override {
    std::atomic<bool> finite{true};
    const auto divisor = static_cast<float>(size_);
    for_planes(run, [&](const float* in, int64_t count, float* out) {
      float sums[kTogether] = {};
      if (lanes_) {
        for (int64_t p = 0; p < count; ++p) sums[p] = sum_lanes(in + p * size_, size_);
      } else if (count == kTogether) {
        for (int64_t i = 0; i < size_; ++i) {
          for (int64_t p = 0; p < kTogether; ++p) sums[p] += in[p * size_ + i];
        }
      } else {
        for (int64_t p = 0; p < count; ++p) {
          for (int64_t i = 0; i < size_; ++i) sums[p] += in[p * size_ + i];
        }
      }
      float check = 0.0f;
      for (int64_t p = 0; p < count; ++p) {
        out[p] = sums[p] / divisor;
        check += out[p] * 0.0f;
      }
      if (!(check == 0.0f)) finite.store(false, std::memory_order_relaxed);
    });
    if (!finite.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  bool lanes_ = false;
};

// As MaxPlanes of real numbers.
class GlobalMax final : public WholePlanes {
 public:
  explicit GlobalMax(const Step& step) : WholePlanes(step) {}
  std::string note() const override { return "largest of planes"; }

  void run(const Run& run) const override {
    for_planes(run, [&](const float* in, int64_t count, float* out) {
      for (int64_t p = 0; p < count; ++p) {
        out[p] = largest(in + p * size_);
      }
    });
  }

 private:
  // In lanes: the order of equal numbers shows in zeros alone.
  float largest(const float* x) const {
    constexpr int64_t kLanes = 32;
    constexpr float kLowest = std::numeric_limits<float>::lowest();
    const auto larger = [](float kept, float next) { return kept < next ? next : kept; };
    float lanes[kLanes], found = kLowest;
    std::fill_n(lanes, kLanes, kLowest);
    int64_t i = 0;
    for (; i + kLanes <= size_; i += kLanes) {
      for (int64_t k = 0; k < kLanes; ++k) lanes[k] = larger(lanes[k], x[i + k]);
    }
    for (; i < size_; ++i) found = larger(found, x[i]);
    for (const float lane : lanes) found = larger(found, lane);
    if (found != 0.0f) return found;
    found = kLowest;
    for (i = 0; i < size_; ++i) found = larger(found, x[i]);
    return found;
  }
};

}  // namespace

static std::unique_ptr<Kernel> make_real_maxima(const Step& step, const CoreSet& cores) {
  const Operand &in = step.input(0), &out = step.output();
  if (is_whole(step)) return std::make_unique<GlobalMax>(step);
  RealConvolutionForm form;
  form.d = read_spatial_axis(step, 'd'), form.h = read_spatial_axis(step, 'h'), form.w = read_spatial_axis(step, 'w');
  form.batch = form.depth = form.filters = 1, form.groups = in.shape[0] * in.shape[1];
  form.positions = form.d.out * form.h.out * form.w.out, form.terms = form.taps();
  require(in.shape[0] == out.shape[0] && in.shape[1] == out.shape[1], "a pool keeps batches and channels");
  if (auto lanes = make_lane_windows(cores, form, RealLaneRows::Join::largest)) return lanes;
  return std::make_unique<MaxPlanes<float>>(step);
}

std::unique_ptr<Kernel> make_max_of_planes(const Step& step, const CoreSet& cores) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const Operand &in = step.input(0), &out = step.output();
  require(step.texts.count("outside") == 0, "no native rule for windows beside the image");
  if (is_8bit(in.type)) {
    // Bytes in memory have the order of the integers.
    const double lowest = in.type == Type::s8 ? -128 : 0;
    require(out.type == in.type && in.dense() && out.dense(), "no native kernel for these types");
    require(step.real("low") <= lowest && step.real("high") >= lowest + 255, "no native limits");
    return std::make_unique<MaxPlanes<uint8_t>>(step);
  }
  require_real_images(step);
  require(step.real("low") == -kInfinite && step.real("high") == kInfinite, "no native limits");
  if (step.rules.count("extreme") == 0) return make_real_maxima(step, cores);
  return std::make_unique<OrderedMaxima>(step, make_real_maxima(step, cores));
}

std::unique_ptr<Kernel> make_placed_maxima(const Step& step) {
  require(step.texts.count("outside") == 0, "no native rule for windows beside the image");
  const Type type = step.input(0).type;
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const double lowest = type == Type::s8 ? -128 : type == Type::u8 ? 0 : -kInfinite;
  require(step.real("low") <= lowest && step.real("high") >= lowest + 255, "no native limits");
  // Bytes in memory have the order of the integers.
  if (is_8bit(type)) return std::make_unique<PlacedMaxima<uint8_t>>(step);
  if (type == Type::f64) return std::make_unique<PlacedMaxima<double>>(step);
  require(type == Type::f32, "no native kernel for these types");
  return std::make_unique<PlacedMaxima<float>>(step);
}

std::unique_ptr<Kernel> make_length_of_planes(const Step& step) { return std::make_unique<Lengths>(step); }

std::unique_ptr<Kernel> make_average_of_planes(const Step& step, const CoreSet& cores) {
  if (step.rule("real_sum") == "rounded_once") return std::make_unique<RoundedAverage>(step);
  if (is_whole(step) && step.text("order") != "columns") return std::make_unique<GlobalAverage>(step);
  return std::make_unique<AveragePlanes>(step, cores);
}

}  // namespace bittrue

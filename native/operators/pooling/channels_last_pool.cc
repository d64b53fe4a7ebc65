// Pools with channels last: the average, the length or the largest of the window positions that lie inside the image.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "operators/core/registry.h"
#include "operators/pooling/pools.h"
#include "operators/pooling/scaled_numbers.h"
#include "rules/average.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

constexpr int64_t kParallelTaps = 40000;
// Neighbouring windows are pooled together, up to this many elements.
constexpr int64_t kRun = 2048;

// One spatial axis.
struct Side {
  int64_t dimension = 0, out = 0, taps = 0, stride = 0, before = 0;

  int64_t first(int64_t o) const { return std::max<int64_t>(o * stride - before, 0); }
  int64_t last(int64_t o) const { return std::min(o * stride - before + taps, dimension); }
  bool inside(int64_t o) const { return o * stride >= before && o * stride - before + taps <= dimension; }
};

struct Geometry {
  Side vertical, horizontal;
  int64_t batch = 0, channels = 0;
  int64_t in_pixel = 0, out_pixel = 0;  // bytes from one pixel to the next
  bool dense = false;
  int64_t most_taps = 0;

  explicit Geometry(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.rank() == 4 && out.rank() == 4 && in.type == out.type, "pools need images of one type");
    require(in.shape[0] == out.shape[0] && in.shape[3] == out.shape[3], "a pool keeps batches and channels");
    batch = in.shape[0];
    channels = in.shape[3];
    in_pixel = in.row_stride;
    out_pixel = out.row_stride;
    dense = in.dense() && out.dense();
    require(step.integer("channels_last", 0, 1) != 0, "channels are not last");
    require(step.integer("dilation_h") == 1 && step.integer("dilation_w") == 1, "taps are no neighbours");
    vertical = side(step, "filter_h", "stride_h", "pad_top", "out_h", in.shape[1], out.shape[1]);
    horizontal = side(step, "filter_w", "stride_w", "pad_left", "out_w", in.shape[2], out.shape[2]);
    most_taps = std::min(vertical.taps, vertical.dimension) * std::min(horizontal.taps, horizontal.dimension);
    require(most_taps <= int64_t{1} << 23, "a window is too large");
  }

  static Side side(const Step& step, const char* taps, const char* stride, const char* before, const char* out,
                   int64_t dimension, int64_t positions) {
    constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
    Side side;
    side.dimension = dimension;
    side.out = step.integer(out, positions, positions);
    side.taps = step.integer(taps, 1, kLargest);
    side.stride = step.integer(stride, 1, kLargest);
    side.before = step.integer(before, 0, kLargest);
    // Every window holds a position of the image: it is enough that the first and the last one do.
    require(side.out == 0 || (side.taps > side.before && (side.out - 1) * side.stride - side.before < dimension),
            "a window misses the image");
    return side;
  }
};

using Taps = const uint8_t* const*;

// For every row of windows: row(task, worker).
template <class Row>
void for_rows(const Run& run, const Geometry& g, const Row& row) {
  const int64_t rows = g.batch * g.vertical.out, work = rows * g.horizontal.out * g.channels * g.most_taps;
  run.pool.parallel(rows, work < kParallelTaps ? 1 : run.pool.threads(), row);
}

// For every window: one(taps, count of taps, pixels, position of the first output pixel), where `pixels` neighbours
// whose windows lie inside the image are taken together when their taps are contiguous, too.
template <class One>
void for_windows(const Run& run, const Geometry& g, int64_t scratch_per_worker, const One& one) {
  const Side &v = g.vertical, &h = g.horizontal;
  const auto row = [&](int64_t task, int worker) {
    const int64_t n = task / v.out, y = task % v.out;
    uint8_t* scratch = run.scratch + worker * scratch_per_worker;
    auto** taps = reinterpret_cast<const uint8_t**>(scratch);
    const int64_t first_y = v.first(y), last_y = v.last(y);
    int64_t count = 0, moved = 0;
    for (int64_t x = 0; x < h.out;) {
      int64_t pixels = 1;
      const bool inside = h.inside(x);
      if (h.stride == 1 && g.dense && inside) {
        while ((pixels + 1) * g.channels <= kRun && x + pixels < h.out && h.inside(x + pixels)) ++pixels;
      }
      if (inside && moved > 0) {
        // The window before lay inside, too: all taps move alike.
        for (int64_t k = 0; k < count; ++k) taps[k] += moved;
      } else {
        count = 0;
        for (int64_t i = first_y; i < last_y; ++i) {
          const uint8_t* line = run.inputs[0] + (n * v.dimension + i) * h.dimension * g.in_pixel;
          for (int64_t j = h.first(x); j < h.last(x); ++j) taps[count++] = line + j * g.in_pixel;
        }
      }
      one(taps, count, pixels, run.outputs[0] + (task * h.out + x) * g.out_pixel,
          scratch + (g.most_taps * 8 + 63) / 64 * 64);
      moved = inside ? pixels * h.stride * g.in_pixel : 0;
      x += pixels;
    }
  };
  for_rows(run, g, row);
}

class Pool : public Kernel {
 public:
  explicit Pool(const Step& step) : geometry_(step) {
    pixels_ = std::max(geometry_.channels, kRun);
    per_worker_ = (geometry_.most_taps * 8 + 63) / 64 * 64 + (pixels_ * 4 + 63) / 64 * 64;
  }
  int64_t scratch_bytes(int threads) const override { return threads * per_worker_; }

 protected:
  Geometry geometry_;
  int64_t pixels_ = 0, per_worker_ = 0;
};

struct IntegerRange {
  int32_t low, high;

  explicit IntegerRange(const Step& step) {
    constexpr int64_t kLow = -(1 << 23), kHigh = 1 << 23;  // exact in binary32
    low = static_cast<int32_t>(step.integer("low", kLow, kHigh));
    high = static_cast<int32_t>(step.integer("high", kLow, kHigh));
  }
};

struct RealRange {
  float low, high;

  // Unless the caller reads the rule itself.
  explicit RealRange(const Step& step, bool clamps = true) {
    const auto rule = step.rules.find("plain_range");
    require(!clamps || rule == step.rules.end() || rule->second == "type_limits" || rule->second == "unlimited",
            "no native rule for the range");
    low = static_cast<float>(step.real("low"));
    high = static_cast<float>(step.real("high"));
  }
  float operator()(float x) const { return rules::clamp(x, low, high); }
};

class MaxBytes final : public Pool {
 public:
  MaxBytes(const Step& step, const CoreSet& cores) : Pool(step), max_rows_(cores.max_rows()) {
    const IntegerRange range(step);
    const int flip = flip_of(step.output().type);
    low_ = range.low + flip;
    high_ = range.high + flip;
    require(low_ >= 0 && low_ <= 255 && high_ >= 0 && high_ <= 255, "the range leaves the type");
  }
  void run(const Run& run) const override {
    for_windows(run, geometry_, per_worker_, [&](Taps taps, int64_t count, int64_t pixels, uint8_t* out, uint8_t*) {
      max_rows_(taps, count, out, pixels * geometry_.channels, low_, high_);
    });
  }
  std::string note() const override { return "largest of rows"; }

 private:
  MaxRows max_rows_;
  int low_ = 0, high_ = 0;
};

// The first of equal values stays, and NaN never wins. With a rule of the slot `extreme`, images with NaN, -0 or -infinity
// are left to the reference.
template <class T, class Finish>
class MaxWide final : public Pool {
 public:
  MaxWide(const Step& step, Finish finish) : Pool(step), finish_(finish) {
    if (step.rules.count("extreme") == 0) return;
    const std::string& rule = step.rule("extreme");
    require(rule == "nan_else_by_signs_in_pixels" || rule == "windows_nan_else_by_signs",
            "no native rule for this slot");
    looked_through_ = step.input(0).elements;
  }
  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const T*>(run.inputs[0]);
    constexpr T kLeast = std::numeric_limits<T>::lowest();
    bool odd = false;
    for (int64_t i = 0; i < looked_through_; ++i) odd |= !(in[i] >= kLeast) || (in[i] == 0 && std::signbit(in[i]));
    if (odd) throw Undefined();
    for_windows(run, geometry_, per_worker_, [&](Taps taps, int64_t count, int64_t pixels, uint8_t* out, uint8_t*) {
      auto* target = reinterpret_cast<T*>(out);
      const int64_t elements = pixels * geometry_.channels;
      std::fill(target, target + elements, std::numeric_limits<T>::lowest());
      for (int64_t k = 0; k < count; ++k) {
        const auto* tap = reinterpret_cast<const T*>(taps[k]);
        for (int64_t i = 0; i < elements; ++i) target[i] = target[i] < tap[i] ? tap[i] : target[i];
      }
      for (int64_t i = 0; i < elements; ++i) target[i] = finish_(target[i]);
    });
  }

 private:
  Finish finish_;
  int64_t looked_through_ = 0;
};

enum class Divide : uint8_t { half_away, half_up, trunc };

// Sums modulo 2^32; `flip` is what the storage of each element adds.
template <class T, Divide kDivide>
class AverageInteger final : public Pool {
 public:
  AverageInteger(const Step& step, const CoreSet& cores)
      : Pool(step),
        range_(step),
        sum_rows_(cores.sum_rows()),
        average_rows_(cores.average_rows()),
        average_line_(cores.average_line()) {
    flip_ = flip_of(step.output().type);
    const int32_t low = range_.low + flip_, high = range_.high + flip_;
    if (sizeof(T) != 1 || low < 0 || high > 255 || low > high) return;
    for (int64_t taps = 1; taps <= std::min(geometry_.most_taps, rules::kMostShortCount); ++taps) {
      averages_.push_back(average_of(taps, low, high));
    }
    const Side& h = geometry_.horizontal;
    lines_ = h.stride == 1 && h.taps >= 3 && h.taps <= AverageLineSpec::kMostTaps && geometry_.dense &&
             geometry_.channels >= kLineChannels && geometry_.most_taps <= static_cast<int64_t>(averages_.size());
  }
  void run(const Run& run) const override {
    if (lines_) return run_lines(run);
    for_windows(run, geometry_, per_worker_, [&](Taps taps, int64_t count, int64_t pixels, uint8_t* out, uint8_t* own) {
      auto* sums = reinterpret_cast<int32_t*>(own);
      auto* target = reinterpret_cast<T*>(out);
      const int64_t elements = pixels * geometry_.channels;
      // Every three taps pass over the elements once.
      const bool few = count <= kFewTaps || elements >= kManyElements;
      if (few && count <= static_cast<int64_t>(averages_.size())) {
        average_rows_(averages_[static_cast<size_t>(count - 1)], taps, out, elements);
        return;
      }
      sum(taps, count, sums, elements);
      const auto taps_count = static_cast<int32_t>(count);
      const auto flipped = static_cast<uint32_t>(flip_ * count);
      if (sizeof(T) == 1 && count <= rules::kMostTaps) {
        finish_bytes(sums, taps_count, out, elements);
        return;
      }
      for (int64_t i = 0; i < elements; ++i) {
        const auto total = static_cast<int32_t>(static_cast<uint32_t>(sums[i]) - flipped);
        const int32_t average = kDivide == Divide::half_up     ? rules::integer_half_up(total, taps_count)
                                : kDivide == Divide::half_away ? rules::integer_half_away(total, taps_count)
                                                               : rules::integer_trunc(total, taps_count);
        target[i] = static_cast<T>(std::min(std::max(average, range_.low), range_.high) + flip_);
      }
    });
  }
  std::string note() const override { return lines_ ? "average of sliding sums" : "average of rows"; }

 private:
  // Neighbouring windows share all but one of their columns.
  void run_lines(const Run& run) const {
    const Side &v = geometry_.vertical, &h = geometry_.horizontal;
    const int64_t bytes = h.dimension * geometry_.channels;
    for_rows(run, geometry_, [&](int64_t task, int worker) {
      auto** lines = reinterpret_cast<const uint8_t**>(run.scratch + worker * per_worker_);
      const int64_t n = task / v.out, y = task % v.out, first = v.first(y), last = v.last(y);
      for (int64_t i = first; i < last; ++i) lines[i - first] = run.inputs[0] + (n * v.dimension + i) * bytes;
      const AverageLineSpec spec{last - first, h.dimension, geometry_.channels, h.out, h.taps, h.before};
      average_line_(spec, averages_.data(), lines, run.outputs[0] + task * h.out * geometry_.channels);
    });
  }

  void sum(const uint8_t* const* taps, int64_t count, int32_t* sums, int64_t elements) const {
    if constexpr (sizeof(T) == 1) {
      sum_rows_(taps, count, sums, elements);
    } else {
      // At most 2^23 taps, so that sums of 16-bit integers may wrap: unsigned.
      auto* totals = reinterpret_cast<uint32_t*>(sums);
      std::fill(totals, totals + elements, 0u);
      for (int64_t k = 0; k < count; ++k) {
        const auto* tap = reinterpret_cast<const T*>(taps[k]);
        for (int64_t i = 0; i < elements; ++i) totals[i] += static_cast<uint32_t>(static_cast<int32_t>(tap[i]));
      }
    }
  }

  // A stored average is the plan's own plus flip_, so a sum is one of negative values where it is less than flip_ * count.
  AverageSpec average_of(int64_t taps, int32_t low, int32_t high) const {
    const int64_t half = taps / 2, up = kDivide == Divide::trunc ? 0 : half;
    // Toward zero, what is negative rounds up; away from zero, its ties round down.
    const int64_t negative = kDivide == Divide::half_up     ? half
                             : kDivide == Divide::half_away ? half - (taps % 2 == 0 ? 1 : 0)
                                                            : taps - 1;
    const rules::ShortQuotient quotient(taps);
    AverageSpec spec;
    spec.taps = static_cast<uint16_t>(taps);
    spec.summand = static_cast<uint16_t>(up + quotient.one);
    spec.summand_below = static_cast<uint16_t>(negative + quotient.one);
    spec.below = static_cast<uint16_t>(flip_ * taps);
    spec.factor = quotient.factor;
    spec.shift = quotient.shift;
    spec.low = static_cast<uint8_t>(low);
    spec.high = static_cast<uint8_t>(high);
    return spec;
  }

  // Sums of stored bytes. Whole ends may clamp before the fraction is dropped.
  void finish_bytes(const int32_t* sums, int32_t count, uint8_t* out, int64_t elements) const {
    constexpr bool kHalfUp = kDivide == Divide::half_up;
    const rules::ByteAverage average(count, kDivide == Divide::trunc);
    // Rounding up, the flip is a whole number of averages.
    const int32_t removed = kHalfUp ? 0 : flip_, added = flip_ - removed;
    const auto flipped = static_cast<float>(removed * count);
    const auto low = static_cast<float>(std::max(range_.low, -256) + added);
    const auto high = static_cast<float>(std::min(range_.high, 256) + added);
    for (int64_t i = 0; i < elements; ++i) {
      const float total = static_cast<float>(sums[i]) - flipped;
      float value = kHalfUp ? average.up(total) : average.away(total);
      value = value < low ? low : value;
      value = value > high ? high : value;
      out[i] = static_cast<uint8_t>(static_cast<int32_t>(value) + removed);
    }
  }

  IntegerRange range_;
  static constexpr int64_t kFewTaps = 16, kManyElements = 256, kLineChannels = 32;

  SumRows sum_rows_;
  AverageRows average_rows_;
  AverageLine average_line_;
  std::vector<AverageSpec> averages_;  // by count of taps, less one
  int32_t flip_ = 0;
  bool lines_ = false;
};

// Averages in another scale: sums of differences to the zero point, times one multiplier of 24 bits, or a binary32 factor
// over the count of elements, with the zero point in the same rounding.
template <bool kFused>
class AverageScaled final : public Pool {
 public:
  AverageScaled(const Step& step, const CoreSet& cores)
      : Pool(step), numbers_(step), sum_rows_(cores.sum_rows()), flip_(flip_of(step.output().type)) {
    // Sums less their zero points, of up to 3 * 2^8 each, fit 32 bits.
    require(geometry_.most_taps <= int64_t{1} << 21, "a window is too large");
  }
  void run(const Run& run) const override {
    for_windows(run, geometry_, per_worker_, [&](Taps taps, int64_t count, int64_t pixels, uint8_t* out, uint8_t* own) {
      auto* sums = reinterpret_cast<int32_t*>(own);
      const int64_t elements = pixels * geometry_.channels;
      sum_rows_(taps, count, sums, elements);
      const auto average = numbers_.average(count);
      const auto removed = static_cast<int32_t>((numbers_.input_zero_point + flip_) * count);
      for (int64_t i = 0; i < elements; ++i) out[i] = static_cast<uint8_t>(average(sums[i] - removed) + flip_);
    });
  }
  std::string note() const override { return "average of rows"; }

 private:
  ScaledNumbers<kFused> numbers_;
  SumRows sum_rows_;
  int32_t flip_;
};

// Sums, of squares or not, in the order of the taps, row by row, beginning with 0.
template <bool kRootOfSquares>
class AverageReal final : public Pool {
 public:
  explicit AverageReal(const Step& step)
      : Pool(step), range_(step), by_inverse_(step.rule("average") == "binary32_reciprocal") {}
  void run(const Run& run) const override {
    for_windows(run, geometry_, per_worker_, [&](Taps taps, int64_t count, int64_t pixels, uint8_t* out, uint8_t*) {
      auto* target = reinterpret_cast<float*>(out);
      const int64_t elements = pixels * geometry_.channels;
      std::fill(target, target + elements, 0.0f);
      for (int64_t k = 0; k < count; ++k) {
        const auto* tap = reinterpret_cast<const float*>(taps[k]);
        for (int64_t i = 0; i < elements; ++i) {
          const float term = kRootOfSquares ? tap[i] * tap[i] : tap[i];
          target[i] = rules::keep_first_nan(target[i] + term, target[i], term);
        }
      }
      for (int64_t i = 0; i < elements; ++i) {
        const float average =
            by_inverse_ ? target[i] * (1.0f / static_cast<float>(count)) : rules::binary32_divide(target[i], count);
        target[i] = range_(kRootOfSquares ? std::sqrt(average) : average);
      }
    });
  }

 private:
  RealRange range_;
  bool by_inverse_;
};

// nines_by_columns: taps of a window column by column, missing ones as zeros, nine at a time; times 1 / count.
class AverageNines final : public Pool {
 public:
  explicit AverageNines(const Step& step) : Pool(step), range_(step, false) {
    const int64_t taps = geometry_.vertical.taps * geometry_.horizontal.taps;
    require(geometry_.vertical.taps <= kMost && geometry_.horizontal.taps <= kMost && taps <= kMost,
            "a window is too large");
    zeros_.assign(geometry_.channels, 0.0f);
    taps_ = taps;
    keeps_nan_ = step.rule("plain_range") == "unlimited_by_signs";
    require(keeps_nan_ || step.rule("plain_range") == "lower_for_nan", "no native rule for the range");
    if (!step.has_array("rows")) return;
    const Array& rows = step.array("rows");
    require(rows.count == geometry_.vertical.out, "one row of windows per output row is needed");
    for (int64_t y = 0; y < rows.count; ++y) {
      require(rows.integer(y) >= 0 && rows.integer(y) < rows.count, "there is no such row of windows");
      rows_.push_back(rows.integer(y));
    }
  }
  int64_t scratch_bytes(int threads) const override { return threads * per_window(); }

  void run(const Run& run) const override {
    const Side &v = geometry_.vertical, &h = geometry_.horizontal;
    const int64_t rows = geometry_.batch * v.out;
    const auto row = [&](int64_t task, int worker) {
      const int64_t n = task / v.out, y = task % v.out, first_y = (rows_.empty() ? y : rows_[y]) * v.stride - v.before;
      auto** taps = reinterpret_cast<const float**>(run.scratch + worker * per_window());
      for (int64_t x = 0; x < h.out; ++x) {
        const int64_t count = (v.last(y) - v.first(y)) * (h.last(x) - h.first(x));
        int64_t filled = 0;
        for (int64_t j = 0; j < h.taps; ++j) {
          for (int64_t i = 0; i < v.taps; ++i) {
            const int64_t at_y = first_y + i, at_x = x * h.stride - h.before + j;
            const bool inside = at_y >= 0 && at_y < v.dimension && at_x >= 0 && at_x < h.dimension;
            const int64_t pixel = (n * v.dimension + at_y) * h.dimension + at_x;
            taps[filled++] =
                inside ? reinterpret_cast<const float*>(run.inputs[0] + pixel * geometry_.in_pixel) : zeros_.data();
          }
        }
        while (filled % 9 != 0) taps[filled++] = zeros_.data();
        one(taps, filled, 1.0f / static_cast<float>(count),
            reinterpret_cast<float*>(run.outputs[0] + (task * h.out + x) * geometry_.out_pixel));
      }
    };
    run.pool.parallel(rows, rows * h.out * geometry_.channels * taps_ < kParallelTaps ? 1 : run.pool.threads(), row);
  }

 private:
  static constexpr int64_t kMost = 1 << 20;

  int64_t per_window() const { return ((taps_ + 9) * 8 + 63) / 64 * 64; }

  void one(const float* const* taps, int64_t count, float factor, float* out) const {
    for (int64_t k = 0; k < count; k += 9) {
      const float* const* t = taps + k;
      for (int64_t c = 0; c < geometry_.channels; ++c) {
        const float nine =
            ((t[2][c] + t[3][c]) + (t[4][c] + t[5][c])) + (((t[0][c] + t[1][c]) + t[8][c]) + (t[6][c] + t[7][c]));
        out[c] = (k == 0 ? 0.0f : out[c]) + nine;
      }
    }
    for (int64_t c = 0; c < geometry_.channels; ++c) {
      const float average = out[c] * factor, limited = range_(average);
      const float capped = average > range_.high ? range_.high : average;
      // -0 becomes 0 in all results but those whose range begins below it.
      out[c] = keeps_nan_ ? (range_.low == 0.0f ? limited + 0.0f : limited) : capped > range_.low ? capped : range_.low;
    }
  }

  RealRange range_;
  bool keeps_nan_ = false;  // else it becomes the lower limit
  std::vector<float> zeros_;
  std::vector<int64_t> rows_;  // of which row of windows each row has its taps; its own where there are none
  int64_t taps_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_max_of_pixels(const Step& step, const CoreSet& cores) {
  const Type type = step.input(0).type;
  if (is_8bit(type)) return std::make_unique<MaxBytes>(step, cores);
  if (type == Type::s16) {
    const IntegerRange range(step);
    const auto clamp = [range](int16_t x) {
      return static_cast<int16_t>(std::min(std::max<int32_t>(x, range.low), range.high));
    };
    return std::make_unique<MaxWide<int16_t, decltype(clamp)>>(step, clamp);
  }
  if (type == Type::f32) return std::make_unique<MaxWide<float, RealRange>>(step, RealRange(step));
  return nullptr;
}

static std::unique_ptr<Kernel> make_lp_pool(const Step& step, const CoreSet&) {
  if (step.rules.count("real_sum")) return make_length_of_planes(step);
  if (step.input(0).type != Type::f32 || !step.rules.count("average")) return nullptr;
  const std::string& rule = step.rule("average");
  if (rule != "binary32_divide" && rule != "binary32_reciprocal") return nullptr;
  require(step.rules.count("sum_of_products") == 0, "no native rule for sums");
  return std::make_unique<AverageReal<true>>(step);
}

std::unique_ptr<Kernel> make_scaled_average(const Step& step, const CoreSet& cores) {
  if (!is_8bit(step.input(0).type) || step.rule("accumulate") != "s32_wrap") return nullptr;
  const std::string& rule = step.rule("window_average");
  if (rule == "q24_all_taps_away") return std::make_unique<AverageScaled<false>>(step, cores);
  if (rule == "binary32_fused_inside_even") return std::make_unique<AverageScaled<true>>(step, cores);
  return nullptr;
}

template <Divide kDivide>
std::unique_ptr<Kernel> make_average(const Step& step, const CoreSet& cores) {
  const Type type = step.input(0).type;
  if (is_8bit(type)) return std::make_unique<AverageInteger<uint8_t, kDivide>>(step, cores);
  if (type == Type::s16) return std::make_unique<AverageInteger<int16_t, kDivide>>(step, cores);
  return nullptr;
}

std::unique_ptr<Kernel> make_average_of_pixels(const Step& step, const CoreSet& cores) {
  const Type type = step.input(0).type;
  const std::string& rule = step.rule("average");
  require(step.text("counted") == "inside", "padding counts");
  if (type == Type::f32) {
    const bool grouped = step.rules.count("order") != 0;
    if (grouped && rule == "binary32_reciprocal" && step.rule("order") == "nines_by_columns") {
      return std::make_unique<AverageNines>(step);
    }
    if (grouped || rule != "binary32_divide") return nullptr;
    return std::make_unique<AverageReal<false>>(step);
  }
  const std::string& width = step.rule("accumulate");
  require(width == "s32_wrap" || (width == "s64" && step.bounded && step.magnitude < int64_t{1} << 31),
          "no native accumulator of this width");
  if (rule == "integer_half_away") return make_average<Divide::half_away>(step, cores);
  if (rule == "integer_half_up") return make_average<Divide::half_up>(step, cores);
  if (rule == "integer_trunc") return make_average<Divide::trunc>(step, cores);
  return nullptr;
}

BITTRUE_OPERATOR(lp_pool, make_lp_pool)

}  // namespace bittrue

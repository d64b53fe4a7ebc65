// resize_linear of bytes whose weights are multiples of powers of two: all sums are exact, so that one integer arithmetic does
// for every rule that rounds at the end alone.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/share.h"
#include "operators/core/interleave.h"
#include "operators/pooling/resize.h"

namespace bittrue {
namespace {

using Bytes8 = uint8_t __attribute__((vector_size(8)));

// Eight lanes that hold bytes.
inline Bytes8 narrowed(const Vector16 (&lanes)[1]) { return __builtin_convertvector(lanes[0], Bytes8); }
inline Bytes8 narrowed(const Vector32 (&lanes)[2]) {
  return narrowed({even_lanes(reinterpret_cast<Vector16>(lanes[0]), reinterpret_cast<Vector16>(lanes[1]))});
}

// One axis: two input positions per output position, and the weight of the second one in units of 2^-bits.
struct ExactAxis {
  struct Entry {
    int64_t low, high;
    uint32_t weight;
  };
  std::vector<Entry> entries;
  int bits = 0;  // of the finest weight

  // Weights are multiples of 1 / `whole`, or binary32 numbers (0). False where a weight is no multiple of 2^-most.
  bool read(const Step& step, const std::string& side, int64_t dimension, int64_t out, int whole, int most) {
    const Array &low = step.array("low_" + side), &high = step.array("high_" + side),
                &weight = step.array("weight_" + side);
    require(low.count == out && high.count == out && weight.count == out, "one position per output position is needed");
    const double one = std::ldexp(1.0, most);
    uint32_t all = uint32_t{1} << most;
    for (int64_t i = 0; i < out; ++i) {
      const int64_t l = low.integer(i), h = high.integer(i);
      require(l >= 0 && l < dimension && h >= 0 && h < dimension, "a position leaves the image");
      const double w = whole == 0 ? weight.real(i) : static_cast<double>(weight.integer(i)) / whole;
      require(w >= -1 && w <= 1, "a weight is out of range");
      const double units = w * one;
      if (units != std::floor(units) || (w < 0 && l != h)) return false;
      // Between a position and itself, every weight is 0.
      entries.push_back({l, h, l == h ? 0 : static_cast<uint32_t>(units)});
      all |= static_cast<uint32_t>(std::abs(units));
    }
    for (bits = most; all % 2 == 0 && bits > 0; --bits) all /= 2;
    return true;
  }

  void in_units(int read_bits, int wanted) {
    for (Entry& entry : entries) entry.weight = entry.weight >> (read_bits - bits) << (wanted - bits);
    bits = wanted;
  }
};

// The result is (sum + half) >> kShift of stored bytes; with kAway, of s8 values, ties of negative ones are one less.
template <class Word, int kShift, bool kAway>
class ExactResize final : public Kernel {
 public:
  ExactResize(const Step& step, ExactAxis rows, const ExactAxis& columns)
      : rows_(std::move(rows)), bits_(columns.bits) {
    const Operand &in = step.input(0), &out = step.output();
    images_ = out.elements == 0 ? 0 : in.shape[0];
    in_h_ = in.shape[1], in_w_ = in.shape[2], out_h_ = out.shape[1], out_w_ = out.shape[2], channels_ = in.shape[3];
    cut(columns.entries);
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }
  std::string note() const override { return sizeof(Word) == 2 ? "exact in 16 bits" : "exact in 32 bits"; }

  void run(const Run& run) const override {
    const int64_t width = in_w_ * channels_, rows = images_ * out_h_;
    each_row(run.pool, rows, out_w_ * channels_, [&](int64_t begin, int64_t end, int worker) {
      auto* sums = reinterpret_cast<Word*>(run.scratch + worker * worker_bytes());
      for (int64_t r = begin; r < end; ++r) {
        const auto& entry = rows_.entries[r % out_h_];
        const uint8_t* image = run.inputs[0] + r / out_h_ * in_h_ * width;
        vertical(image + entry.low * width, image + entry.high * width, static_cast<Word>(entry.weight), sums, width);
        uint8_t* out = run.outputs[0] + r * out_w_ * channels_;
        horizontal(sums, out);
      }
    });
  }

 private:
  static constexpr int64_t kLanes = 8, kVectors = sizeof(Word) / 2;
  using Lanes = std::conditional_t<sizeof(Word) == 2, Vector16, Vector32>;

  int64_t worker_bytes() const {
    return round_up((in_w_ * channels_ + kLanes) * static_cast<int64_t>(sizeof(Word)), 64);
  }

  void vertical(const uint8_t* low, const uint8_t* high, Word weight, Word* sums, int64_t count) const {
    const auto rest = static_cast<Word>((Word{1} << rows_.bits) - weight);
    for (int64_t i = 0; i < count; ++i) sums[i] = static_cast<Word>(Word{low[i]} * rest + Word{high[i]} * weight);
  }

  // Neighbours between the same two pixels whose weights grow by the same step, so that their sums grow by a constant.
  struct Stretch {
    int64_t low, high, pixels;
    Word weight, step;
  };

  void cut(const std::vector<ExactAxis::Entry>& entries) {
    for (const auto& entry : entries) {
      const auto weight = static_cast<Word>(entry.weight);
      if (!stretches_.empty()) {
        Stretch& last = stretches_.back();
        const auto reached = static_cast<Word>(last.weight + last.step * static_cast<Word>(last.pixels - 1));
        const auto step = static_cast<Word>(weight - reached);
        if (last.low == entry.low && last.high == entry.high && (last.pixels == 1 || step == last.step)) {
          last.step = step;
          ++last.pixels;
          continue;
        }
      }
      stretches_.push_back({entry.low, entry.high, 1, weight, 0});
    }
  }

  // Eight channels at a time, the last ones as far as they go. Where there are fewer, what is stored too much is another
  // pixel's, which comes later.
  void horizontal(const Word* sums, uint8_t* out) const {
    const uint8_t* end = out + out_w_ * channels_;
    for (const Stretch& stretch : stretches_) {
      const Word *left = sums + stretch.low * channels_, *right = sums + stretch.high * channels_;
      if (channels_ < kLanes) {
        eight<true>(left, right, stretch, out, end);
      } else {
        for (int64_t c = 0; c < channels_; c += kLanes) {
          const int64_t at = std::min(c, channels_ - kLanes);
          eight<false>(left + at, right + at, stretch, out + at, end);
        }
      }
      out += stretch.pixels * channels_;
    }
  }

  template <bool kFew>
  void eight(const Word* left, const Word* right, const Stretch& stretch, uint8_t* out, const uint8_t* end) const {
    Lanes sum[kVectors], growth[kVectors];
    constexpr auto half = static_cast<Word>(Word{1} << (kShift - 1));
    for (int i = 0; i < kVectors; ++i) {
      Lanes from, to;
      std::memcpy(&from, left + i * kLanes / kVectors, sizeof from);
      std::memcpy(&to, right + i * kLanes / kVectors, sizeof to);
      const Lanes difference = to - from;
      sum[i] = (from << bits_) + difference * stretch.weight + half;
      growth[i] = difference * stretch.step;
    }
    for (int64_t x = 0; x < stretch.pixels; ++x, out += channels_) {
      Lanes rounded[kVectors];
      for (int i = 0; i < kVectors; ++i) {
        // A value is negative where its byte is less than 128.
        rounded[i] = (kAway ? sum[i] - 1 + ((sum[i] - half) >> (kShift + 7)) : sum[i]) >> kShift;
        sum[i] += growth[i];
      }
      const Bytes8 bytes = narrowed(rounded);
      if (!kFew || end - out >= kLanes) {
        std::memcpy(out, &bytes, sizeof bytes);
      } else {
        std::memcpy(out, &bytes, static_cast<size_t>(channels_));
      }
    }
  }

  ExactAxis rows_;
  int bits_;  // of the weights of columns
  std::vector<Stretch> stretches_;
  int64_t images_, in_h_, in_w_, out_h_, out_w_, channels_;
};

template <bool kAway>
std::unique_ptr<Kernel> make(const Step& step, int whole) {
  constexpr int kMost = 11;
  const Operand &in = step.input(0), &out = step.output();
  require(in.rank() == 4 && out.rank() == 4 && in.shape[0] == out.shape[0] && in.shape[3] == out.shape[3],
          "the shapes do not fit");
  require(in.dense() && out.dense(), "both sides must be dense");
  ExactAxis rows, columns;
  if (!rows.read(step, "y", in.shape[1], out.shape[1], whole, kMost) ||
      !columns.read(step, "x", in.shape[2], out.shape[2], whole, kMost)) {
    return nullptr;
  }
  // Products of a byte and two weights of up to 2, and their sums, have at most 24 bits.
  if (whole == 0 && rows.bits + columns.bits > 14) return nullptr;
  if (rows.bits + columns.bits <= 8) {
    rows.in_units(kMost, rows.bits);
    columns.in_units(kMost, 8 - rows.bits);
    return std::make_unique<ExactResize<uint16_t, 8, kAway>>(step, std::move(rows), columns);
  }
  rows.in_units(kMost, kMost);
  columns.in_units(kMost, kMost);
  return std::make_unique<ExactResize<uint32_t, 2 * kMost, kAway>>(step, std::move(rows), columns);
}

}  // namespace

std::unique_ptr<Kernel> make_exact_resize(const Step& step, int whole, bool away) {
  return away ? make<true>(step, whole) : make<false>(step, whole);
}

}  // namespace bittrue

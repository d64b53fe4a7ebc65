// resize_linear with channels last and positions that follow from the sizes.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"
#include "operators/pooling/resize.h"
#include "operators/quantization/level_kernel.h"

namespace bittrue {
namespace {

// Where the positions of one output axis read: two input positions and the weight of the second one.
template <class Weight>
struct Positions {
  struct Entry {
    int64_t low, high;
    Weight weight;
  };
  std::vector<Entry> entries;
};

template <class Weight>
Positions<Weight> read_positions(const Step& step, const std::string& side, int64_t dimension, int64_t out,
                                 Weight least, Weight most) {
  const Array &low = step.array("low_" + side), &high = step.array("high_" + side),
              &weight = step.array("weight_" + side);
  require(low.count == out && high.count == out && weight.count == out, "one position per output position is needed");
  Positions<Weight> result;
  for (int64_t i = 0; i < out; ++i) {
    const int64_t l = low.integer(i), h = high.integer(i);
    require(l >= 0 && l < dimension && h >= 0 && h < dimension, "a position leaves the image");
    Weight w;
    if constexpr (std::is_same_v<Weight, float>) {
      w = static_cast<float>(weight.real(i));
      require(w >= least && w <= most, "a weight is out of range");
    } else {
      const int64_t found = weight.integer(i);
      require(found >= least && found <= most, "a weight is out of range");
      w = static_cast<Weight>(found);
    }
    result.entries.push_back({l, h, w});
  }
  return result;
}

// ten_bits_half_away and ten_bits_half_up of 16-bit values. With weights in [-1024, 1024], 1024 - weight is at most 2048: values
// stay below 2^15 * 3072 after the vertical pass.
template <bool kAway>
struct FixedPoint {
  static constexpr int kBits = 10;
  static constexpr int32_t kOne = 1 << kBits;
  static constexpr int32_t kLeast = -kOne, kMost = kOne;
  using Stored = int16_t;
  using Total = int64_t;
  using Weight = int32_t;
  using Column = int32_t;  // what the vertical pass leaves
  static constexpr int kColumns = 1;

  static void vertical(const Stored* low, const Stored* high, Weight weight, Column* out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = low[i] * (kOne - weight) + high[i] * weight;
    }
  }

  static Stored finish(Total total) {
    // (total + half) >> 2 * bits: nearest, ties up; one less for negative totals: ties away from zero.
    const Total sign = kAway && total < 0 ? 1 : 0;
    return static_cast<Stored>((total + (Total{1} << (2 * kBits - 1)) - sign) >> (2 * kBits));
  }

  // One output row. Along a stretch between the same two pixels the total grows by a constant per step, so one addition
  // replaces both products; integers are exact, so the order does not matter.
  template <class Entry>
  static void horizontal(const Column* columns, int64_t, const Entry* entries, int64_t out_w, int64_t channels,
                         Total* total, Total* growth, Stored* out) {
    int64_t low = -1, high = -1;
    int32_t weight = 0, step = 0;
    for (int64_t x = 0; x < out_w; ++x, out += channels) {
      const auto& entry = entries[x];
      const Column *left = columns + entry.low * channels, *right = columns + entry.high * channels;
      if (entry.low != low || entry.high != high) {
        for (int64_t c = 0; c < channels; ++c) {
          total[c] = static_cast<Total>(left[c]) * (kOne - entry.weight) + static_cast<Total>(right[c]) * entry.weight;
          out[c] = finish(total[c]);
        }
        low = entry.low, high = entry.high, step = 0;
      } else {
        if (entry.weight - weight != step) {
          step = entry.weight - weight;
          for (int64_t c = 0; c < channels; ++c) growth[c] = (static_cast<Total>(right[c]) - left[c]) * step;
        }
        if (step == 0) {
          std::memcpy(out, out - channels, static_cast<size_t>(channels) * sizeof(Stored));
        } else {
          for (int64_t c = 0; c < channels; ++c) {
            total[c] += growth[c];
            out[c] = finish(total[c]);
          }
        }
      }
      weight = entry.weight;
    }
  }
};

// binary32_products: p00 * (1-wy) * (1-wx) + p10 * wy * (1-wx) + p01 * (1-wy) * wx + p11 * wy * wx + nudge, every
// operation rounded to binary32 in this order. The vertical pass does the products with wy. Fused: a product and the sum
// with what is there are rounded once, and the second product comes first.
template <class Stored, bool kFused = false>
struct WeightedSums {
  static constexpr float kLeast = -1.0f, kMost = 1.0f;
  using Weight = float;
  using Column = float;
  using Total = float;
  static constexpr int kColumns = 2;  // of the low and of the high row

  static void vertical(const Stored* low, const Stored* high, Weight weight, Column* out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<float>(low[i]) * (1.0f - weight);
      out[count + i] = static_cast<float>(high[i]) * weight;
    }
  }

  static Stored finish(float total) {
    if constexpr (std::is_same_v<Stored, float>) {
      return total + 0.0f;
    } else {
      // Weights in [-1, 1] keep totals of 8-bit values far inside 32 bits.
      return static_cast<Stored>(static_cast<int32_t>(total + 0.5f));
    }
  }

  template <class Entry>
  static void horizontal(const Column* columns, int64_t count, const Entry* entries, int64_t out_w, int64_t channels,
                         float*, float*, Stored* out) {
    for (int64_t x = 0; x < out_w; ++x, out += channels) {
      const auto& entry = entries[x];
      const float right_weight = entry.weight, left_weight = 1.0f - right_weight;
      const float *left = columns + entry.low * channels, *right = columns + entry.high * channels;
      for (int64_t c = 0; c < channels; ++c) {
        if constexpr (kFused) {
          float total = left[count + c] * left_weight;
          total = std::fma(left[c], left_weight, total);
          total = std::fma(right[c], right_weight, total);
          out[c] = finish(std::fma(right[count + c], right_weight, total));
          continue;
        }
        float total = left[c] * left_weight;
        total = total + left[count + c] * left_weight;
        total = total + right[c] * right_weight;
        total = total + right[count + c] * right_weight;
        out[c] = finish(total);
      }
    }
  }
};

// binary32_weights: p00 * ((1-wy) * (1-wx)) + p01 * ((1-wy) * wx) + p10 * (wy * (1-wx)) + p11 * (wy * wx), every operation
// rounded to binary32 in this order, then + 0.5 for bytes; sums of binary32 numbers begin with 0. Fused: a product and the
// sum with what is there are rounded once; sums of bytes begin with the second product.
template <class Stored, bool kFused = false>
struct Weights {
  static constexpr float kLeast = -1.0f, kMost = 1.0f;
  using Weight = float;
  using Column = float;
  using Total = float;
  static constexpr int kColumns = 3;  // of the low row, of the high row, and the weight of the high one

  static void vertical(const Stored* low, const Stored* high, Weight weight, Column* out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<float>(low[i]);
      out[count + i] = static_cast<float>(high[i]);
    }
    if (count > 0) out[2 * count] = weight;
  }

  template <class Entry>
  static void horizontal(const Column* columns, int64_t count, const Entry* entries, int64_t out_w, int64_t channels,
                         float*, float*, Stored* out) {
    const float below = columns[2 * count], above = 1.0f - below;
    for (int64_t x = 0; x < out_w; ++x, out += channels) {
      const auto& entry = entries[x];
      const float right_weight = entry.weight, left_weight = 1.0f - right_weight;
      const float w00 = above * left_weight, w01 = above * right_weight;
      const float w10 = below * left_weight, w11 = below * right_weight;
      const float *left = columns + entry.low * channels, *right = columns + entry.high * channels;
      for (int64_t c = 0; c < channels; ++c) {
        if constexpr (kFused) {
          float total = 0.0f;
          if constexpr (!std::is_same_v<Stored, float>) total = right[c] * w01;
          total = std::fma(left[c], w00, total);
          if constexpr (std::is_same_v<Stored, float>) total = std::fma(right[c], w01, total);
          total = std::fma(left[count + c], w10, total);
          total = std::fma(right[count + c], w11, total);
          if constexpr (std::is_same_v<Stored, float>) {
            out[c] = total;
          } else {
            out[c] = static_cast<Stored>(static_cast<int32_t>(total + 0.5f));
          }
          continue;
        }
        float total = left[c] * w00;
        if constexpr (std::is_same_v<Stored, float>) total = 0.0f + total;
        total = total + right[c] * w01;
        total = total + left[count + c] * w10;
        total = total + right[count + c] * w11;
        if constexpr (std::is_same_v<Stored, float>) {
          out[c] = total;
        } else {
          out[c] = static_cast<Stored>(static_cast<int32_t>(total + 0.5f));
        }
      }
    }
  }
};

// binary32_differences: along x in both rows, then between them, every operation rounded to binary32.
struct Differences {
  static constexpr float kLeast = 0.0f, kMost = 1.0f;
  using Weight = float;
  using Column = float;
  using Total = float;
  static constexpr int kColumns = 3;  // the low row, the high row, and the weight between them

  static void vertical(const float* low, const float* high, Weight weight, Column* out, int64_t count) {
    std::copy_n(low, count, out);
    std::copy_n(high, count, out + count);
    out[2 * count] = weight;
  }

  template <class Entry>
  static void horizontal(const Column* columns, int64_t count, const Entry* entries, int64_t out_w, int64_t channels,
                         float*, float*, float* out) {
    const float weight = columns[2 * count];
    for (int64_t x = 0; x < out_w; ++x, out += channels) {
      const auto& entry = entries[x];
      const float *left = columns + entry.low * channels, *right = columns + entry.high * channels;
      for (int64_t c = 0; c < channels; ++c) {
        const float top = left[c] + (right[c] - left[c]) * entry.weight;
        const float bottom = left[count + c] + (right[count + c] - left[count + c]) * entry.weight;
        out[c] = top + (bottom - top) * weight;
      }
    }
  }
};

template <class Stored, class Total, class Rule>
class Bilinear final : public Kernel {
 public:
  explicit Bilinear(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require_same_type(in, out);
    require(in.rank() == 4 && out.rank() == 4 && in.shape[0] == out.shape[0] && in.shape[3] == out.shape[3],
            "the shapes do not fit");
    require(in.dense() && out.dense(), "both sides must be dense");
    images_ = out.elements == 0 ? 0 : in.shape[0];
    in_h_ = in.shape[1], in_w_ = in.shape[2], out_h_ = out.shape[1], out_w_ = out.shape[2], channels_ = in.shape[3];
    rows_ = read_positions<typename Rule::Weight>(step, "y", in_h_, out_h_, Rule::kLeast, Rule::kMost);
    columns_ = read_positions<typename Rule::Weight>(step, "x", in_w_, out_w_, Rule::kLeast, Rule::kMost);
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const Stored*>(run.inputs[0]);
    auto* out = reinterpret_cast<Stored*>(run.outputs[0]);
    const int64_t width = in_w_ * channels_, rows = images_ * out_h_;
    each_row(run.pool, rows, out_w_ * channels_, [&](int64_t begin, int64_t end, int worker) {
      uint8_t* scratch = run.scratch + worker * worker_bytes();
      auto* columns = reinterpret_cast<typename Rule::Column*>(scratch);
      auto* total = reinterpret_cast<Total*>(scratch + column_bytes());
      for (int64_t r = begin; r < end; ++r) {
        const auto& entry = rows_.entries[r % out_h_];
        const Stored* image = in + r / out_h_ * in_h_ * width;
        Rule::vertical(image + entry.low * width, image + entry.high * width, entry.weight, columns, width);
        Rule::horizontal(columns, width, columns_.entries.data(), out_w_, channels_, total, total + channels_,
                         out + r * out_w_ * channels_);
      }
    });
  }
  std::string note() const override { return "separable"; }

 private:
  int64_t column_bytes() const {
    return round_up(in_w_ * channels_ * Rule::kColumns * static_cast<int64_t>(sizeof(typename Rule::Column)), 64);
  }
  int64_t worker_bytes() const {
    return column_bytes() + round_up(2 * channels_ * static_cast<int64_t>(sizeof(Total)), 64);
  }

  int64_t images_, in_h_, in_w_, out_h_, out_w_, channels_;
  Positions<typename Rule::Weight> rows_, columns_;
};

// Quantized values that binary32 or 8 bits hold, any number of them behind both axes: binary32_differences of what they are,
// or of the real numbers that they stand for, then stored by the slot `levels`.
class LevelBilinear final : public Kernel {
 public:
  explicit LevelBilinear(const Step& step)
      : load_(step.input(0)),
        store_(step),
        in_bytes_(type_bytes(step.input(0).type)),
        out_bytes_(type_bytes(step.output().type)) {
    const Operand &in = step.input(0), &out = step.output();
    const std::string& rule = step.rule("interpolate");
    require(rule == "binary32_differences_unlimited" || rule == "binary32_differences", "no native rule for this slot");
    const auto first = static_cast<size_t>(step.integer("first_axis", 0, in.rank() - 2));
    require(in.rank() == out.rank() && in.dense() && out.dense(), "the shapes do not fit");
    images_ = out.elements == 0 ? 0 : 1;
    for (size_t i = 0; i < in.shape.size(); ++i) {
      if (i == first || i == first + 1) continue;
      require(in.shape[i] == out.shape[i], "the shapes do not fit");
      (i < first ? images_ : inner_) *= in.shape[i];
    }
    in_h_ = in.shape[first], in_w_ = in.shape[first + 1], out_h_ = out.shape[first], out_w_ = out.shape[first + 1];
    constexpr float kFar = 1e9f;
    rows_ = read_positions<float>(step, "y", in_h_, out_h_, -kFar, kFar);
    columns_ = read_positions<float>(step, "x", in_w_, out_w_, -kFar, kFar);
    if (step.rules.count("levels") == 0) return;
    levels_ = std::make_unique<rules::Levels>(levels_of(step));
    if (levels_->rule != rules::Levels::Rule::whole) {
      real_ = std::make_unique<rules::RealLevels>(real_levels_of(step, "input"));
    }
  }

  int64_t scratch_bytes(int threads) const override { return threads * worker_bytes(); }
  std::string note() const override { return "separable"; }

  void run(const Run& run) const override {
    const int64_t width = in_w_ * inner_, out_width = out_w_ * inner_;
    std::atomic<bool> defined{true};
    run.pool.parallel(images_ * out_h_, [&](int64_t task, int worker) {
      auto* top = reinterpret_cast<float*>(run.scratch + worker * worker_bytes());
      float *bottom = top + width, *out = bottom + width;
      const auto& entry = rows_.entries[task % out_h_];
      const uint8_t* image = run.inputs[0] + task / out_h_ * in_h_ * width * in_bytes_;
      const float *low = row(image, entry.low, top), *high = row(image, entry.high, bottom);
      blend(low, high, entry.weight, out);
      if (levels_ != nullptr) levels_->apply(out, out_width);
      bool all = store_.store(out, run.outputs[0] + task * out_width * out_bytes_, out_width);
      // Which of several NaN stays is the reference's to tell.
      for (int64_t i = 0; i < out_width; ++i) all &= out[i] == out[i];
      if (!all) defined.store(false, std::memory_order_relaxed);
    });
    if (!defined.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  int64_t worker_bytes() const { return round_up((2 * in_w_ + out_w_) * inner_ * 4, 64); }

  const float* row(const uint8_t* image, int64_t y, float* buffer) const {
    const int64_t width = in_w_ * inner_;
    const float* loaded = load_.load(image + y * width * in_bytes_, buffer, width);
    if (real_ == nullptr) return loaded;
    if (loaded != buffer) std::copy_n(loaded, width, buffer);
    real_->apply(buffer, width);
    return buffer;
  }

  void blend(const float* low, const float* high, float weight, float* out) const {
    const int64_t inner = inner_;
    for (const auto& entry : columns_.entries) {
      const int64_t left = entry.low * inner, right = entry.high * inner;
      for (int64_t c = 0; c < inner; ++c) {
        const float top = low[left + c] + (low[right + c] - low[left + c]) * entry.weight;
        const float bottom = high[left + c] + (high[right + c] - high[left + c]) * entry.weight;
        *out++ = top + (bottom - top) * weight;
      }
    }
  }

  LevelLoad load_;
  LevelStore store_;
  int64_t in_bytes_, out_bytes_;
  int64_t images_ = 1, inner_ = 1, in_h_ = 0, in_w_ = 0, out_h_ = 0, out_w_ = 0;
  Positions<float> rows_, columns_;
  std::unique_ptr<rules::Levels> levels_;
  std::unique_ptr<rules::RealLevels> real_;
};

template <bool kAway>
std::unique_ptr<Kernel> make_ten_bits(const Step& step) {
  const Type type = step.input(0).type;
  if (is_8bit(type)) return make_exact_resize(step, 1 << 10, kAway && type == Type::s8);
  if (type != Type::s16) return nullptr;
  return std::make_unique<Bilinear<int16_t, int64_t, FixedPoint<kAway>>>(step);
}

std::unique_ptr<Kernel> make_resize_linear(const Step& step, const CoreSet& cores) {
  if (step.rules.count("weighted")) return make_weighted_resize(step, cores);
  if (step.texts.count("dtype") != 0) return std::make_unique<LevelBilinear>(step);
  require(step.integer("first_axis") == 1, "channels are not last");
  const std::string& rule = step.rule("interpolate");
  const Type type = step.input(0).type;
  if (rule == "ten_bits_half_away") return make_ten_bits<true>(step);
  if (rule == "ten_bits_half_up") return make_ten_bits<false>(step);
  if (rule == "eleven_bits_half_up" && is_8bit(type)) return make_exact_resize(step, 1 << 11, false);
  // Of bytes, all rules in binary32 round sums of four products.
  if (type == Type::u8 && rule.compare(0, 8, "binary32") == 0) {
    auto kernel = make_exact_resize(step, 0, false);
    if (kernel != nullptr) return kernel;
  }
  if (rule == "binary32_products_half_up" && type == Type::u8) {
    return std::make_unique<Bilinear<uint8_t, float, WeightedSums<uint8_t>>>(step);
  }
  if (rule == "binary32_weights_half_up" && type == Type::u8) {
    return std::make_unique<Bilinear<uint8_t, float, Weights<uint8_t>>>(step);
  }
  if (rule == "binary32_weights" && type == Type::f32) {
    return std::make_unique<Bilinear<float, float, Weights<float>>>(step);
  }
  if (rule == "binary32_differences" && type == Type::f32) {
    return std::make_unique<Bilinear<float, float, Differences>>(step);
  }
  if (rule == "binary32_fused_products_half_up" && type == Type::u8) {
    return std::make_unique<Bilinear<uint8_t, float, WeightedSums<uint8_t, true>>>(step);
  }
  if (rule == "binary32_fused_weights_half_up" && type == Type::u8) {
    return std::make_unique<Bilinear<uint8_t, float, Weights<uint8_t, true>>>(step);
  }
  if (rule == "binary32_fused_weights" && type == Type::f32) {
    return std::make_unique<Bilinear<float, float, Weights<float, true>>>(step);
  }
  if (rule == "binary32_fused_products" && type == Type::f32) {
    return std::make_unique<Bilinear<float, float, WeightedSums<float, true>>>(step);
  }
  if (rule == "binary32_products" && type == Type::f32) {
    return std::make_unique<Bilinear<float, float, WeightedSums<float>>>(step);
  }
  return nullptr;
}

BITTRUE_OPERATOR(resize_linear, make_resize_linear)

}  // namespace
}  // namespace bittrue

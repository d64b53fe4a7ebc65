// mean and sum: exact sums along axes, rescaled and stored; in binary32 in row-major order.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "operators/core/registry.h"
#include "operators/core/rescaling.h"
#include "operators/reduction/four_lanes.h"
#include "operators/reduction/reduce.h"
#include "rules/mean.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

// Sums modulo 2^32 minus the zero points: what a 32-bit accumulator that wraps holds.
class SumBytes final : public Kernel {
 public:
  SumBytes(const Step& step, const CoreSet& cores, const Rescaling& rescale)
      : reduction_(step), sum_rows_(cores.sum_rows()), requantize_rows_(cores.requantize_rows()) {
    requantize_ = requantization(step, rescale, step.bounded ? step.magnitude : std::numeric_limits<int64_t>::max());
    zero_point_ = static_cast<uint32_t>(step.integer("total_zero_point")) +
                  static_cast<uint32_t>(flip_of(step.input(0).type) * reduction_.count());
  }

  void run(const Run& run) const override {
    reduction_.run_byte_sums(run, sum_rows_, [&](uint32_t* acc, int64_t first, int64_t size) {
      for (int64_t i = 0; i < size; ++i) acc[i] -= zero_point_;
      requantize_rows_(requantize_, reinterpret_cast<const int32_t*>(acc), 1, run.outputs[0] + first, size);
    });
  }
  int64_t scratch_bytes(int threads) const override { return reduction_.scratch_bytes(threads); }
  std::string note() const override { return "sum of rows"; }

 private:
  Reduction reduction_;
  SumRows sum_rows_;
  RequantizeRows requantize_rows_;
  rules::Requantize requantize_;
  uint32_t zero_point_ = 0;
};

// Means over images: vectors of channels round otherwise than the scalars behind them.
class LaneMean final : public Kernel {
 public:
  LaneMean(const Step& step, const CoreSet& cores)
      : reduction_(step),
        body_(rescaling(step, "q31_two_step_up_up", "")),
        tail_(rescaling(step, "q31_two_step_up_away", "")),
        store_(storing(step)),
        sum_rows_(cores.sum_rows()),
        flip_(flip_of(step.output().type)) {
    require(is_8bit(step.input(0).type) && is_8bit(step.output().type), "operands are not 8-bit");
    require(step.integer("total_zero_point", 0, 0) == 0 && store_.zero_point == 0, "zero points belong to the bias");
    require(step.array("bias").count == 1, "there must be one bias");
    bias_ = step.array("bias").integer(0);
    require(bias_ >= std::numeric_limits<int32_t>::min() && bias_ <= std::numeric_limits<int32_t>::max(),
            "the bias is out of range");
    channels_ = step.output().shape.empty() ? 1 : std::max<int64_t>(1, step.output().shape.back());
    split_ = step.integer("body", 0, channels_);
    moved_ = static_cast<uint32_t>(flip_of(step.input(0).type) * reduction_.count());
  }

  void run(const Run& run) const override {
    reduction_.run_byte_sums(run, sum_rows_, [&](uint32_t* acc, int64_t first, int64_t size) {
      for (int64_t i = 0; i < size; ++i) {
        const int64_t total = static_cast<int32_t>(acc[i] - moved_);
        const int64_t rescaled = (first + i) % channels_ < split_ ? body_(total) : tail_(total);
        run.outputs[0][first + i] = static_cast<uint8_t>(store_(arithmetic::wrap_s32(rescaled + bias_)) + flip_);
      }
    });
  }
  int64_t scratch_bytes(int threads) const override { return reduction_.scratch_bytes(threads); }

 private:
  Reduction reduction_;
  Rescaling body_, tail_;
  Storing store_;
  SumRows sum_rows_;
  int flip_;
  int64_t bias_ = 0, channels_ = 1, split_ = 0;
  uint32_t moved_ = 0;
};

// Sums of stored integers, zero points and all, and one binary32 line from there to the output.
class AffineBytes final : public Kernel {
 public:
  explicit AffineBytes(const Step& step, const CoreSet& cores)
      : reduction_(step),
        store_(storing(step)),
        sum_rows_(cores.sum_rows()),
        flip_(flip_of(step.output().type)),
        fused_(step.rule("mean") == "binary32_fused_affine_even") {
    require(is_8bit(step.input(0).type) && is_8bit(step.output().type), "operands are not 8-bit");
    require(step.integer("total_zero_point", 0, 0) == 0 && store_.zero_point == 0, "zero points belong to the line");
    require(step.array("factor").count == 1 && step.array("offset").count == 1, "there must be one line");
    factor_ = static_cast<float>(step.array("factor").real(0));
    offset_ = static_cast<float>(step.array("offset").real(0));
    moved_ = static_cast<uint32_t>(flip_of(step.input(0).type) * reduction_.count());
  }

  void run(const Run& run) const override {
    reduction_.run_byte_sums(run, sum_rows_, [&](uint32_t* acc, int64_t first, int64_t size) {
      for (int64_t i = 0; i < size; ++i) {
        const auto total = static_cast<int32_t>(acc[i] - moved_);
        const int64_t stored = store_(rules::binary32_affine_even(total, factor_, offset_, fused_));
        run.outputs[0][first + i] = static_cast<uint8_t>(stored + flip_);
      }
    });
  }
  int64_t scratch_bytes(int threads) const override { return reduction_.scratch_bytes(threads); }

 private:
  Reduction reduction_;
  Storing store_;
  SumRows sum_rows_;
  int flip_;
  bool fused_;
  float factor_ = 0, offset_ = 0;
  uint32_t moved_ = 0;
};

// The same of s8 values with s16_pairs_in_32_lanes: neighbours are added up in lanes of 16 bits.
class LaneSums final : public Kernel {
 public:
  explicit LaneSums(const Step& step)
      : reduction_(step),
        store_(storing(step)),
        length_(neighbours(step)),
        flip_(flip_of(step.output().type)),
        fused_(step.rule("mean") == "binary32_fused_affine_even") {
    require(step.input(0).type == Type::s8 && step.output().type == Type::s8, "operands are not s8");
    require(step.integer("total_zero_point", 0, 0) == 0 && store_.zero_point == 0, "zero points belong to the line");
    require(step.array("factor").count == 1 && step.array("offset").count == 1, "there must be one line");
    factor_ = static_cast<float>(step.array("factor").real(0));
    offset_ = static_cast<float>(step.array("offset").real(0));
  }

  void run(const Run& run) const override {
    const auto add = [&](uint32_t total, const uint8_t* row) { return total + sum(row, length_); };
    reduction_.run_parts<uint8_t>(run, length_, uint32_t{0}, add, [&](int64_t output, uint32_t total) {
      const int64_t stored = store_(rules::binary32_affine_even(static_cast<int32_t>(total), factor_, offset_, fused_));
      run.outputs[0][output] = static_cast<uint8_t>(stored + flip_);
    });
  }

 private:
  static constexpr int64_t kValues = 1 << 14;

  // One sum of lanes of 16 bits: pairs of neighbours, `lanes` of them in turn.
  static uint32_t piece(const uint8_t* x, int64_t length, int64_t lanes) {
    int32_t sums[64] = {};
    const int64_t wide = 2 * lanes;
    int64_t i = 0;
    for (; i + wide <= length; i += wide) {
      for (int64_t k = 0; k < wide; ++k) sums[k] += x[i + k] - 128;
    }
    for (int64_t k = 0; i < length; ++i, ++k) sums[k] += x[i] - 128;
    int32_t total = 0;
    for (int64_t k = 0; k < wide; k += 2) {
      total += static_cast<int16_t>(static_cast<uint16_t>(sums[k] + sums[k + 1]));
    }
    return static_cast<uint32_t>(total);
  }

  static uint32_t sum(const uint8_t* x, int64_t length) {
    uint32_t total = 0;
    const int64_t whole = length - length % 64;
    for (int64_t i = 0; i < whole; i += kValues) {
      total += piece(x + i, std::min(kValues, whole - i), 32);
    }
    return total + piece(x + whole, length - whole, 16);
  }

  Reduction reduction_;
  Storing store_;
  int64_t length_;
  int flip_;
  bool fused_;
  float factor_ = 0, offset_ = 0;
};

// Sums of stored integers, zero points and all, divided by the count toward zero; the quotient is then requantized as
// any stored integer is.
template <class T>
class QuotientThenRequantize final : public Kernel {
 public:
  QuotientThenRequantize(const Step& step, const CoreSet& cores, int64_t count)
      : reduction_(step),
        sum_rows_(cores.sum_rows()),
        count_(count),
        zero_point_(step.integer("input_zero_point", -kLargestZeroPoint, kLargestZeroPoint)) {
    require(step.integer("total_zero_point", 0, 0) == 0, "a zero point is out of range");
    require(count <= std::numeric_limits<int32_t>::max(), "the count is out of range");
    requantize_ = requantization(step, any_rescaling(step, step.rule("rescale"), ""), int64_t{1} << 32);
    moved_ = static_cast<uint32_t>(flip_of(step.input(0).type) * reduction_.count());
  }

  void run(const Run& run) const override {
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    const auto finish = [&](const uint32_t* acc, int64_t first, int64_t size) {
      for (int64_t i = 0; i < size; ++i) {
        const int64_t quotient = rules::integer_trunc(int64_t{static_cast<int32_t>(acc[i] - moved_)}, count_);
        out[first + i] = static_cast<T>(rules::requantize(requantize_, quotient - zero_point_, 0));
      }
    };
    if constexpr (sizeof(T) == 1) {
      reduction_.run_byte_sums(run, sum_rows_, finish);
    } else {
      reduction_.template run<T, uint32_t>(run, Reduction::Sum(), false, finish);
    }
  }
  int64_t scratch_bytes(int threads) const override { return reduction_.scratch_bytes(threads); }

 private:
  Reduction reduction_;
  SumRows sum_rows_;
  rules::Requantize requantize_;
  int64_t count_, zero_point_;
  uint32_t moved_ = 0;
};

class SumShorts final : public Kernel {
 public:
  SumShorts(const Step& step, const Rescaling& rescale)
      : reduction_(step),
        rescale_(rescale),
        store_(storing(step)),
        zero_point_(static_cast<uint32_t>(step.integer("total_zero_point"))) {}

  void run(const Run& run) const override {
    auto* out = reinterpret_cast<int16_t*>(run.outputs[0]);
    const auto finish = [&](const uint32_t* acc, int64_t first, int64_t size) {
      for (int64_t i = 0; i < size; ++i) {
        const int64_t total = static_cast<int32_t>(acc[i] - zero_point_);
        out[first + i] = static_cast<int16_t>(store_(rescale_(total)));
      }
    };
    reduction_.run<int16_t, uint32_t>(run, Reduction::Sum(), false, finish);
  }
  int64_t scratch_bytes(int threads) const override { return reduction_.scratch_bytes(threads); }

 private:
  Reduction reduction_;
  Rescaling rescale_;
  Storing store_;
  uint32_t zero_point_;
};

// Both wrap modulo 2^64; the result keeps the low bits.
template <class T>
class SumPlain final : public Kernel {
 public:
  // `count` 0: the sum itself.
  SumPlain(const Step& step, int64_t count) : reduction_(step), count_(count) {}

  void run(const Run& run) const override {
    struct Sum {
      uint64_t start = 0;
      uint64_t operator()(uint64_t a, uint64_t b) const { return a + b; }
    };
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    reduction_.run<T, uint64_t>(run, Sum(), false, [&](const uint64_t* acc, int64_t first, int64_t size) {
      for (int64_t i = 0; i < size; ++i) {
        const auto total = static_cast<int64_t>(acc[i]);
        out[first + i] = static_cast<T>(count_ ? rules::integer_trunc(total, count_) : total);
      }
    });
  }
  int64_t scratch_bytes(int threads) const override { return reduction_.scratch_bytes(threads); }

 private:
  Reduction reduction_;
  int64_t count_;
};

// In row-major order. A sum of everything begins with the first element, which differs for a negative zero.
class SumReal final : public Kernel {
 public:
  SumReal(const Step& step, float count)
      : reduction_(step), count_(count), named_(step.rules.count("start") != 0), first_(named_ || reduction_.whole()) {
    require(!named_ || step.rule("start") == "first_element", "no native rule for this slot");
  }

  void run(const Run& run) const override {
    struct Sum {
      float start = 0.0f;
      float operator()(float a, float b) const { return rules::keep_first_nan(a + b, a, b); }
    };
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    reduction_.run<float, float>(run, Sum(), first_, [&](const float* acc, int64_t first, int64_t size) {
      // No negative zero is divided, unless the plan says what sums begin with.
      const float zero = named_ ? -0.0f : 0.0f;
      for (int64_t i = 0; i < size; ++i) out[first + i] = count_ > 0 ? (acc[i] + zero) / count_ : acc[i];
    });
  }
  int64_t scratch_bytes(int threads) const override { return reduction_.scratch_bytes(threads); }

 private:
  Reduction reduction_;
  float count_;  // 0: the sum itself
  bool named_, first_;
};

// Which of several NaNs a sum keeps depends on the order inside of vectors; the reference has one.
void leave_nan_to_the_reference(const float* out, int64_t count) {
  bool nan = false;
  for (int64_t i = 0; i < count; ++i) nan |= out[i] != out[i];
  if (nan) throw Undefined();
}

// Rows of neighbours, summed in two vectors of four lanes from the first 16-byte boundary on.
class RowMeans final : public Kernel {
 public:
  RowMeans(const Step& step, float count) : reduction_(step), count_(count) {
    const std::string& order = step.rule("order");
    neighbours_ = order == "four_lanes_twice_by_neighbours";
    require((neighbours_ || order == "four_lanes_twice") && reduction_.rows(), "no native rule for this slot");
    outputs_ = step.output().elements;
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const int64_t length = reduction_.count();
    const auto sum = neighbours_ ? sum_in_four_lanes<true> : sum_in_four_lanes<false>;
    const auto one = [&](int64_t row, int) {
      out[row] = sum(in + row * length, length, (4 - row * length % 4) % 4) / count_;
    };
    if (outputs_ * length < 100000) {
      for (int64_t row = 0; row < outputs_; ++row) one(row, 0);
    } else {
      run.pool.parallel(outputs_, one);
    }
    leave_nan_to_the_reference(out, outputs_);
  }

 private:
  Reduction reduction_;
  int64_t outputs_ = 0;
  float count_;
  bool neighbours_ = false;
};

// parts_in_16_lanes, parts_in_8_lanes, parts_in_4_lanes: neighbouring reduced axes are one, and so are kept ones; for every index of all reduced ones but
// the last there is a part, which is scaled and added to the result.
class PartSums final : public Kernel {
 public:
  PartSums(const Step& step, float factor) : factor_(factor) {
    const Operand &in = step.input(0), &out = step.output();
    eight_ = step.rule("order") == "parts_in_8_lanes";
    four_ = step.rule("order") == "parts_in_4_lanes";
    require(eight_ || four_ || step.rule("order") == "parts_in_16_lanes", "no native rule for this slot");
    require(in.type == Type::f32 && out.type == Type::f32 && in.dense() && out.dense() && in.elements > 0,
            "no native kernel for these operands");
    std::vector<bool> reduced(in.rank(), false);
    for (int64_t axis : step.list("axes")) {
      require(axis >= 0 && axis < static_cast<int64_t>(in.rank()), "an axis is out of range");
      reduced[axis] = true;
    }
    int64_t stride = in.elements;
    std::vector<Axis> axes;
    for (int i = 0; i < in.rank(); ++i) {
      stride /= in.shape[i];
      if (!axes.empty() && axes.back().reduced == reduced[i]) {
        axes.back().dimension *= in.shape[i];
        axes.back().stride = stride;
      } else {
        axes.push_back({in.shape[i], stride, reduced[i]});
      }
    }
    for (const Axis& axis : axes) (axis.reduced ? reduced_ : kept_).push_back(axis);
    require(!reduced_.empty(), "no axis is reduced");
    last_ = reduced_.back();
    reduced_.pop_back();
    rows_ = axes.back().reduced;
    if (!rows_) kept_.pop_back();
    channels_ = last_.stride;
    outputs_ = product(kept_);
    parts_ = product(reduced_);
    require(outputs_ * channels_ == out.elements, "axes and shapes do not fit");
  }
  int64_t scratch_bytes(int threads) const override { return threads * per_worker(); }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const auto one = [&](int64_t index, int worker) {
      const float* base = in + offset(kept_, index);
      float* result = out + index * channels_;
      std::fill(result, result + channels_, 0.0f);
      auto* total = reinterpret_cast<float*>(run.scratch + worker * per_worker());
      for (int64_t part = 0; part < parts_; ++part) {
        const float* source = base + offset(reduced_, part);
        if (rows_) {
          if (eight_) {
            *result += row_sum<8, 4>(source, last_.dimension) * factor_;
          } else {
            const float sum = four_ ? sum_in_fours(source, last_.dimension) : row_sum<16, 2>(source, last_.dimension);
            *result = std::fma(sum, factor_, *result);
          }
          continue;
        }
        std::fill(total, total + channels_, 0.0f);
        for (int64_t r = 0; r < last_.dimension; ++r) {
          const float* row = source + r * last_.stride;
          for (int64_t c = 0; c < channels_; ++c) total[c] += row[c];
        }
        for (int64_t c = 0; c < channels_; ++c) result[c] += total[c] * factor_;
      }
    };
    run.pool.parallel(outputs_, outputs_ * channels_ * parts_ * last_.dimension < 100000 ? 1 : run.pool.threads(), one);
    leave_nan_to_the_reference(out, outputs_ * channels_);
  }

 private:
  struct Axis {
    int64_t dimension, stride;
    bool reduced;
  };

  int64_t per_worker() const { return (channels_ * 4 + 63) / 64 * 64; }

  static int64_t product(const std::vector<Axis>& axes) {
    int64_t result = 1;
    for (const Axis& axis : axes) result *= axis.dimension;
    return result;
  }

  static int64_t offset(const std::vector<Axis>& axes, int64_t index) {
    int64_t result = 0;
    for (size_t i = axes.size(); i-- > 0;) {
      result += index % axes[i].dimension * axes[i].stride;
      index /= axes[i].dimension;
    }
    return result;
  }

  template <int64_t kLanes, int64_t kSets>
  static float row_sum(const float* x, int64_t length) {
    float lanes[kSets * kLanes] = {};
    const int64_t whole = length - length % kLanes;
    int64_t i = 0;
    for (; i + kSets * kLanes <= whole; i += kSets * kLanes) {
      for (int64_t lane = 0; lane < kSets * kLanes; ++lane) lanes[lane] += x[i + lane];
    }
    for (int64_t lane = 0; i < whole; ++i, ++lane) lanes[lane] += x[i];
    const auto fold = [&](int64_t half) {
      for (int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    };
    for (int64_t half = kSets * kLanes / 2; half >= kLanes; half /= 2) fold(half);
    for (; i < length; ++i) lanes[i - whole] += x[i];
    for (int64_t half = kLanes / 2; half > 0; half /= 2) fold(half);
    return lanes[0];
  }

  // Of what is left, a pair goes to two lanes, and a single number to their sum.
  static float sum_in_fours(const float* x, int64_t length) {
    float lanes[16] = {};
    int64_t i = 0;
    for (; i + 16 <= length; i += 16) {
      for (int64_t lane = 0; lane < 16; ++lane) lanes[lane] += x[i + lane];
    }
    for (int64_t lane = 0; i < length / 4 * 4; ++i, ++lane) lanes[lane] += x[i];
    for (int64_t half = 8; half > 0; half /= 2) {
      for (int64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
      if (half > 2 || (length & half) == 0) continue;
      for (int64_t lane = 0; lane < half; ++lane) lanes[lane] += x[i++];
    }
    return lanes[0];
  }

  float factor_;
  std::vector<Axis> kept_, reduced_;  // without the innermost kept axis, and without the last reduced one
  Axis last_{1, 1, true};
  int64_t channels_ = 1, outputs_ = 1, parts_ = 1;
  bool rows_ = true;  // what is summed lies side by side
  bool eight_ = false, four_ = false;
};

std::unique_ptr<Kernel> make_quantized(const Step& step, const CoreSet& cores, const Rescaling& rescale) {
  require(step.rule("accumulate") == "s32_wrap", "no native accumulator of this width");
  const Type type = step.input(0).type;
  if (is_8bit(type)) return std::make_unique<SumBytes>(step, cores, rescale);
  if (type == Type::s16) return std::make_unique<SumShorts>(step, rescale);
  return nullptr;
}

bool is_affine(const std::string& rule) {
  return rule == "binary32_affine_even" || rule == "binary32_fused_affine_even";
}

std::unique_ptr<Kernel> make_affine(const Step& step, const CoreSet& cores) {
  require(step.rule("accumulate") == "s32_wrap", "no native accumulator of this width");
  if (step.rules.count("row_sums") == 0) return std::make_unique<AffineBytes>(step, cores);
  require(step.rule("row_sums") == "s16_pairs_in_32_lanes", "no native rule for this slot");
  return std::make_unique<LaneSums>(step);
}

int64_t count_of(const Step& step) {
  const Array& count = step.array("count");
  require(count.count == 1 && count.integer(0) >= 1, "the count is out of range");
  return count.integer(0);
}

std::unique_ptr<Kernel> make_mean(const Step& step, const CoreSet& cores) {
  const Type type = step.input(0).type;
  if (type != step.output().type) return nullptr;
  if (step.rules.count("real_sum")) return make_real_sum(step, cores);
  const std::string& rule = step.rule("mean");
  if (step.rules.count("lanes")) {
    require(rule == "binary32_real_two_step_up_up" && step.rule("mean_tail") == "binary32_real_two_step_up_away" &&
                step.rule("accumulate") == "s32_wrap",
            "no native rule for this slot");
    return std::make_unique<LaneMean>(step, cores);
  }
  for (const rules::MeanRow& row : rules::kMean) {
    if (rule == row.name && step.rules.count("store")) {
      return make_quantized(step, cores, rescaling(step, row.rescale, ""));
    }
  }
  if (is_affine(rule)) return make_affine(step, cores);
  if (rule == "binary32_reciprocal" && step.rules.count("order")) {
    const Array& factor = step.array("factor");
    require(factor.count == 1, "there must be one factor");
    return std::make_unique<PartSums>(step, static_cast<float>(factor.real(0)));
  }
  if (rule == "integer_trunc" && step.rules.count("rescale")) {
    require(step.rule("accumulate") == "s32_wrap", "no native accumulator of this width");
    if (is_8bit(type)) return std::make_unique<QuotientThenRequantize<uint8_t>>(step, cores, count_of(step));
    if (type == Type::s16) return std::make_unique<QuotientThenRequantize<int16_t>>(step, cores, count_of(step));
    return nullptr;
  }
  if (rule == "integer_trunc") {
    if (type == Type::s32) return std::make_unique<SumPlain<int32_t>>(step, count_of(step));
    if (type == Type::s64) return std::make_unique<SumPlain<int64_t>>(step, count_of(step));
  }
  if (rule == "binary32_divide" && type == Type::f32) {
    if (step.rules.count("order")) return std::make_unique<RowMeans>(step, static_cast<float>(count_of(step)));
    return std::make_unique<SumReal>(step, static_cast<float>(count_of(step)));
  }
  return nullptr;
}

std::unique_ptr<Kernel> make_sum(const Step& step, const CoreSet& cores) {
  const Type type = step.input(0).type;
  if (type != step.output().type || step.rules.count("read_as")) return nullptr;
  if (step.rules.count("real_sum")) return make_real_sum(step, cores);
  if (step.rules.count("mean")) {
    return is_affine(step.rule("mean")) ? make_affine(step, cores) : nullptr;
  }
  if (step.rules.count("rescale")) return make_quantized(step, cores, rescaling(step));
  if (type == Type::s32) return std::make_unique<SumPlain<int32_t>>(step, 0);
  if (type == Type::s64) return std::make_unique<SumPlain<int64_t>>(step, 0);
  if (type == Type::f32 && step.rules.count("order")) return std::make_unique<PartSums>(step, 1.0f);
  if (type == Type::f32) return std::make_unique<SumReal>(step, 0.0f);
  return nullptr;
}

BITTRUE_OPERATOR(mean, make_mean)
BITTRUE_OPERATOR(sum, make_sum)

}  // namespace
}  // namespace bittrue

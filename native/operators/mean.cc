// mean and sum: exact sums along axes, rescaled and stored; in binary32 in row-major order.
#include <cmath>
#include <limits>

#include "operators/reduce.h"
#include "operators/rescaling.h"
#include "rules/mean.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

// Sums modulo 2^32 minus the zero points: what a 32-bit accumulator that wraps holds.
class SumBytes final : public Kernel {
 public:
  SumBytes(const Step& step, const CoreSet& cores, const Rescaling& rescale)
      : reduction_(step), sum_rows_(cores.sum_rows()), requantize_row_(cores.requantize_row()) {
    requantize_ = requantization(step, rescale, step.bounded ? step.magnitude : std::numeric_limits<int64_t>::max());
    zero_point_ = static_cast<uint32_t>(step.integer("total_zero_point")) +
                  static_cast<uint32_t>(flip_of(step.input(0).type) * reduction_.count());
  }

  void run(const Run& run) const override {
    reduction_.run_byte_sums(run, sum_rows_, [&](uint32_t* acc, int64_t first, int64_t size) {
      for (int64_t i = 0; i < size; ++i) acc[i] -= zero_point_;
      requantize_row_(requantize_, reinterpret_cast<const int32_t*>(acc), run.outputs[0] + first, size);
    });
  }
  int64_t scratch_bytes(int threads) const override { return reduction_.scratch_bytes(threads); }
  std::string note() const override { return "sum of rows"; }

 private:
  Reduction reduction_;
  SumRows sum_rows_;
  RequantizeRow requantize_row_;
  rules::Requantize requantize_;
  uint32_t zero_point_ = 0;
};

// Sums of stored integers, zero points and all, and one binary32 line from there to the output.
class AffineBytes final : public Kernel {
 public:
  explicit AffineBytes(const Step& step, const CoreSet& cores)
      : reduction_(step), store_(storing(step)), sum_rows_(cores.sum_rows()), flip_(flip_of(step.output().type)) {
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
        const int64_t stored = store_(rules::binary32_affine_even(total, factor_, offset_));
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
  float factor_ = 0, offset_ = 0;
  uint32_t moved_ = 0;
};

class SumShorts final : public Kernel {
 public:
  SumShorts(const Step& step, const Rescaling& rescale)
      : reduction_(step), rescale_(rescale), store_(storing(step)),
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
  SumReal(const Step& step, float count) : reduction_(step), count_(count) {}

  void run(const Run& run) const override {
    struct Sum {
      float start = 0.0f;
      float operator()(float a, float b) const { return rules::keep_first_nan(a + b, a, b); }
    };
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    reduction_.run<float, float>(run, Sum(), reduction_.whole(), [&](const float* acc, int64_t first, int64_t size) {
      // No negative zero is divided.
      for (int64_t i = 0; i < size; ++i) out[first + i] = count_ > 0 ? (acc[i] + 0.0f) / count_ : acc[i];
    });
  }
  int64_t scratch_bytes(int threads) const override { return reduction_.scratch_bytes(threads); }

 private:
  Reduction reduction_;
  float count_;  // 0: the sum itself
};

std::unique_ptr<Kernel> make_quantized(const Step& step, const CoreSet& cores, const Rescaling& rescale) {
  require(step.rule("accumulate") == "s32_wrap", "no native accumulator of this width");
  const Type type = step.input(0).type;
  if (is_8bit(type)) return std::make_unique<SumBytes>(step, cores, rescale);
  if (type == Type::s16) return std::make_unique<SumShorts>(step, rescale);
  return nullptr;
}

std::unique_ptr<Kernel> make_affine(const Step& step, const CoreSet& cores) {
  require(step.rule("accumulate") == "s32_wrap", "no native accumulator of this width");
  return std::make_unique<AffineBytes>(step, cores);
}

int64_t count_of(const Step& step) {
  const Array& count = step.array("count");
  require(count.count == 1 && count.integer(0) >= 1, "the count is out of range");
  return count.integer(0);
}

}  // namespace

std::unique_ptr<Kernel> make_mean(const Step& step, const CoreSet& cores) {
  const Type type = step.input(0).type;
  if (type != step.output().type) return nullptr;
  const std::string& rule = step.rule("mean");
  for (const rules::MeanRow& row : rules::kMean) {
    if (rule == row.name && step.rules.count("store")) {
      return make_quantized(step, cores, rescaling(step, row.rescale, ""));
    }
  }
  if (rule == "binary32_affine_even") return make_affine(step, cores);
  if (rule == "integer_trunc") {
    if (type == Type::s32) return std::make_unique<SumPlain<int32_t>>(step, count_of(step));
    if (type == Type::s64) return std::make_unique<SumPlain<int64_t>>(step, count_of(step));
  }
  if (rule == "binary32_divide" && type == Type::f32) {
    return std::make_unique<SumReal>(step, static_cast<float>(count_of(step)));
  }
  return nullptr;
}

std::unique_ptr<Kernel> make_sum(const Step& step, const CoreSet& cores) {
  const Type type = step.input(0).type;
  if (type != step.output().type) return nullptr;
  if (step.rules.count("mean")) {
    return step.rule("mean") == "binary32_affine_even" ? make_affine(step, cores) : nullptr;
  }
  if (step.rules.count("rescale")) return make_quantized(step, cores, rescaling(step));
  if (type == Type::s32) return std::make_unique<SumPlain<int32_t>>(step, 0);
  if (type == Type::s64) return std::make_unique<SumPlain<int64_t>>(step, 0);
  if (type == Type::f32) return std::make_unique<SumReal>(step, 0.0f);
  return nullptr;
}

}  // namespace bittrue

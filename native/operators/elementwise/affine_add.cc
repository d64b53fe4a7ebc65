// add, form "affine", and add_n: sums of bytes with scales of their own by the slots `affine_sum` and
// `affine_sum_of_many`; add_n of numbers.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <type_traits>
#include <vector>

#include "operators/core/lanes.h"
#include "operators/core/registry.h"
#include "operators/elementwise/add.h"
#include "rules/affine_sum.h"
#include "rules/plain_range.h"

namespace bittrue {
namespace {

constexpr int64_t kZeroPoint = 1 << 16;

void require_bytes(const Step& step) {
  const Type type = step.output().type;
  require(is_8bit(type) && !step.inputs.empty(), "operands are not 8-bit");
  for (size_t i = 0; i < step.inputs.size(); ++i) require(step.input(i).type == type, "operands are not 8-bit");
}

// One value of a scalar array.
const Array& one_number(const Step& step, const char* name) {
  const Array& array = step.array(name);
  require(array.count == 1, "one one_number is needed");
  return array;
}

// Every input as a table of its steps; a sum of them, less what they all have too much, scaled once.
class ScaledSum final : public Kernel {
 public:
  explicit ScaledSum(const Step& step) {
    require_bytes(step);
    require(step.rule("affine_sum_of_many") == "binary32_16_bits_even", "no native rule for this slot");
    const size_t count = step.inputs.size();
    const Array &factors = step.array("factors"), &zero_points = step.array("zero_points");
    require(factors.count == static_cast<int64_t>(count) && zero_points.count == factors.count && count <= 1 << 16,
            "numbers of inputs differ");
    const Operand& out = step.output();
    elements_ = out.elements;
    flip_ = flip_of(out.type);
    const int64_t middle = one_number(step, "middle_zero_point").integer(0);
    require(middle >= 0 && middle <= 65535, "a zero point is out of range");
    for (size_t i = 0; i < count; ++i) {
      const Operand& in = step.input(i);
      require(in.elements == elements_ && in.dense() && out.dense(), "all tensors must be dense and of one size");
      const int64_t zero_point = zero_points.integer(static_cast<int64_t>(i));
      const auto factor = static_cast<float>(factors.real(static_cast<int64_t>(i)));
      require(
          zero_point >= -kZeroPoint && zero_point <= kZeroPoint && std::isfinite(factor) && std::fabs(factor) < 0x1p30f,
          "a factor or a zero point is out of range");
      std::vector<int32_t> table(256);
      for (int byte = 0; byte < 256; ++byte) {
        const float steps = std::nearbyint(static_cast<float>(byte - flip_ - zero_point) * factor);
        const auto moved = static_cast<int64_t>(steps) + middle;
        table[byte] = static_cast<int32_t>(std::min<int64_t>(std::max<int64_t>(moved, 0), 65535));
      }
      tables_.push_back(std::move(table));
    }
    start_ = -middle * static_cast<int64_t>(count);
    factor_ = static_cast<float>(one_number(step, "factor").real(0));
    zero_point_ = one_number(step, "output_zero_point").integer(0);
    require(zero_point_ >= -kZeroPoint && zero_point_ <= kZeroPoint, "a zero point is out of range");
    low_ = step.integer("low", -flip_, 255 - flip_), high_ = step.integer("high", -flip_, 255 - flip_);
  }

  void run(const Run& run) const override {
    const int64_t blocks = (elements_ + kBlock - 1) / kBlock;
    const auto block = [&](int64_t index, int) {
      int64_t sums[kBlock];
      const int64_t first = index * kBlock, count = std::min(kBlock, elements_ - first);
      std::fill(sums, sums + count, start_);
      for (size_t k = 0; k < tables_.size(); ++k) {
        const uint8_t* in = run.inputs[k] + first;
        for (int64_t i = 0; i < count; ++i) sums[i] += tables_[k][in[i]];
      }
      for (int64_t i = 0; i < count; ++i) run.outputs[0][first + i] = static_cast<uint8_t>(stored(sums[i]) + flip_);
    };
    if (elements_ * static_cast<int64_t>(tables_.size()) < Blocks::kParallel) {
      for (int64_t index = 0; index < blocks; ++index) block(index, 0);
    } else {
      run.pool.parallel(blocks, block);
    }
  }

 private:
  static constexpr int64_t kBlock = 2048;

  int64_t stored(int64_t sum) const {
    const float real = std::nearbyint(static_cast<float>(sum) * factor_);
    // What does not fit 64 bits, NaN included, becomes the lowest one_number.
    if (!(std::fabs(real) < 0x1p63f)) return low_;
    const float limited = real < -0x1p40f ? -0x1p40f : real > 0x1p40f ? 0x1p40f : real;
    return std::min(std::max(static_cast<int64_t>(limited) + zero_point_, low_), high_);
  }

  std::vector<std::vector<int32_t>> tables_;
  int64_t elements_ = 0, start_ = 0, zero_point_ = 0, low_ = 0, high_ = 0;
  int flip_ = 0;
  float factor_ = 0;
};

// Real numbers that broadcast together, one operand after the other, times the reciprocal of the divisor.
template <class T>
class RealSumOfMany final : public Kernel {
 public:
  RealSumOfMany(const Step& step, const CoreSet& cores) : core_(cores.pair_loop()) {
    require(step.rule("real_sum") == (kWide ? "binary64_packets_2" : "binary32_packets_4"),
            "no native rule for this slot");
    const Operand& out = step.output();
    constexpr Type kType = kWide ? Type::f64 : Type::f32;
    require(out.type == kType && out.dense() && step.inputs.size() >= 2, "no native kernel for these operands");
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      require(step.input(i).type == kType, "no native kernel for these types");
      if (i > 0) sums_.push_back(Blocks({i == 1 ? &step.input(0) : &out, &step.input(i)}, out));
    }
    const int64_t divisor = step.integer("divisor", 1, static_cast<int64_t>(step.inputs.size()));
    factor_ = T{1} / static_cast<T>(divisor);
  }
  int64_t scratch_bytes(int threads) const override {
    int64_t most = 0;
    for (const Blocks& sum : sums_) most = std::max(most, sum.scratch_bytes(threads));
    return most;
  }

  void run(const Run& run) const override {
    std::atomic<bool> defined{true};
    for (size_t i = 0; i < sums_.size(); ++i) {
      const T factor = i + 1 == sums_.size() ? factor_ : T{1};
      uint8_t* const operands[] = {i == 0 ? run.inputs[0] : run.outputs[0], run.inputs[i + 1]};
      sums_[i].run(Run{operands, run.outputs, run.scratch, run.pool},
                   [&, factor](const uint8_t* const* in, uint8_t* out, int64_t count) {
                     if (!core_({PairLoop::sum, kWide ? PairLoop::f64 : PairLoop::f32}, in[0], in[1], out, count)) {
                       defined.store(false, std::memory_order_relaxed);
                     }
                     if (factor == 1) return;
                     auto* sum = reinterpret_cast<T*>(out);
                     for (int64_t k = 0; k < count; ++k) sum[k] *= factor;
                   });
    }
    // Which of several NaNs a sum keeps is the reference's matter.
    if (!defined.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr bool kWide = sizeof(T) == 8;

  PairLoopCore core_;
  std::vector<Blocks> sums_;
  T factor_ = 1;
};

// Numbers of one shape, one after the other, kept in a range.
template <class T>
class PlainSum final : public Kernel {
 public:
  explicit PlainSum(const Step& step)
      : inputs_(step.inputs.size()),
        elements_(step.output().elements),
        low_(static_cast<T>(step.real("low"))),
        high_(static_cast<T>(step.real("high"))) {
    constexpr Type kType = std::is_same_v<T, float> ? Type::f32 : Type::s32;
    require(step.rule("plain_range") == "type_limits" && step.output().type == kType && step.output().dense(),
            "no native kernel for these types");
    for (size_t i = 0; i < inputs_; ++i) {
      const Operand& in = step.input(i);
      require(in.type == kType && in.elements == elements_ && in.dense(), "no native kernel for these types");
    }
  }
  bool tells_nan() const override { return true; }

  void run(const Run& run) const override {
    std::atomic<bool> numbers{true};
    run.pool.parallel((elements_ + kBlock - 1) / kBlock, [&](int64_t block, int) {
      const int64_t first = block * kBlock, count = std::min(kBlock, elements_ - first);
      T* out = reinterpret_cast<T*>(run.outputs[0]) + first;
      const auto in = [&](size_t i) { return reinterpret_cast<const T*>(run.inputs[i]) + first; };
      std::copy_n(in(0), count, out);
      for (size_t i = 1; i < inputs_; ++i) add(in(i), count, out);
      uint32_t odd = 0;
      for (int64_t i = 0; i < count; ++i) odd |= out[i] != out[i];
      if (odd != 0) numbers.store(false, std::memory_order_relaxed);
    });
    // Which NaN stays is the reference's to tell.
    if (!numbers.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr int64_t kBlock = 8192;

  void add(const T* in, int64_t count, T* out) const {
    const T low = low_, high = high_;
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<T, float>) {
        out[i] = rules::clamp(out[i] + in[i], low, high);
      } else {
        out[i] = rules::clamp(static_cast<T>(static_cast<uint32_t>(out[i]) + static_cast<uint32_t>(in[i])), low, high);
      }
    }
  }

  size_t inputs_;
  int64_t elements_;
  T low_, high_;
};

}  // namespace

std::unique_ptr<Kernel> make_affine_add(const Step& step, const CoreSet& cores) {
  require_bytes(step);
  require(step.inputs.size() == 2 && step.rule("affine_sum") == "binary32_fused_reciprocal_even" &&
              step.rule("affine_sum_tail") == "binary32_fused_quotient_even",
          "no native rule for this slot");
  const Array &scales = step.array("scales"), &zero_points = step.array("zero_points");
  require(scales.count == 3 && zero_points.count == 3, "three scales and zero points are needed");
  const int flip = flip_of(step.output().type);
  rules::AffineSum sum;
  for (int i = 0; i < 3; ++i) {
    const int64_t zero_point = zero_points.integer(i);
    require(zero_point >= -kZeroPoint && zero_point <= kZeroPoint, "a zero point is out of range");
    sum.scales[i] = static_cast<float>(scales.real(i));
    sum.zero_points[i] = static_cast<int32_t>(zero_point);
  }
  sum.low = static_cast<int32_t>(step.integer("low", -flip, 255 - flip));
  sum.high = static_cast<int32_t>(step.integer("high", -flip, 255 - flip));
  const auto tail = [sum, flip](uint8_t a, uint8_t b) {
    return static_cast<uint8_t>(sum.by_quotient(a - flip, b - flip) + flip);
  };
  const float moved = -(static_cast<float>(sum.zero_points[1]) * sum.scales[1]);
  FusedSumSpec spec;
  // The first operand is added first.
  spec.second_scale = sum.scales[0], spec.first_scale = sum.scales[1];
  spec.addend = std::fma(-static_cast<float>(sum.zero_points[0]), sum.scales[0], moved);
  spec.factor = 1.0f / sum.scales[2], spec.zero_point = static_cast<float>(sum.zero_points[2]);
  spec.is_signed = flip != 0;
  const std::shared_ptr<const Elementwise> core = cores.fused_sum(spec);
  const auto low = static_cast<uint8_t>(sum.low + flip), high = static_cast<uint8_t>(sum.high + flip);
  const auto body = [core, low, high](const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t count) {
    core->run(b, a, out, count);
    if (low == 0 && high == 255) return;
    for (int64_t i = 0; i < count; ++i) out[i] = std::min(std::max(out[i], low), high);
  };
  return make_lane_zip(step, body, tail);
}

static std::unique_ptr<Kernel> make_add_n(const Step& step, const CoreSet& cores) {
  if (step.rules.count("real_sum")) {
    if (step.output().type == Type::f64) return std::make_unique<RealSumOfMany<double>>(step, cores);
    return std::make_unique<RealSumOfMany<float>>(step, cores);
  }
  if (step.rules.count("affine_sum_of_many")) return std::make_unique<ScaledSum>(step);
  if (step.output().type == Type::f32) return std::make_unique<PlainSum<float>>(step);
  return std::make_unique<PlainSum<int32_t>>(step);
}

BITTRUE_OPERATOR(add_n, make_add_n)

}  // namespace bittrue

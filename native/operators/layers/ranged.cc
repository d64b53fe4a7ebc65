// add, mul and batch_normalization of 8-bit operands with ranges, in binary32.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/kernel.h"
#include "operators/core/blocks.h"
#include "operators/elementwise/operand_pairs.h"
#include "operators/layers/range_numbers.h"
#include "operators/quantization/ranges.h"

namespace bittrue {
namespace {

// With smaller factors no product of an 8-bit number, and no sum of two, leaves binary32.
constexpr float kLargestFactor = 3.3230699894622897e35f;  // 2^118

float finite(double value) {
  const auto factor = static_cast<float>(value);
  require(std::fabs(factor) < kLargestFactor, "a factor is not finite");
  return factor;
}

// To an integer, ties to even, for |value| < 2^22.
inline int32_t nearest(float value) {
  const float moved = value + 12582912.0f;  // the unit in the last place is 1 there
  int32_t bits;
  std::memcpy(&bits, &moved, sizeof bits);
  return bits - 0x4B400000;
}

inline float clamped(float value, float low, float high) { return std::min(std::max(value, low), high); }

// Make(run) makes Out operator()(uint8_t, uint8_t) const for one run, on stored bytes of operands of the same shape.
template <class Out, class Make>
class Pairs final : public Kernel {
 public:
  Pairs(const Step& step, Make make)
      : blocks_({&step.input(0), &step.input(1)}, step.output()), make_(std::move(make)) {
    require(is_8bit(step.input(0).type) && is_8bit(step.input(1).type) && type_bytes(step.output().type) == sizeof(Out),
            "no native kernel for these types");
  }

  void run(const Run& run) const override {
    const auto function = make_(run);
    blocks_.run(run, [&](const uint8_t* const* in, uint8_t* out, int64_t count) {
      const uint8_t *first = in[0], *second = in[1];
      auto* target = reinterpret_cast<Out*>(out);
      for (int64_t i = 0; i < count; ++i) target[i] = function(first[i], second[i]);
    });
  }
  int64_t scratch_bytes(int threads) const override { return blocks_.scratch_bytes(threads); }

 private:
  Blocks blocks_;
  Make make_;
};

template <class Out, class Make>
std::unique_ptr<Kernel> make_pairs(const Step& step, Make make) {
  return std::make_unique<Pairs<Out, Make>>(step, std::move(make));
}

// The largest magnitude of a range that the inputs at `position` and behind it hold; a range that is not finite has no
// meaning.
float finite_reach(const Run& run, int position) {
  for (int i = position; i < position + 2; ++i) {
    if (!std::isfinite(*reinterpret_cast<const float*>(run.inputs[i]))) throw Undefined();
  }
  return reach(run, position);
}

constexpr int kFirstRange = 8, kSecondRange = 10;

// Two factors that the plan holds, or that follow from the ranges of a run.
class SumFactors {
 public:
  explicit SumFactors(const Step& step) : late_(step.integer("late", 0, 1) != 0) {
    if (!late_) {
      const Array& factors = step.array("factors");
      require(step.inputs.size() == 2 && factors.count == 2, "two operands are needed");
      known_ = {finite(factors.real(0)), finite(factors.real(1))};
      return;
    }
    require(step.inputs.size() == kSecondRange + 2, "two ranges are needed");
    for (size_t i = kFirstRange; i < step.inputs.size(); ++i) require_end(step.input(i));
    first_ = level(step.input(0).type), second_ = level(step.input(1).type);
    calibrated_ = step.integer("calibrated", 0, 1) != 0;
    output_ = step.output().type == Type::s32 ? 2147483648.0f : level(step.output().type);
    if (!calibrated_) return;
    const auto low = static_cast<float>(step.real("minimum")), high = static_cast<float>(step.real("maximum"));
    require(std::isfinite(low) && std::isfinite(high), "the range of the result is not finite");
    output_ = output_ / std::max(std::fabs(low), std::fabs(high));
  }

  std::array<float, 2> of(const Run& run) const {
    if (!late_) return known_;
    const float first = finite_reach(run, kFirstRange), second = finite_reach(run, kSecondRange);
    std::array<float, 2> found;
    if (calibrated_) {
      found = {output_ / (first_ / first), output_ / (second_ / second)};
    } else {
      const float total = first + second;
      found = {first * output_ / (total * first_), second * output_ / (total * second_)};
    }
    for (const float factor : found) {
      if (!(std::fabs(factor) < kLargestFactor)) throw Undefined();
    }
    return found;
  }

 private:
  bool late_, calibrated_ = false;
  std::array<float, 2> known_{};
  // Levels of the operands; those of the result, or with a given range how many there are to a unit.
  float first_ = 1, second_ = 1, output_ = 1;
};

// f32(q * factor), or that as an s8 number.
template <bool kNarrowed>
struct Part {
  int32_t flip;
  float factor;
  float operator()(uint8_t stored) const {
    const float real = static_cast<float>(stored - flip) * factor;
    return kNarrowed ? static_cast<float>(nearest(clamped(real, -128.0f, 127.0f))) : real;
  }
};

template <bool kFirstNarrowed, bool kSecondNarrowed>
std::unique_ptr<Kernel> make_sum(const Step& step) {
  const SumFactors factors(step);
  const int32_t one_flip = flip_of(step.input(0).type), other_flip = flip_of(step.input(1).type);
  const auto parts = [=](const Run& run) {
    const std::array<float, 2> found = factors.of(run);
    return std::make_pair(Part<kFirstNarrowed>{one_flip, found[0]}, Part<kSecondNarrowed>{other_flip, found[1]});
  };
  if (step.output().type == Type::s32) {
    return make_pairs<int32_t>(step, [=](const Run& run) {
      return [both = parts(run)](uint8_t a, uint8_t b) {
        // Numbers of 2^23 and more are whole; below, adding 2^23 with the sign leaves what is nearest.
        const float sum = both.first(a) + both.second(b), unit = std::copysign(8388608.0f, sum);
        const float whole = std::fabs(sum) < 8388608.0f ? (sum + unit) - unit : sum;
        return static_cast<int32_t>(clamped(whole, -2147483648.0f, 2147483520.0f));
      };
    });
  }
  require(is_8bit(step.output().type), "no native kernel for these types");
  const int32_t flip = flip_of(step.output().type);
  const float low = static_cast<float>(-flip), high = static_cast<float>(255 - flip);
  return make_pairs<uint8_t>(step, [=](const Run& run) {
    return [=, both = parts(run)](uint8_t a, uint8_t b) {
      return static_cast<uint8_t>(nearest(clamped(both.first(a) + both.second(b), low, high)) + flip);
    };
  });
}

// A factor that the plan holds, or that follows from the ranges of a run.
class ProductFactor {
 public:
  explicit ProductFactor(const Step& step) : late_(step.integer("late", 0, 1) != 0), output_(step.output().type) {
    if (!late_) {
      const Array& factor = step.array("factor");
      require(step.inputs.size() == 2 && factor.count == 1, "one factor is needed");
      known_ = finite(factor.real(0));
      return;
    }
    require(step.inputs.size() == kSecondRange + 2, "two ranges are needed");
    for (size_t i = kFirstRange; i < step.inputs.size(); ++i) require_end(step.input(i));
    if (output_ != Type::s8) return;
    const auto low = static_cast<float>(step.real("minimum")), high = static_cast<float>(step.real("maximum"));
    require(step.integer("calibrated", 0, 1) != 0 && std::isfinite(low) && std::isfinite(high),
            "the range of the result is not finite");
    known_ = 127.5f / std::max(std::fabs(low), std::fabs(high));
  }

  float of(const Run& run) const {
    if (!late_) return known_;
    const float one = 127.5f / finite_reach(run, kFirstRange), other = 127.5f / finite_reach(run, kSecondRange);
    float found = 1;
    if (output_ == Type::f32) {
      found = static_cast<float>(1.0 / static_cast<double>(one) / static_cast<double>(other));
    } else if (output_ == Type::s8) {
      found = known_ / one / other;
    }
    if (!(std::fabs(found) < kLargestFactor)) throw Undefined();
    return found;
  }

 private:
  bool late_;
  Type output_;
  float known_ = 1;
};

// The number that a stored byte stands for, as the rule takes it: u8 numbers are halved first.
struct Signed {
  float operator()(uint8_t stored) const { return static_cast<float>(stored - 128); }
};
struct Halved {
  float operator()(uint8_t stored) const {
    const float half = static_cast<float>(stored) * (127.5f / 255.5f);
    return static_cast<float>(nearest(clamped(half, -128.0f, 127.0f)));
  }
};

template <class Number>
class RangedNormalization final : public Kernel {
 public:
  RangedNormalization(const Step& step, const CoreSet& cores) : scale_bytes_(cores.scale_bytes()) {
    const Operand &in = step.input(0), &out = step.output();
    late_ = step.integer("late", 0, 1) != 0;
    require(step.inputs.size() == (late_ ? 7 : 1) && is_8bit(in.type) && out.type == Type::s8 && in.dense() &&
                out.dense() && in.rank() >= 2 && in.shape == out.shape,
            "no native kernel for these operands");
    last_ = step.integer("channels_last", 0, 1) != 0;
    channels_ = last_ ? in.shape.back() : in.shape[1];
    rows_ = channels_ == 0 ? 0 : last_ ? in.elements / channels_ : in.shape[0] * channels_;
    inner_ = rows_ == 0 ? 0 : in.elements / rows_;
    if (late_) {
      for (size_t i = 1; i < 5; ++i) {
        const Operand& own = step.input(i);
        require(own.type == Type::f32 && own.dense() && own.elements == channels_, "a number per channel is needed");
      }
      require_end(step.input(5));
      require_end(step.input(6));
      require(step.integer("calibrated", 0, 1) != 0, "the range of the result must be given");
      epsilon_ = step.real("epsilon");
      reach_ = std::max(std::fabs(finite(step.real("minimum"))), std::fabs(finite(step.real("maximum"))));
      return;
    }
    const Array &factors = step.array("factor"), &summands = step.array("summand");
    require(factors.count == channels_ && summands.count == channels_, "a factor per channel is needed");
    for (int64_t c = 0; c < channels_; ++c) {
      factors_.push_back(finite(factors.real(c)));
      summands_.push_back(finite(summands.real(c)));
    }
  }

  int64_t scratch_bytes(int) const override { return late_ ? 8 * channels_ : 0; }

  void run(const Run& run) const override {
    const float *all = factors_.data(), *added = summands_.data();
    if (late_) {
      auto* own = reinterpret_cast<float*>(run.scratch);
      prepare(run, own, own + channels_);
      all = own, added = own + channels_;
    }
    const auto row = [&](int64_t number, int) {
      const uint8_t* source = run.inputs[0] + number * inner_;
      uint8_t* target = run.outputs[0] + number * inner_;
      // Bytes may be written over anything as far as the compiler knows, so the count is at hand.
      const int64_t count = inner_;
      if (last_ && std::is_same_v<Number, Signed>) {
        scale_bytes_(source, all, added, target, count);
      } else if (last_) {
        const float *factors = all, *summands = added;
        for (int64_t i = 0; i < count; ++i) target[i] = normalized(source[i], factors[i], summands[i]);
      } else {
        const float factor = all[number % channels_], summand = added[number % channels_];
        for (int64_t i = 0; i < count; ++i) target[i] = normalized(source[i], factor, summand);
      }
    };
    if (rows_ * inner_ < Blocks::kParallel) {
      for (int64_t number = 0; number < rows_; ++number) row(number, 0);
    } else {
      run.pool.parallel(rows_, row);
    }
  }

 private:
  static uint8_t normalized(uint8_t stored, float factor, float summand) {
    const float moved = Number()(stored) * factor + summand;
    return static_cast<uint8_t>(nearest(clamped(moved, -128.0f, 127.0f)) + 128);
  }

  // Statistics and ranges of this run, as the rule prepares them. Throws Undefined where they give no factor.
  void prepare(const Run& run, float* factors, float* summands) const {
    const auto operand = [&](size_t i) { return reinterpret_cast<const float*>(run.inputs[i]); };
    const float *gamma = operand(1), *beta = operand(2), *mean = operand(3), *variance = operand(4);
    if (!std::isfinite(*operand(5)) || !std::isfinite(*operand(6))) throw Undefined();
    const float span = reach(run, 5), twice = std::sqrt(1.0f + static_cast<float>(epsilon_));
    for (int64_t c = 0; c < channels_; ++c) {
      const auto inverse = static_cast<float>(1.0 / std::sqrt(static_cast<double>(variance[c]) + epsilon_));
      summands[c] = (beta[c] - mean[c] * gamma[c] * inverse) * 127.5f / reach_;
      factors[c] = gamma[c] * inverse * span / reach_ / twice;
      if (!(std::fabs(factors[c]) < kLargestFactor && std::fabs(summands[c]) < kLargestFactor)) throw Undefined();
    }
  }

  ScaleBytes scale_bytes_;
  bool last_ = false, late_ = false;
  double epsilon_ = 0;
  float reach_ = 0;  // of the result's range
  // A row is a plane of one channel, or with channels last the channels of one place.
  int64_t channels_ = 0, rows_ = 0, inner_ = 0;
  std::vector<float> factors_, summands_;
};

}  // namespace

std::unique_ptr<Kernel> make_ranged_add(const Step& step) {
  require(step.rule("range_sum") == "binary32_two_products_even", "no native rule for this slot");
  // Of two types the u8 operand is narrowed.
  const Type first = step.input(0).type, second = step.input(1).type;
  if (first == second) return make_sum<false, false>(step);
  return first == Type::u8 ? make_sum<true, false>(step) : make_sum<false, true>(step);
}

std::unique_ptr<Kernel> make_ranged_mul(const Step& step) {
  require(step.rule("range_product") == "binary32_truncate_low_bits", "no native rule for this slot");
  require(step.input(0).type == Type::s8 && step.input(1).type == Type::s8, "no native kernel for these types");
  const ProductFactor factors(step);
  const auto product = [](uint8_t a, uint8_t b) { return (a - 128) * (b - 128); };
  if (step.output().type == Type::s32) {
    return make_pairs<int32_t>(step, [=](const Run& run) {
      factors.of(run);
      return product;
    });
  }
  if (step.output().type == Type::f32) {
    return make_pairs<float>(step, [=](const Run& run) {
      return [=, factor = factors.of(run)](uint8_t a, uint8_t b) { return static_cast<float>(product(a, b)) * factor; };
    });
  }
  require(step.output().type == Type::s8, "no native kernel for these types");
  return make_pairs<uint8_t>(step, [=](const Run& run) {
    return [=, factor = factors.of(run)](uint8_t a, uint8_t b) {
      const float real = static_cast<float>(product(a, b)) * factor;
      // What does not fit 32 bits becomes -2^31, whose low bits are 0.
      const int32_t whole = std::fabs(real) < 2147483648.0f ? static_cast<int32_t>(real) : 0;
      return static_cast<uint8_t>((static_cast<uint32_t>(whole) + 128u) & 255u);
    };
  });
}

std::unique_ptr<Kernel> make_ranged_normalization(const Step& step, const CoreSet& cores) {
  require(step.rule("range_normalization") == "binary32_epsilon_twice_even", "no native rule for this slot");
  if (step.input(0).type == Type::s8) return std::make_unique<RangedNormalization<Signed>>(step, cores);
  return std::make_unique<RangedNormalization<Halved>>(step, cores);
}

}  // namespace bittrue

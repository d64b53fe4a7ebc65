// range_of: ranges of tensors, two binary32 numbers each: of values, of sums, of products, and what holds several of them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "operators/core/registry.h"
#include "operators/quantization/ranges.h"

namespace bittrue {
namespace {

constexpr float kSumLevel = 2147483648.0f;

float end(const Run& run, int position) { return *reinterpret_cast<const float*>(run.inputs[position]); }

struct Ends {
  float low, high;
};

// Function: Ends operator()(const Run&) const, from inputs of which those from `first` on are ends of ranges.
template <class Function>
class RangeKernel final : public Kernel {
 public:
  RangeKernel(const Step& step, size_t first, Function function) : function_(std::move(function)) {
    require(step.outputs.size() == 2, "a range has two ends");
    for (size_t i = first; i < step.inputs.size(); ++i) require_end(step.input(i));
    for (size_t i = 0; i < 2; ++i) require_end(step.output(i));
  }

  void run(const Run& run) const override {
    const Ends ends = function_(run);
    *reinterpret_cast<float*>(run.outputs[0]) = ends.low;
    *reinterpret_cast<float*>(run.outputs[1]) = ends.high;
  }

 private:
  Function function_;
};

template <class Function>
std::unique_ptr<Kernel> make_range(const Step& step, size_t first, Function function) {
  return std::make_unique<RangeKernel<Function>>(step, first, std::move(function));
}

Ends around(float largest, bool is_unsigned) { return {is_unsigned ? 0.0f : -largest, largest}; }

std::unique_ptr<Kernel> of_union(const Step& step) {
  const int count = static_cast<int>(step.inputs.size());
  require(count % 2 == 0, "ends of ranges come in pairs");
  return make_range(step, 0, [=](const Run& run) {
    Ends all{0.0f, 0.0f};
    for (int i = 0; i < count; i += 2) {
      const float low = end(run, i), high = end(run, i + 1);
      if (low < all.low) all.low = low;
      if (high > all.high) all.high = high;
    }
    return all;
  });
}

std::unique_ptr<Kernel> of_sum(const Step& step) {
  require(step.inputs.size() == 4, "two ranges are needed");
  return make_range(step, 0, [](const Run& run) { return around(reach(run, 0) + reach(run, 2), false); });
}

std::unique_ptr<Kernel> of_product(const Step& step) {
  require(step.inputs.size() == 4, "two ranges are needed");
  const auto first = static_cast<float>(step.integer("first_level", 1, 65535));
  const auto second = static_cast<float>(step.integer("second_level", 1, 65535));
  return make_range(step, 0, [=](const Run& run) {
    return around(reach(run, 0) / first * (reach(run, 2) / second) * kSumLevel, false);
  });
}

std::unique_ptr<Kernel> symmetric(const Step& step) {
  require(step.inputs.size() == 2, "one range is needed");
  const bool is_unsigned = step.integer("unsigned", 0, 1) != 0;
  return make_range(step, 0, [=](const Run& run) { return around(reach(run, 0), is_unsigned); });
}

std::unique_ptr<Kernel> of_sums(const Step& step) {
  require(
      step.inputs.size() == 3 && step.input(0).type == Type::s32 && step.input(0).dense() && step.input(0).elements > 0,
      "no native kernel for these types");
  const bool is_unsigned = step.integer("unsigned", 0, 1) != 0;
  const int64_t count = step.input(0).elements;
  return make_range(step, 1, [=](const Run& run) {
    const auto* sums = reinterpret_cast<const int32_t*>(run.inputs[0]);
    int32_t low = sums[0], high = sums[0];
    for (int64_t i = 1; i < count; ++i) {
      low = std::min(low, sums[i]);
      high = std::max(high, sums[i]);
    }
    const auto most = static_cast<float>(std::max<int64_t>(high, -static_cast<int64_t>(low)));
    if (most >= kSumLevel) throw Undefined();
    return around(most * reach(run, 1) / kSumLevel, is_unsigned);
  });
}

std::unique_ptr<Kernel> of_values(const Step& step) {
  require(
      step.inputs.size() == 1 && step.input(0).type == Type::f32 && step.input(0).dense() && step.input(0).elements > 0,
      "no native kernel for these types");
  const int64_t count = step.input(0).elements;
  return make_range(step, 1, [=](const Run& run) {
    const auto* values = reinterpret_cast<const float*>(run.inputs[0]);
    constexpr float kLargest = std::numeric_limits<float>::max();
    float low = kLargest, high = -kLargest;
    for (int64_t i = 0; i < count; ++i) {  // NaN is neither
      low = values[i] < low ? values[i] : low;
      high = values[i] > high ? values[i] : high;
    }
    // Which sign a zero has is for the reference to say.
    if (low == 0.0f || high == 0.0f) throw Undefined();
    return Ends{low, high};
  });
}

}  // namespace

void require_end(const Operand& operand) {
  require(operand.type == Type::f32 && operand.elements == 1, "an end of a range is one number");
}

float reach(const Run& run, int position) {
  return std::max(std::fabs(end(run, position)), std::fabs(end(run, position + 1)));
}

static std::unique_ptr<Kernel> make_range_of(const Step& step, const CoreSet&) {
  const std::string& of = step.text("of");
  if (of == "values") return of_values(step);
  if (of == "symmetric") return symmetric(step);
  if (of == "sums") return of_sums(step);
  if (of == "product") return of_product(step);
  if (of == "sum") return of_sum(step);
  return of == "union" ? of_union(step) : nullptr;
}

BITTRUE_OPERATOR(range_of, make_range_of)

}  // namespace bittrue

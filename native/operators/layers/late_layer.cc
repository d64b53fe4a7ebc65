// matmul and conv of quantized values whose scales only running tells, or whose quotients are rounded exactly: the sums of the
// layer that has none, requantized by multipliers that every run makes.
#include "operators/layers/late_layer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/share.h"
#include "operators/core/late_scales.h"
#include "operators/layers/integer_finish.h"

namespace bittrue {
namespace {

constexpr size_t kResultPoint = ProductOperands::kResultScale + 1;

// The step without scales, and its result.
struct SumsOfLayer {
  Operand sums;
  Step step;

  explicit SumsOfLayer(const Step& whole) : sums(whole.output()), step(whole) {
    sums.type = Type::s32, sums.constant = nullptr, sums.row_stride = sums.row_bytes();
    step.rules = {{"accumulate", whole.rule("accumulate")}};
    for (const size_t scale :
         {ProductOperands::kRowScale, ProductOperands::kColumnScales, ProductOperands::kResultScale, kResultPoint}) {
      if (scale < step.inputs.size()) step.inputs[scale] = nullptr;
    }
    for (const char* made : {"numerator", "denominator", "multiplier", "exponent", "factor"}) step.arrays.erase(made);
    step.outputs = {&sums};
    step.texts["dtype"] = "s32";
    step.then = nullptr;
  }
};

class LateLayer final : public Kernel {
 public:
  LateLayer(const Step& step, const CoreSet& cores, Factory factory)
      : scales_(step), writer_(step.output().type), late_(step.integer("late", 0, 1) != 0) {
    require(step.reals.count("alpha") == 0 || step.real("alpha") == 1, "sums have another factor");
    const Operand& out = step.output();
    require(out.dense() && out.rank() > 0 && out.elements > 0, "the output is not dense");
    const bool first = step.integers.count("channels_last") != 0 && step.integer("channels_last") == 0;
    require(!first || out.rank() > 1, "there are no channels");
    columns_ = first ? out.shape[1] : out.shape.back();
    for (int i = 2; first && i < out.rank(); ++i) inner_ *= out.shape[i];
    elements_ = out.elements;
    if (late_) {
      numbers_.reserve(5);
      for (const size_t input :
           {ProductOperands::kRowScale, ProductOperands::kColumnScales, ProductOperands::kResultScale, kResultPoint}) {
        numbers_.push_back(LateNumbers(step, input, input == ProductOperands::kColumnScales ? columns_ : 1));
      }
    } else {
      require(step.rules.count("requantize") != 0, "multipliers are known");
      const Array &top = step.array("numerator"), &bottom = step.array("denominator");
      // As many rows as columns have as many scales, along another axis.
      const bool of_columns = top.count == columns_ && (first || top.shape.back() == columns_);
      require(top.count == bottom.count && (top.count == 1 || of_columns), "scales of another form");
      for (int64_t i = 0; i < top.count; ++i) known_.push_back({{}, top.real(i), bottom.real(i)});
      zero_point_ = step.integer("output_zero_point", INT32_MIN, INT32_MAX);
    }
    const SumsOfLayer layer(step);
    sums_ = factory(layer.step, cores);
    require(sums_ != nullptr, "no native kernel for the sums");
  }

  std::string note() const override { return sums_->note() + ", then requantized"; }
  bool packs(size_t input) const override {
    return sums_->packs(input) || (!late_ && input >= ProductOperands::kRowScale);
  }
  int64_t scratch_bytes(int threads) const override {
    return made_bytes() + sums_bytes() + sums_->scratch_bytes(threads);
  }

  void run(const Run& run) const override {
    auto* made = reinterpret_cast<LateScales::Multiplier*>(run.scratch);
    const int64_t count = late_ ? numbers_[1].count() : static_cast<int64_t>(known_.size());
    int64_t zero_point = zero_point_;
    if (late_) {
      const double row = numbers_[0].at(run, 0), result = numbers_[2].at(run, 0);
      for (int64_t i = 0; i < count; ++i) {
        if (!scales_.prepare(row, numbers_[1].at(run, i), result, made + i)) throw Undefined();
      }
      zero_point = static_cast<int64_t>(numbers_[3].at(run, 0));
    } else {
      std::copy(known_.begin(), known_.end(), made);
    }
    uint8_t* sums = run.scratch + made_bytes();
    sums_->run(Run{run.inputs, &sums, sums + sums_bytes(), run.pool});
    constexpr int64_t kPart = 1024;
    const auto* from = reinterpret_cast<const int32_t*>(sums);
    run.pool.parallel((elements_ + kPart - 1) / kPart, [&](int64_t task, int) {
      const int64_t first = task * kPart, part = std::min(kPart, elements_ - first);
      int64_t values[kPart];
      for (int64_t i = 0; i < part; ++i) {
        const int64_t column = count == 1 ? 0 : (first + i) / inner_ % columns_;
        values[i] = scales_.stored(from[first + i], made[column], zero_point);
      }
      writer_.store(values, run.outputs[0] + first * writer_.bytes(), part);
    });
  }

 private:
  int64_t made_bytes() const { return round_up(columns_ * static_cast<int64_t>(sizeof(LateScales::Multiplier)), 64); }
  int64_t sums_bytes() const { return round_up(4 * elements_, 64); }

  LateScales scales_;
  IntegerWriter writer_;
  bool late_;
  std::unique_ptr<Kernel> sums_;
  std::vector<LateNumbers> numbers_;  // scales of rows, columns and the result, and its zero point
  std::vector<LateScales::Multiplier> known_;
  int64_t zero_point_ = 0, columns_ = 1, inner_ = 1, elements_ = 0;
};

}  // namespace

bool needs_late_layer(const Step& step) {
  return step.rules.count("store") != 0 &&
         (step.rules.count("requantize") != 0 || (step.integers.count("late") != 0 && step.integer("late") != 0));
}

std::unique_ptr<Kernel> make_late_layer(const Step& step, const CoreSet& cores, Factory factory) {
  return std::make_unique<LateLayer>(step, cores, factory);
}

}  // namespace bittrue

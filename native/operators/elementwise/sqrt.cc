// sqrt and rsqrt. Negative real input has no result, which the reference reports.
#include <cmath>
#include <limits>

#include "arithmetic/processor_estimates.h"
#include "operators/core/map.h"
#include "operators/core/registry.h"
#include "operators/core/rescaling.h"
#include "operators/elementwise/logistic.h"
#include "operators/elementwise/real_loops.h"
#include "rules/square_root.h"

namespace bittrue {
namespace {

float real(const Step& step, const char* key) { return static_cast<float>(step.real(key)); }

// Asks before the kernel runs whether any stored integer is below its zero point.
template <class T>
class NotNegative final : public Kernel {
 public:
  NotNegative(const Step& step, int64_t least, std::unique_ptr<Kernel> kernel)
      : elements_(step.input(0).elements), least_(static_cast<T>(least)), kernel_(std::move(kernel)) {
    require(kernel_ != nullptr && step.input(0).dense(), "the input must be dense");
  }
  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const T*>(run.inputs[0]);
    T smallest = std::numeric_limits<T>::max();
    for (int64_t i = 0; i < elements_; ++i) smallest = in[i] < smallest ? in[i] : smallest;
    if (smallest < least_) throw Undefined();
    kernel_->run(run);
  }
  int64_t scratch_bytes(int threads) const override { return kernel_->scratch_bytes(threads); }
  std::string note() const override { return kernel_->note(); }

 private:
  int64_t elements_;
  T least_;
  std::unique_ptr<Kernel> kernel_;
};

std::unique_ptr<Kernel> not_negative(const Step& step, std::unique_ptr<Kernel> kernel) {
  const Type type = step.input(0).type;
  const int64_t zero_point = step.integer("input_zero_point", -kLargestZeroPoint, kLargestZeroPoint) + flip_of(type);
  const int64_t low = is_8bit(type) ? 0 : std::numeric_limits<int16_t>::min();
  const int64_t high = is_8bit(type) ? 255 : std::numeric_limits<int16_t>::max();
  if (zero_point <= low) return kernel;
  require(zero_point <= high, "every input is negative");
  if (is_8bit(type)) return std::make_unique<NotNegative<uint8_t>>(step, zero_point, std::move(kernel));
  return std::make_unique<NotNegative<int16_t>>(step, zero_point, std::move(kernel));
}

namespace estimates = arithmetic::estimates;

template <class Significand>
std::unique_ptr<Kernel> make_refined(const Step& step, bool inverse) {
  static const Significand significand;
  if (inverse) {
    return make_map<float, float>(step, [](float x) { return estimates::refined_inverse_root(x, significand); });
  }
  return make_map<float, float>(step, [](float x) { return estimates::refined_root(x, significand); });
}

// From an estimate that processors have.
std::unique_ptr<Kernel> make_from_estimate(const Step& step, bool inverse) {
  if (step.input(0).type != Type::f32 || step.output().type != Type::f32) return nullptr;
  const std::string& rule = step.rule("real_function");
  if (rule == "binary32_refined_lines") return make_refined<estimates::Lines>(step, inverse);
  require(rule == "binary32_refined_tables", "no native rule for this slot");
  return make_refined<estimates::Tables>(step, inverse);
}

std::unique_ptr<Kernel> make_sqrt(const Step& step, const CoreSet& cores) {
  const Type from = step.input(0).type;
  if (step.rules.count("real_function")) return make_from_estimate(step, false);
  if (step.texts.count("dtype") == 0) {
    if (from == Type::f64) return make_map<double, double>(step, [](double x) { return std::sqrt(x); });
    return make_real_loop(step, cores, {RealLoop::square_root});
  }
  require(step.rule("square_root") == "binary32_divide_trunc", "no native rule for this slot");
  if (!is_8bit(from) && from != Type::s16) return nullptr;
  const float scale = real(step, "input_scale"), output_scale = real(step, "output_scale");
  const int64_t zero_point = step.integer("input_zero_point", -kLargestZeroPoint, kLargestZeroPoint);
  constexpr int64_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
  const int64_t output_zero_point = step.integer("output_zero_point", kLow, kHigh);
  const int64_t low = step.integer("low", kLow, kHigh), high = step.integer("high", kLow, kHigh);
  return not_negative(step, make_integer_map(step, cores, [=](int64_t q) {
                        return rules::binary32_divide_trunc(q, scale, zero_point, output_scale, output_zero_point, low,
                                                            high);
                      }));
}

std::unique_ptr<Kernel> make_rsqrt(const Step& step, const CoreSet& cores) {
  if (step.rules.count("real_function")) return make_from_estimate(step, true);
  if (step.texts.count("dtype") == 0) {
    return make_real_loop(step, cores, {RealLoop::inverse_square_root});
  }
  if (step.has_array("table")) return not_negative(step, make_table(step, cores));
  if (!is_8bit(step.output().type)) return nullptr;
  return not_negative(step, make_direct_table(step, cores, step.array("entries")));
}

BITTRUE_OPERATOR(rsqrt, make_rsqrt)
BITTRUE_OPERATOR(sqrt, make_sqrt)

}  // namespace
}  // namespace bittrue

// relu: a change of scale and a clamp, or only the clamp for real numbers.
#include <limits>
#include <utility>

#include "operators/core/map.h"
#include "operators/core/registry.h"
#include "operators/elementwise/logistic.h"
#include "operators/elementwise/real_loops.h"
#include "operators/quantization/quantize.h"

namespace bittrue {
namespace {

// What becomes of the first `zeros` numbers that are 0 by signs, behind a kernel that keeps them.
class PositiveZeros final : public Kernel {
 public:
  PositiveZeros(std::unique_ptr<Kernel> kernel, int64_t zeros) : kernel_(std::move(kernel)), zeros_(zeros) {}
  int64_t scratch_bytes(int threads) const override { return kernel_->scratch_bytes(threads); }
  std::string note() const override { return kernel_->note(); }
  void run(const Run& run) const override {
    kernel_->run(run);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    for (int64_t i = 0; i < zeros_; ++i) out[i] = out[i] == 0.0f ? 0.0f : out[i];
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  int64_t zeros_;
};

std::unique_ptr<Kernel> make_relu(const Step& step, const CoreSet& cores) {
  if (step.rules.count("levels")) return make_rectified_levels(step, cores);
  if (!step.arrays.empty()) return make_rescaled(step, cores);
  const Type type = step.input(0).type;
  if ((type != Type::f32 && type != Type::f64) || step.output().type != type) return nullptr;
  const auto least = step.reals.find("low"), most = step.reals.find("high");
  require(least != step.reals.end(), "no lower end");
  const double low = least->second;
  const double high = most == step.reals.end() ? std::numeric_limits<double>::infinity() : most->second;
  require(!(low > high), "the lower end is above the upper one");
  const bool signs = step.rules.count("extreme") != 0;
  const bool everywhere = signs && step.rule("extreme") == "nan_else_by_signs";
  require(!signs || (type == Type::f32 && (everywhere || step.rule("extreme") == "nan_else_by_signs_in_vectors")),
          "no native rule for this slot");
  if (type == Type::f32) {
    auto limit = make_real_loop(step, cores, {RealLoop::limit, static_cast<float>(low), static_cast<float>(high)});
    if (!signs || low != 0 || limit == nullptr) return limit;
    require(step.input(0).dense() && step.output().dense(), "elements lie apart");
    const int64_t elements = step.output().elements;
    return std::make_unique<PositiveZeros>(std::move(limit), everywhere ? elements : elements / 4 * 4);
  }
  return make_map<double, double>(step, [low, high](double x) { return x < low ? low : x > high ? high : x; });
}

BITTRUE_OPERATOR(relu, make_relu)

}  // namespace
}  // namespace bittrue

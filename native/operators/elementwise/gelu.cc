// gelu: x times the normal distribution function of x; integers by tables.
#include <algorithm>

#include "arithmetic/elementary.h"
#include "arithmetic/fused.h"
#include "arithmetic/rational.h"
#include "operators/core/registry.h"
#include "operators/elementwise/logistic.h"

namespace bittrue {
namespace {

namespace rational = arithmetic::rational;

constexpr int64_t kBlock = 4096, kLanes = 4;

class Gelu final : public Kernel {
 public:
  Gelu(const Step& step, bool approximate) : approximate_(approximate), count_(step.input(0).elements) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.type == Type::f32 && out.type == Type::f32 && in.elements == out.elements && in.dense() && out.dense(),
            "no native kernel for these operands");
    require(step.rule("real_gelu") == "binary32_rational_lanes_4", "no native rule for this slot");
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);  // kBlock is a multiple of kLanes
    run.pool.parallel((count_ + kBlock - 1) / kBlock, [&](int64_t block, int) {
      const int64_t end = std::min(count_, (block + 1) * kBlock);
      if (approximate_) {
        for (int64_t i = block * kBlock; i < end; ++i) out[i] = approximate(in[i]);
        return;
      }
      // The last elements, fewer than a group, use another exponential.
      const int64_t grouped = std::min(end, count_ / kLanes * kLanes);
      for (int64_t i = block * kBlock; i < grouped; ++i) out[i] = exact<false>(in[i]);
      for (int64_t i = grouped; i < end; ++i) out[i] = exact<true>(in[i]);
    });
  }

 private:
  static float approximate(float x) {
    const float inner = 0.7978845608028654f * (x + 0.044715f * (x * x * x));
    return 0.5f * x * (1.0f + rational::tanh(inner));
  }

  template <bool kRest>
  static float exact(float x) {
    return 0.5f * x * rational::erfc(x * -0.7071067811865476f, [](float h) {
             return kRest ? arithmetic::exp(h) : rational::exp(h);
           });
  }

  bool approximate_;
  int64_t count_;
};

std::unique_ptr<Kernel> make_gelu(const Step& step, const CoreSet& cores) {
  if (step.has_array("table")) return make_table(step, cores);
  const bool approximate = step.integer("approximate", 0, 1) != 0;
  if (step.rule("real_gelu") == "binary32_fused") {
    if (step.input(0).type != Type::f32 || step.output().type != Type::f32) return nullptr;
    return make_map<float, float>(step, [approximate](float x) { return arithmetic::fused::gelu(x, approximate); });
  }
  return std::make_unique<Gelu>(step, approximate);
}

BITTRUE_OPERATOR(gelu, make_gelu)

}  // namespace
}  // namespace bittrue

// hard_swish: x * clamp(x / 6 + 1/2, 0, 1), by a table of 256 entries for 8 bits.
#include <algorithm>

#include "arithmetic/fused.h"
#include "core/thread_pool.h"
#include "operators/core/registry.h"
#include "operators/elementwise/grouped_map.h"
#include "operators/elementwise/logistic.h"
#include "operators/elementwise/real_loops.h"

namespace bittrue {
namespace {

// x + 3 within [0, 6]; NaN gives 0.
float gate(float x) {
  const float shifted = x + 3.0f;
  const float raised = shifted > 0.0f ? shifted : 0.0f;
  return raised < 6.0f ? raised : 6.0f;
}

// Whole blocks have one table, the elements behind them another.
class TwoTables final : public Kernel {
 public:
  explicit TwoTables(const Step& step) : count_(step.input(0).elements), body_(step.integer("body", 0, count_)) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.elements == out.elements && in.dense() && out.dense(), "both sides must be dense and equal in shape");
    const int64_t minimum = in.type == Type::s8 ? -128 : 0;
    require(step.integer("minimum") == minimum, "one entry per 8-bit value is needed");
    const char* const names[] = {"entries", "entries_tail"};
    for (int tail = 0; tail < 2; ++tail) {
      const Array& entries = step.array(names[tail]);
      require(entries.count == 256, "one entry per 8-bit value is needed");
      for (int64_t i = 0; i < 256; ++i) {
        tables_[tail][i] = static_cast<uint8_t>(entries.integer(i) + flip_of(out.type));
      }
    }
  }

  void run(const Run& run) const override {
    const uint8_t* in = run.inputs[0];
    uint8_t* out = run.outputs[0];
    run.pool.parallel((count_ + kBlock - 1) / kBlock, [&](int64_t block, int) {
      const int64_t end = std::min(count_, (block + 1) * kBlock), whole = std::min(end, body_);
      int64_t i = block * kBlock;
      for (; i < whole; ++i) out[i] = tables_[0][in[i]];
      for (; i < end; ++i) out[i] = tables_[1][in[i]];
    });
  }

 private:
  static constexpr int64_t kBlock = 1 << 14;

  int64_t count_, body_;
  uint8_t tables_[2][256] = {};
};

bool in_fours(const std::string& rule) {
  return rule == "binary32_rational_lanes_4" || rule == "binary32_fused_rational_lanes_4";
}

std::unique_ptr<Kernel> make_hard_swish(const Step& step, const CoreSet& cores) {
  if (step.has_array("entries_tail")) {
    if (!is_8bit(step.output().type) || step.input(0).type != step.output().type) return nullptr;
    return std::make_unique<TwoTables>(step);
  }
  if (step.has_array("entries")) {
    return is_8bit(step.output().type) ? make_direct_table(step, cores, step.array("entries")) : nullptr;
  }
  if (step.input(0).type != Type::f32 || step.output().type != Type::f32) return nullptr;
  if (step.rules.count("real_function") != 0) {
    if (step.rule("real_function") == "binary32_single_operations") {
      return make_real_loop(step, cores, {RealLoop::hard_swish});
    }
    const auto product_times_sixth = [](float x) { return x * gate(x) * (1.0f / 6.0f); };
    if (step.rule("real_function") == "binary32_times_sixth") return make_map<float, float>(step, product_times_sixth);
    if (in_fours(step.rule("real_function"))) {
      return make_grouped_map(step, [](float x) { return x * (1.0f / 6.0f) * gate(x); }, product_times_sixth);
    }
    require(step.rule("real_function") == "binary32_fused", "no native rule for this slot");
    return make_map<float, float>(step, [](float x) { return arithmetic::fused::hard_swish(x); });
  }
  return make_map<float, float>(step, [](float x) { return x * gate(x) / 6.0f; });
}

BITTRUE_OPERATOR(hard_swish, make_hard_swish)

}  // namespace
}  // namespace bittrue

// qlinear_matmul: rows times a constant matrix, as a layer.
#include "operators/matmul_layer.h"

namespace bittrue {

std::unique_ptr<Kernel> make_qlinear_matmul(const Step& step, const CoreSet& cores) {
  require(step.integer("late", 0, 1) == 0, "scales are known while running only");
  require(step.rule("accumulate") == "s32_wrap" && is_8bit(step.input(0).type) && is_8bit(step.output().type),
          "no native kernel for these types");
  const Operand &a = step.input(0), &b = step.input(3);
  const SignedWeights weights = turned_weights(b, step.array("weight_zero_points"));
  const int64_t depth = b.shape[b.rank() - 2], columns = b.shape[b.rank() - 1];
  require(a.rank() >= 1 && a.shape.back() == depth, "the shapes do not fit");
  return make_matmul_layer(step, cores, columns, depth, weights, std::vector<int64_t>(static_cast<size_t>(columns), 0));
}

}  // namespace bittrue

// matmul: products of real numbers, and rows of quantized values times a constant matrix as a layer.
#include "operators/integer_layer.h"
#include "operators/matmul_layer.h"
#include "operators/real_product.h"
#include "operators/registry.h"

namespace bittrue {
namespace {

// One multiplier, or one per column.
void require_column_multipliers(const Step& step) {
  const Array& factor = step.array("factor");
  require(factor.shape.size() <= 1 || factor.shape.back() == factor.count, "multipliers differ by row");
  require(step.array("factor").count == 1 || step.output().shape.empty() || factor.count == step.output().shape.back(),
          "multipliers differ by row");
}

// Both factors are computed: the step of batch_matmul that does the same.
std::unique_ptr<Kernel> make_computed_product(const Step& step, const CoreSet& cores) {
  require(!step.has_input(2), "addends of computed products");
  Step product = step;
  product.name = "batch_matmul";
  product.inputs = {step.inputs[0], step.inputs[1]};
  product.integers["adj_x"] = product.integers.at("transpose_a");
  product.integers["adj_y"] = product.integers.at("transpose_b");
  product.texts["form"] = "quantized";
  return find_factory(product.name)(product, cores);
}

std::unique_ptr<Kernel> make_quantized(const Step& step, const CoreSet& cores) {
  require(step.integer("late", 0, 1) == 0, "scales are known while running only");
  require(step.rule("accumulate") == "s32_wrap" && is_8bit(step.input(0).type) && is_8bit(step.output().type),
          "no native kernel for these types");
  require_column_multipliers(step);
  if (step.input(1).constant == nullptr) return make_computed_product(step, cores);
  const ConstantMatrix b = constant_matrix(step);
  return make_matmul_layer(step, cores, b.columns, b.depth, b.weights, column_addends(step, b.columns));
}

}  // namespace

std::unique_ptr<Kernel> make_matmul(const Step& step, const CoreSet& cores) {
  if (step.rules.count("real_product") != 0) return make_real_product(step, cores);
  return step.rules.count("store") != 0 ? make_quantized(step, cores) : make_integer_layer(step, cores);
}

}  // namespace bittrue

// matmul: products of real numbers, and rows of quantized values times a constant matrix as a layer.
#include "operators/core/registry.h"
#include "operators/layers/block_product.h"
#include "operators/layers/integer_layer.h"
#include "operators/layers/real_product.h"
#include "operators/layers/tensor_products.h"

namespace bittrue {
namespace {

// One multiplier, or one per column.
void require_column_multipliers(const Step& step) {
  const Array& factor = step.array("factor");
  require(factor.shape.size() <= 1 || factor.shape.back() == factor.count, "multipliers differ by row");
  require(step.array("factor").count == 1 || step.output().shape.empty() || factor.count == step.output().shape.back(),
          "multipliers differ by row");
}

// Whether the second factor is not one matrix that is known.
bool is_computed(const Step& step) {
  return step.input(1).constant == nullptr || (step.input(1).rank() > 2 && matrices_of(step.input(1)) > 1);
}

// Both factors are computed, or the second one is several matrices.
std::unique_ptr<Kernel> make_computed_product(const Step& step, const CoreSet& cores, const char* form) {
  require(!step.has_input(2), "addends of computed products");
  Step product = step;
  product.inputs = {step.inputs[0], step.inputs[1]};
  product.texts["form"] = form;
  return make_tensor_products(product, cores);
}

std::unique_ptr<Kernel> make_quantized(const Step& step, const CoreSet& cores) {
  require(step.integer("late", 0, 1) == 0, "scales are known while running only");
  require((adds_in_pairs(step) || step.rule("accumulate") == "s32_wrap") && is_8bit(step.input(0).type) &&
              is_8bit(step.output().type),
          "no native kernel for these types");
  require_column_multipliers(step);
  if (is_computed(step)) return make_computed_product(step, cores, "quantized");
  const ConstantMatrix b = constant_matrix(step);
  return make_matmul_layer(step, cores, b.columns, b.depth, b.weights, column_addends(step, b.columns));
}

std::unique_ptr<Kernel> make_matmul(const Step& step, const CoreSet& cores) {
  require(step.rules.count("center") == 0, "no native rule for this slot");
  if (step.integers.count("block_size") != 0) return make_block_product(step, cores);
  if (step.texts.count("form") != 0) return make_tensor_products(step, cores);
  if (step.rules.count("real_product") != 0) return make_real_product(step, cores);
  if (step.rules.count("store") != 0) return make_quantized(step, cores);
  const bool unscaled = step.rules.count("scale_back") == 0, late = unscaled && step.integer("late", 0, 1) != 0;
  const bool sums = unscaled && !late;
  const bool plain = step.integers.count("input_zero_point") != 0 && step.integers.count("weight_zero_point") != 0;
  if (sums && plain && is_computed(step)) return make_computed_product(step, cores, "sums");
  if (late && is_computed(step)) {
    // Both zero points are read while running.
    require(!step.has_input(2) && step.integer("transpose_a", 0, 1) == 0, "addends of computed products");
    require(is_8bit(step.input(0).type) && is_8bit(step.input(1).type), "no native kernel for these types");
    Step product = step;
    product.texts["form"] = "sums";
    return make_tensor_products(product, cores);
  }
  return make_integer_layer(step, cores);
}

BITTRUE_OPERATOR(matmul, make_matmul)

}  // namespace
}  // namespace bittrue

// matmul: products of real numbers, and rows of quantized values times a constant matrix as a layer.
#include "operators/core/registry.h"
#include "operators/layers/block_product.h"
#include "operators/layers/computed_products.h"
#include "operators/layers/exact_products.h"
#include "operators/layers/integer_finish.h"
#include "operators/layers/integer_layer.h"
#include "operators/layers/late_layer.h"
#include "operators/layers/real_product.h"
#include "operators/layers/tensor_products.h"
#include "operators/layers/wrapping_products.h"

namespace bittrue {
namespace {

// One multiplier, or one per column.
void require_column_multipliers(const Step& step) {
  const Array& factor = step.array("factor");
  require(factor.shape.size() <= 1 || factor.shape.back() == factor.count, "multipliers differ by row");
  require(step.array("factor").count == 1 || step.output().shape.empty() || factor.count == step.output().shape.back(),
          "multipliers differ by row");
}

// Whether the second factor is one matrix that is known.
bool is_known(const Step& step) {
  return step.input(1).constant != nullptr && (step.input(1).rank() <= 2 || matrices_of(step.input(1)) == 1);
}

std::unique_ptr<Kernel> make_layer(const Step& step, const CoreSet& cores) {
  if (step.rules.count("store") == 0) return make_integer_layer(step, cores);
  const ConstantMatrix b = constant_matrix(step);
  return make_matmul_layer(step, cores, b, column_addends(step, b.columns));
}

std::unique_ptr<Kernel> make_matmul(const Step& step, const CoreSet& cores) {
  if (step.rules.count("center") != 0) return make_matmul(without_center(step), cores);
  if (step.integers.count("block_size") != 0) return make_block_product(step, cores);
  if (step.integers.count("wraps") != 0) return make_wrapping_products(step);
  if (step.texts.count("form") != 0) return make_tensor_products(step, cores);
  if (step.rules.count("real_product") != 0) return make_real_product(step, cores);
  if (needs_late_layer(step)) return make_late_layer(step, cores, make_matmul);
  if (step.rules.count("store") != 0) {
    require(is_8bit(step.output().type), "no native kernel for these types");
    require_column_multipliers(step);
  }
  if (is_known(step)) {
    try {
      return make_layer(step, cores);
    } catch (const NoKernel&) {
      // What layers do not know, rows and columns may have of their own.
    }
  }
  if (is_8bit(step.input(0).type) && is_8bit(step.input(1).type)) {
    return make_computed_products(step, cores, read_products(step));
  }
  require(step.rules.size() == 1 && step.integer("late", 0, 1) == 0 && !step.has_input(ProductOperands::kAddend),
          "no native kernel for these types");
  Step product = step;
  product.texts["form"] = "sums";
  return make_tensor_products(product, cores);
}

std::unique_ptr<Kernel> make_matmul_or_exact(const Step& step, const CoreSet& cores) {
  return make_or_exact(step, cores, make_matmul);
}

BITTRUE_OPERATOR(matmul, make_matmul_or_exact)

}  // namespace
}  // namespace bittrue

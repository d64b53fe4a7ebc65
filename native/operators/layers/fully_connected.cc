// fully_connected: 8-bit layers as a matrix product, all others by the general kernel.
#include "operators/core/registry.h"
#include "operators/layers/general_convolution.h"
#include "operators/layers/integer_layer.h"
#include "operators/layers/real_layer.h"
#include "operators/layers/tiled_layer.h"
#include "operators/layers/tiled_product.h"
#include "operators/layers/whole_layer.h"

namespace bittrue {
namespace {

std::unique_ptr<Kernel> make_fully_connected(const Step& step, const CoreSet& cores) {
  if (step.texts.count("arithmetic") != 0 && step.text("arithmetic") == "whole") return make_whole_layer(step, cores);
  if (TiledProduct::suits(step)) return make_tiled_fully_connected(step, cores);
  if (is_real_layer(step)) return make_real_fully_connected(step, cores);
  if (!suits_matmul(step, 0, 2, true)) return make_general_fully_connected(step, cores);
  const Operand& weights = step.input(1);
  require(weights.rank() == 2, "weights have two axes");
  const ConstantMatrix matrix{signed_weights(weights, step.integer("weight_zero_point"), adds_in_pairs(step)),
                              weights.shape[1], weights.shape[0], false};
  return make_matmul_layer(step, cores, matrix, biases(step, 2, matrix.columns));
}

BITTRUE_OPERATOR(fully_connected, make_fully_connected)

}  // namespace
}  // namespace bittrue

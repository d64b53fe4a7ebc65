// conv2d: 8-bit layers as a matrix product.
#include "operators/matmul_convolution.h"

namespace bittrue {

std::unique_ptr<Kernel> make_conv2d(const Step& step, const CoreSet& cores) {
  const Window window = read_full_window(step);
  const Operand& filter = step.input(1);
  require(is_8bit(step.input(0).type) && step.output().type == step.input(0).type, "activations are not 8-bit");
  require(step.integer("groups") == 1, "groups have no native kernel");
  require(filter.rank() == 4 && filter.shape[0] == window.out_c && filter.shape[1] == window.filter_h &&
              filter.shape[2] == window.filter_w && filter.shape[3] == window.in_c,
          "the filter's shape differs");
  require_32_bits(step);
  return make_matmul_convolution(step, cores, window, signed_weights(filter, step.integer("weight_zero_point")),
                                 biases(step, 2, window.out_c));
}

}  // namespace bittrue

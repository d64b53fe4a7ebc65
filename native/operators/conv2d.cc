// conv2d: 8-bit layers as a matrix product, all others by the general kernel.
#include "operators/general_convolution.h"
#include "operators/matmul_convolution.h"

namespace bittrue {

std::unique_ptr<Kernel> make_conv2d(const Step& step, const CoreSet& cores) {
  const Window window = read_full_window(step);
  const Operand& filter = step.input(1);
  const bool fast = suits_matmul(step) && step.integer("groups") == 1;
  if (!fast) return make_general_conv2d(step, cores);
  require(filter.rank() == 4 && filter.shape[0] == window.out_c && filter.shape[1] == window.filter_h &&
              filter.shape[2] == window.filter_w && filter.shape[3] == window.in_c,
          "the filter's shape differs");
  return make_matmul_convolution(step, cores, window, signed_weights(filter, step.integer("weight_zero_point")),
                                 biases(step, 2, window.out_c));
}

}  // namespace bittrue

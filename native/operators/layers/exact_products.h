// Sums of products of integers of up to 16 bits, which binary64 holds, for layers that no other kernel knows.
#pragma once

#include "core/kernel.h"
#include "operators/layers/tensor_products.h"

namespace bittrue {

// A step of matmul or, with its channels first, of conv. NoKernel for other than plain sums.
[[gnu::cold]] std::unique_ptr<Kernel> make_exact_products(const Step& step, const CoreSet& cores);

// Products that the step's layer says. The same rules: sums, and perhaps how differences are kept.
[[gnu::cold]] std::unique_ptr<Kernel> make_exact_products(const Step& step, const CoreSet& cores,
                                                          const ProductSizes& products);

// What `factory` makes of a step, or, where it knows no kernel for plain sums of integers, what is made above.
[[gnu::cold]] std::unique_ptr<Kernel> make_or_exact(const Step& step, const CoreSet& cores, Factory factory);

}  // namespace bittrue

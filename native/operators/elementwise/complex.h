// A complex number as tensors hold it.
#pragma once

namespace bittrue {

struct Complex {
  float real, imaginary;
};

}  // namespace bittrue

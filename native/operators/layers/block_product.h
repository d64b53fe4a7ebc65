// matmul with constant weights of 2, 4 or 8 bits in blocks, each with a scale and a zero point.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/kernel.h"

namespace bittrue {

// Any number of rows times the same weights.
class BlockProductOfRows {
 public:
  // Rows side by side, their number, what is added to them or null, the results, and as much scratch memory as is asked for.
  struct Given {
    ThreadPool& pool;
    const float* a;
    int64_t rows;
    const float* bias;
    float* out;
    uint8_t* scratch;
  };
  virtual ~BlockProductOfRows() = default;
  // False where an infinity or a NaN arises, or a row has no integers.
  virtual bool run(const Given& given) const = 0;
  virtual int64_t scratch_bytes(int threads, int64_t rows) const = 0;
  virtual std::string note() const = 0;
};

// The step's product by integers, or of real rows with weights of 4 bits, whatever number of rows it has: by what is done for
// a `single` one, or for several.
std::unique_ptr<BlockProductOfRows> make_block_rows(const Step& step, bool single, const CoreSet& cores);

std::unique_ptr<Kernel> make_block_product(const Step& step, const CoreSet& cores);

}  // namespace bittrue

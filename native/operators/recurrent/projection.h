// Products of rows with the weights of a recurrent layer, direction by direction.
#pragma once

#include <memory>

#include "core/kernel.h"
#include "operators/layers/fused_product.h"

namespace bittrue {

// Where the weights lie: columns `first` to `first + columns` of each direction's `all`, which have `depth` terms. At most
// `rows` rows meet them at a time.
struct ProjectionPart {
  size_t input = 0;
  int64_t directions = 1, all = 0, first = 0, columns = 0, depth = 0, rows = 0;
};

class Projection {
 public:
  virtual ~Projection() = default;
  // Memory for what `prepare` makes, and of each worker.
  virtual int64_t shared_bytes() const { return 0; }
  virtual int64_t worker_bytes(int64_t most_rows) const = 0;
  virtual void prepare(const Run& run, int64_t most_rows, uint8_t* shared) const {
    static_cast<void>(run), static_cast<void>(most_rows), static_cast<void>(shared);
  }
  // Whether weights were packed when this was made.
  virtual bool packed() const { return true; }
  // False where a result is no finite number.
  virtual bool multiply(const Run& run, int64_t direction, const float* rows, int64_t count, const Addend& addend,
                        float* out, const uint8_t* shared, uint8_t* scratch) const = 0;
};

// By the rule binary32_fused_blocks, of weights [directions][all][depth]; `packed`: constants count as packed.
std::unique_ptr<Projection> make_real_projection(const Step& step, const CoreSet& cores, const ProjectionPart& part,
                                                 bool packed);
// Rows are quantized, all of them together, and meet constant weights [directions][depth][all] of 8 bits, whose scales
// and zero points are operands `scale` and the one behind it.
std::unique_ptr<Projection> make_quantized_projection(const Step& step, const CoreSet& cores,
                                                      const ProjectionPart& part, size_t scale);

}  // namespace bittrue

// Products of binary32 matrices whose sums go by the tile that a result lies in: the rules binary32_in_tiles and
// binary32_fused_in_tiles of `sum_of_products` (src/bittrue/arithmetic/tiled_products.py). By binary32_fused_from_bias all
// tiles are alike, and begin with a number for each filter.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kernel.h"

namespace bittrue {

class TiledProduct {
 public:
  static constexpr int64_t kRows = 24;  // at a time: whole tiles

  // Every one of `rows` rows meets `filters` rows of weights, all of `terms` numbers.
  TiledProduct(const Step& step, const CoreSet& cores, int64_t filters, int64_t terms, int64_t rows);
  // Whether a step has one of these rules.
  static bool suits(const Step& step);

  int64_t panel() const { return core_.lanes * core_.vectors; }
  int64_t panels() const { return (filters_ + panel() - 1) / panel(); }
  int64_t packed_floats() const { return (terms_ + late()) * padded(); }
  // Weights [filters][terms] as `multiply` takes them beside those.
  void pack(const float* weights, float* packed) const;
  int64_t worker_bytes() const;
  // out[r * filters + f] for filters f of panels [begin, end) and rows [first, first + count) of all, first in whole kRows.
  // `bias` may be null, and is added by binary32_fused_from_bias alone.
  void multiply(const float* const* rows, int64_t first, int64_t count, int64_t begin, int64_t end,
                const float* weights, const float* packed, const float* bias, uint8_t* scratch, float* out) const;

 private:
  enum class Order : uint8_t { row, filter, few, tiles };

  Order order() const;
  int64_t width(int64_t p) const;
  int64_t padded() const;
  // Terms from the last whole four on, where that is walked in another order.
  int64_t late() const { return turns_ && terms_ >= 8 ? terms_ - (terms_ / 4 * 4 - 4) : 0; }
  float alone(const float* row, const float* weights) const;
  void panel_of(const float* const* rows, int64_t first, int64_t count, int64_t p, const float* packed,
                const float* bias, uint8_t* scratch, float* out) const;

  const RealMatmul& core_;
  bool from_bias_, fused_, turns_;
  int64_t filters_, terms_, rows_;
};

}  // namespace bittrue

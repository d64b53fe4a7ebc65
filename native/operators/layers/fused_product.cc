#include "operators/layers/fused_product.h"

#include <algorithm>
#include <cstring>

#include "core/share.h"

namespace bittrue {

int64_t FusedProduct::block_of(int64_t depth, int64_t columns, bool packed) {
  if (packed) return 256;
  int64_t block = 128;
  for (int64_t wide = 128; columns < depth && wide > 16 && wide / 2 >= columns; wide /= 2) block *= 2;
  return block;
}

FusedProduct::FusedProduct(const RealMatmul& core, int64_t depth, int64_t columns, float alpha, bool packed)
    : FusedProduct(core, depth, columns, alpha, block_of(depth, columns, packed)) {}

FusedProduct::FusedProduct(const RealMatmul& core, int64_t depth, int64_t columns, float alpha, int64_t block)
    : core_(core), depth_(depth), stride_(depth), columns_(columns), block_(block), alpha_(alpha) {
  most_ = core_.lanes * core_.vectors;
  panels_ = (columns + most_ - 1) / most_;
}

FusedProduct FusedProduct::within(int64_t depth, int64_t columns) const {
  FusedProduct part(core_, depth, columns, alpha_, block_);
  part.stride_ = stride_;
  return part;
}

int64_t FusedProduct::width(int64_t panel) const {
  const int64_t columns = std::min(most_, columns_ - panel * most_);
  return (columns + core_.lanes - 1) / core_.lanes * core_.lanes;
}

int64_t FusedProduct::worker_bytes() const { return round_up(kMostRows * 8, 64) + round_up(kMostRows * most_ * 4, 64); }

// [depth][width], zeros behind the last column.
void FusedProduct::pack(const float* matrix, bool turned, int64_t p, float* packed) const {
  const int64_t wide = width(p), first = p * most_, used = std::min(wide, columns_ - first);
  float* to = packed + p * most_ * depth_;
  if (!turned) {
    for (int64_t k = 0; k < depth_; ++k, to += wide) {
      std::memcpy(to, matrix + k * columns_ + first, static_cast<size_t>(used) * 4);
      std::fill(to + used, to + wide, 0.0f);
    }
    return;
  }
  // Some terms of all columns at a time, which stay in the cache.
  constexpr int64_t kTogether = 16;
  const float* from = matrix + first * depth_;
  for (int64_t k = 0; k < depth_; k += kTogether, to += kTogether * wide) {
    const int64_t count = std::min(kTogether, depth_ - k);
    for (int64_t n = 0; n < used; ++n) {
      for (int64_t i = 0; i < count; ++i) to[i * wide + n] = from[n * depth_ + k + i];
    }
    for (int64_t i = 0; i < count; ++i) std::fill(to + i * wide + used, to + (i + 1) * wide, 0.0f);
  }
}

void FusedProduct::pack_all(const float* matrix, bool turned, float* packed) const {
  for (int64_t p = 0; p < panels_; ++p) pack(matrix, turned, p, packed);
}

bool FusedProduct::multiply(const float* rows, int64_t count, const float* packed, int64_t p, const Addend& addend,
                            float* out, int64_t out_step, uint8_t* scratch) const {
  const int64_t wide = width(p), first = p * most_, used = std::min(most_, columns_ - first);
  const float* panel = packed + first * stride_;
  auto** pointers = reinterpret_cast<const float**>(scratch);
  const bool whole = used == wide;
  RealRows product;
  product.rows = pointers;
  product.capacity = product.count = count;
  product.depth = depth_;
  product.part = block_;
  product.factor = alpha_;
  product.sums = whole ? out + first : reinterpret_cast<float*>(scratch + round_up(kMostRows * 8, 64));
  product.stride = whole ? out_step : wide;
  for (int64_t r = 0; r < count; ++r) pointers[r] = rows + r * stride_;
  if (addend.from == nullptr) {
    product.begins = kNothing.numbers;
  } else if (whole && addend.across == 1) {
    product.begins = addend.from + first;
    product.begins_stride = addend.down;
  } else {
    for (int64_t r = 0; r < count; ++r) {
      float* sums = product.sums + r * product.stride;
      const float* from = addend.from + r * addend.down + first * addend.across;
      if (addend.across == 0) {
        std::fill_n(sums, wide, *from);
      } else {
        std::copy_n(from, used, sums);
        std::fill(sums + used, sums + wide, 0.0f);
      }
    }
  }
  const bool finite = core_.run_in_parts(product, panel, wide);
  for (int64_t r = 0; !whole && r < count; ++r) {
    std::memcpy(out + r * out_step + first, product.sums + r * wide, static_cast<size_t>(used) * 4);
  }
  return finite;
}

bool FusedProduct::multiply_all(const float* rows, int64_t count, const float* packed, const Addend& addend, float* out,
                                int64_t out_step, uint8_t* scratch) const {
  bool finite = true;
  for (int64_t r = 0; r < count; r += kRows) {
    Addend own = addend;
    if (own.from != nullptr) own.from += r * own.down;
    for (int64_t p = 0; p < panels_; ++p) {
      finite &= multiply(rows + r * stride_, std::min(kRows, count - r), packed, p, own, out + r * out_step, out_step,
                         scratch);
    }
  }
  return finite;
}

}  // namespace bittrue

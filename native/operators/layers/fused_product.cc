#include "operators/layers/fused_product.h"

#include <algorithm>
#include <cstring>

#include "core/share.h"

namespace bittrue {

template <class T>
int64_t FusedProductOf<T>::block_of(int64_t depth, int64_t columns, bool packed) {
  if (packed) return 256;
  int64_t block = 128;
  for (int64_t wide = 512 / static_cast<int64_t>(sizeof(T)); columns < depth && wide > 16 && wide / 2 >= columns;
       wide /= 2)
    block *= 2;
  return block;
}

template <class T>
FusedProductOf<T>::FusedProductOf(const MatmulOf<T>& core, int64_t depth, int64_t columns, T alpha, bool packed)
    : FusedProductOf(core, depth, columns, alpha, block_of(depth, columns, packed)) {}

template <class T>
FusedProductOf<T>::FusedProductOf(const MatmulOf<T>& core, int64_t depth, int64_t columns, T alpha, int64_t block)
    : core_(core), depth_(depth), stride_(depth), columns_(columns), block_(block), alpha_(alpha) {
  most_ = core_.lanes * core_.vectors;
  panels_ = (columns + most_ - 1) / most_;
}

template <class T>
FusedProductOf<T> FusedProductOf<T>::within(int64_t depth, int64_t columns) const {
  FusedProductOf part(core_, depth, columns, alpha_, block_);
  part.stride_ = stride_;
  return part;
}

template <class T>
int64_t FusedProductOf<T>::width(int64_t panel) const {
  const int64_t columns = std::min(most_, columns_ - panel * most_);
  return (columns + core_.lanes - 1) / core_.lanes * core_.lanes;
}

template <class T>
int64_t FusedProductOf<T>::worker_bytes() const {
  return round_up(kMostRows * 8, 64) + round_up(kMostRows * most_ * static_cast<int64_t>(sizeof(T)), 64);
}

// [depth][width], zeros behind the last column.
template <class T>
void FusedProductOf<T>::pack(const T* matrix, bool turned, int64_t p, T* packed) const {
  const int64_t wide = width(p), first = p * most_, used = std::min(wide, columns_ - first);
  T* to = packed + p * most_ * depth_;
  if (!turned) {
    for (int64_t k = 0; k < depth_; ++k, to += wide) {
      std::memcpy(to, matrix + k * columns_ + first, static_cast<size_t>(used) * sizeof(T));
      std::fill(to + used, to + wide, T{0});
    }
    return;
  }
  // Some terms of all columns at a time, which stay in the cache.
  constexpr int64_t kTogether = 16;
  const T* from = matrix + first * depth_;
  for (int64_t k = 0; k < depth_; k += kTogether, to += kTogether * wide) {
    const int64_t count = std::min(kTogether, depth_ - k);
    for (int64_t n = 0; n < used; ++n) {
      for (int64_t i = 0; i < count; ++i) to[i * wide + n] = from[n * depth_ + k + i];
    }
    for (int64_t i = 0; i < count; ++i) std::fill(to + i * wide + used, to + (i + 1) * wide, T{0});
  }
}

template <class T>
void FusedProductOf<T>::pack_all(const T* matrix, bool turned, T* packed) const {
  for (int64_t p = 0; p < panels_; ++p) pack(matrix, turned, p, packed);
}

template <class T>
bool FusedProductOf<T>::multiply(const T* rows, int64_t count, const T* packed, int64_t p, const AddendOf<T>& addend,
                                 T* out, int64_t out_step, uint8_t* scratch) const {
  const int64_t wide = width(p), first = p * most_, used = std::min(most_, columns_ - first);
  const T* panel = packed + first * stride_;
  auto** pointers = reinterpret_cast<const T**>(scratch);
  const bool whole = used == wide;
  RowsOf<T> product;
  product.rows = pointers;
  product.capacity = product.count = count;
  product.depth = depth_;
  product.part = block_;
  product.factor = alpha_;
  product.sums = whole ? out + first : reinterpret_cast<T*>(scratch + round_up(kMostRows * 8, 64));
  product.stride = whole ? out_step : wide;
  for (int64_t r = 0; r < count; ++r) pointers[r] = rows + r * stride_;
  if (addend.from == nullptr) {
    product.begins = kNothing<T>.numbers;
  } else if (whole && addend.across == 1) {
    product.begins = addend.from + first;
    product.begins_stride = addend.down;
  } else {
    for (int64_t r = 0; r < count; ++r) {
      T* sums = product.sums + r * product.stride;
      const T* from = addend.from + r * addend.down + first * addend.across;
      if (addend.across == 0) {
        std::fill_n(sums, wide, *from);
      } else {
        std::copy_n(from, used, sums);
        std::fill(sums + used, sums + wide, T{0});
      }
    }
  }
  const bool finite = core_.run_in_parts(product, panel, wide);
  for (int64_t r = 0; !whole && r < count; ++r) {
    std::memcpy(out + r * out_step + first, product.sums + r * wide, static_cast<size_t>(used) * sizeof(T));
  }
  return finite;
}

template <class T>
bool FusedProductOf<T>::multiply_all(const T* rows, int64_t count, const T* packed, const AddendOf<T>& addend, T* out,
                                     int64_t out_step, uint8_t* scratch) const {
  bool finite = true;
  for (int64_t r = 0; r < count; r += kRows) {
    AddendOf<T> own = addend;
    if (own.from != nullptr) own.from += r * own.down;
    for (int64_t p = 0; p < panels_; ++p) {
      finite &= multiply(rows + r * stride_, std::min(kRows, count - r), packed, p, own, out + r * out_step, out_step,
                         scratch);
    }
  }
  return finite;
}

template class FusedProductOf<float>;
template class FusedProductOf<double>;

}  // namespace bittrue

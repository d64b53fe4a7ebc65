// Which elements of a tensor share a scale and a zero point that are operands: all, those of a slice, or those of a block.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/kernel.h"

namespace bittrue {

// Rows of neighbours that share a scale, or have consecutive ones where `apart`.
struct SliceWalk {
  static constexpr int64_t kBlock = 4096;  // the longest stretch

  int64_t rows = 1, length = 1, per_axis = 1;  // rows of one position of the axes before the scales' one
  int64_t dimension = 1, block = 1, inner = 1, count = 1;
  bool apart = false, blocked = false;

  [[gnu::cold]] explicit SliceWalk(const Step& step);

  // body(first element, its scale, count) for stretches of one scale, or of consecutive ones where `apart`.
  template <class Body>
  void run(ThreadPool& pool, const Body& body) const {
    each(
        pool,
        [](const void* f, int64_t first, int64_t scale, int64_t elements) {
          (*static_cast<const Body*>(f))(first, scale, elements);
        },
        &body);
  }

  // All elements that share the scale of `element`, where they are neighbours.
  struct Range {
    int64_t begin, end;
  };
  Range range_of(int64_t element) const {
    if (!blocked) return {element / inner * inner, element / inner * inner + inner};
    const int64_t row = element / dimension * dimension, begin = (element - row) / block * block;
    return {row + begin, row + std::min(dimension, begin + block)};
  }

 private:
  using Call = void (*)(const void* body, int64_t first, int64_t scale, int64_t elements);
  void each(ThreadPool& pool, Call call, const void* body) const;
};

}  // namespace bittrue

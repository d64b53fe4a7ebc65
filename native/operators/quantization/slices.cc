#include "operators/quantization/slices.h"

namespace bittrue {

SliceWalk::SliceWalk(const Step& step) {
  const Operand& in = step.input(0);
  require(in.elements == step.output().elements && in.dense() && step.output().dense(), "both sides must be dense");
  const int64_t axis = step.integer("axis", -1, in.rank() - 1);
  int64_t outer = 1;
  block = step.integer("block_size", 0, int64_t{1} << 40);
  blocked = block > 0;
  inner = in.elements;
  if (axis >= 0) {
    dimension = in.shape[axis];
    inner = 1;
    for (int64_t i = 0; i < axis; ++i) outer *= in.shape[i];
    for (int64_t i = axis + 1; i < in.rank(); ++i) inner *= in.shape[i];
  }
  if (!blocked) block = 1;
  const int64_t blocks = (dimension + block - 1) / block;
  count = blocked ? outer * blocks * inner : dimension;
  apart = axis >= 0 && (blocked ? inner > 1 : inner == 1);
  per_axis = apart && !blocked ? 1 : apart || !blocked ? dimension : blocks;
  rows = outer * per_axis;
  length = !apart && blocked ? block : apart && !blocked ? dimension : inner;
}

void SliceWalk::each(ThreadPool& pool, Call call, const void* body) const {
  const int64_t per_row = (length + kBlock - 1) / kBlock, tasks = rows * per_row;
  // Many short rows go together.
  const int64_t together = std::max<int64_t>(1, kBlock / std::max<int64_t>(1, length));
  const int threads = rows * length < 4 * kBlock ? 1 : pool.threads();
  pool.parallel((tasks + together - 1) / together, threads, [&](int64_t group, int) {
    // Counted on, since dividing takes longer than a short stretch.
    const int64_t begin = group * together, last = std::min(tasks, begin + together);
    int64_t row = begin / per_row, from = begin % per_row * kBlock, outer = row / per_axis, place = row % per_axis;
    for (int64_t i = begin; i < last; ++i) {
      int64_t first = row * length, scale = place, left = length;
      if (apart) {
        scale = blocked ? (outer * ((dimension + block - 1) / block) + place / block) * inner : 0;
      } else if (blocked) {
        first = outer * dimension + place * block;
        scale = row;
        left = std::min(block, dimension - place * block);
      }
      if (from < left) call(body, first + from, apart ? scale + from : scale, std::min(kBlock, left - from));
      from += kBlock;
      if (from < length) continue;
      from = 0, ++row;
      if (++place == per_axis) place = 0, ++outer;
    }
  });
}

}  // namespace bittrue

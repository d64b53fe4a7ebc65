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
    const int64_t last = std::min(tasks, (group + 1) * together);
    for (int64_t i = group * together; i < last; ++i) {
      const int64_t row = i / per_row, place = row % per_axis, from = i % per_row * kBlock;
      int64_t first = row * length, scale = place, left = length;
      if (apart) {
        scale = blocked ? (row / per_axis * ((dimension + block - 1) / block) + place / block) * inner : 0;
      } else if (blocked) {
        first = row / per_axis * dimension + place * block;
        scale = row;
        left = std::min(block, dimension - place * block);
      }
      if (from < left) call(body, first + from, apart ? scale + from : scale, std::min(kBlock, left - from));
    }
  });
}

}  // namespace bittrue

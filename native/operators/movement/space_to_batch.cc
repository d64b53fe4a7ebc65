// space_to_batch and batch_to_space: blocks of positions against groups of batches, with padding or cropping.
#include <algorithm>

#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

// BatchBlocks beyond this are left to the reference: every place of a block is a copy of its own.
constexpr int64_t kMostPlaces = 4096;

// A tensor as [batch, height, width, depth]; rank 3 has width 1.
struct Image {
  int64_t batch, height, width, depth;
  int64_t strides[4];

  explicit Image(const Operand& operand) {
    require(operand.rank() == 3 || operand.rank() == 4, "images have three or four axes");
    const bool flat = operand.rank() == 3;
    batch = operand.shape[0], height = operand.shape[1];
    width = flat ? 1 : operand.shape[2], depth = operand.shape.back();
    const std::vector<int64_t> found = byte_strides(operand);
    strides[0] = found[0], strides[1] = found[1], strides[2] = flat ? found[1] : found[2], strides[3] = found.back();
  }
};

// Positions begin, begin + block, ... of the wide image's axis that lie in [0, dimension), begin = place - before:
// the first one that does, as a position of the block's own image, and how many.
struct Stretch {
  int64_t first, count;

  Stretch(int64_t place, int64_t before, int64_t block, int64_t dimension, int64_t blocks) {
    const int64_t begin = place - before;
    first = begin >= 0 ? 0 : (-begin + block - 1) / block;
    const int64_t end = dimension > begin ? (dimension - begin + block - 1) / block : 0;
    first = std::min(first, blocks);
    count = std::max<int64_t>(0, std::min(end, blocks) - first);
  }
};

struct BatchBlocks {
  int64_t h, w, top, left;

  explicit BatchBlocks(const Step& step) {
    constexpr int64_t kMost = int64_t{1} << 31;
    const std::vector<int64_t>&block = step.list("block"), &before = step.list("before");
    require(block.size() == 2 && before.size() == 2, "two spatial axes are needed");
    h = block[0], w = block[1], top = before[0], left = before[1];
    require(h >= 1 && w >= 1 && h <= kMostPlaces && w <= kMostPlaces / h, "the block is too large");
    require(top > -kMost && top < kMost && left > -kMost && left < kMost, "the border is too large");
  }
};

// `wide` has the blocks of positions, `deep` the groups of batches: deep[(i * bw + j) * N + n, y, x, c] =
// wide[n, y * bh + i - top, x * bw + j - left, c] where that lies inside of `wide`.
void check(const Image& wide, const Image& deep, const BatchBlocks& block) {
  require(deep.batch % (block.h * block.w) == 0 && deep.batch / (block.h * block.w) == wide.batch &&
              deep.depth == wide.depth,
          "the shapes do not fit");
}

class SpaceToBatch final : public Kernel {
 public:
  explicit SpaceToBatch(const Step& step) {
    require_same_type(step.input(0), step.output());
    const Image wide(step.input(0)), deep(step.output());
    const BatchBlocks block(step);
    check(wide, deep, block);
    store_element(step.output().type, step.integer("value"), value_);
    for (int64_t i = 0; i < block.h; ++i) {
      const Stretch rows(i, block.top, block.h, wide.height, deep.height);
      for (int64_t j = 0; j < block.w; ++j) {
        const Stretch columns(j, block.left, block.w, wide.width, deep.width);
        const std::vector<PaddedAxis> axes = {
            {wide.batch, 0, wide.batch, wide.strides[0], deep.strides[0]},
            {rows.count, rows.first, deep.height, wide.strides[1] * block.h, deep.strides[1]},
            {columns.count, columns.first, deep.width, wide.strides[2] * block.w, deep.strides[2]},
            {wide.depth, 0, wide.depth, wide.strides[3], deep.strides[3]},
        };
        const int64_t y = rows.first * block.h + i - block.top, x = columns.first * block.w + j - block.left;
        parts_.emplace_back(axes, type_bytes(step.output().type), y * wide.strides[1] + x * wide.strides[2],
                            (i * block.w + j) * wide.batch * deep.strides[0]);
      }
    }
  }

  void run(const Run& run) const override {
    for (const PaddedCopy& part : parts_) part.run(run.inputs[0], value_, run.outputs[0], run.pool);
  }
  bool packs(size_t input) const override { return input != 0; }
  std::string note() const override { return "strided copies"; }

 private:
  std::vector<PaddedCopy> parts_;
  uint8_t value_[kLargestElement];
};

class BatchToSpace final : public Kernel {
 public:
  explicit BatchToSpace(const Step& step) {
    require_same_type(step.input(0), step.output());
    const Image wide(step.output()), deep(step.input(0));
    const BatchBlocks block(step);
    check(wide, deep, block);
    require(block.top >= 0 && block.left >= 0 && wide.height <= deep.height * block.h - block.top &&
                wide.width <= deep.width * block.w - block.left,
            "the crops do not fit");
    for (int64_t i = 0; i < block.h; ++i) {
      const Stretch rows(i, block.top, block.h, wide.height, deep.height);
      for (int64_t j = 0; j < block.w; ++j) {
        const Stretch columns(j, block.left, block.w, wide.width, deep.width);
        const std::vector<CopyAxis> axes = {
            {wide.batch, deep.strides[0], wide.strides[0]},
            {rows.count, deep.strides[1], wide.strides[1] * block.h},
            {columns.count, deep.strides[2], wide.strides[2] * block.w},
            {wide.depth, deep.strides[3], wide.strides[3]},
        };
        const int64_t y = rows.first * block.h + i - block.top, x = columns.first * block.w + j - block.left;
        const int64_t source = (i * block.w + j) * wide.batch * deep.strides[0] + rows.first * deep.strides[1] +
                               columns.first * deep.strides[2];
        parts_.emplace_back(axes, type_bytes(step.output().type), source, y * wide.strides[1] + x * wide.strides[2]);
      }
    }
  }

  void run(const Run& run) const override {
    for (const StridedCopy& part : parts_) part.run(run.inputs[0], run.outputs[0], run.pool);
  }
  bool packs(size_t input) const override { return input != 0; }
  std::string note() const override { return "strided copies"; }

 private:
  std::vector<StridedCopy> parts_;
};

std::unique_ptr<Kernel> make_space_to_batch(const Step& step, const CoreSet&) {
  return std::make_unique<SpaceToBatch>(step);
}

std::unique_ptr<Kernel> make_batch_to_space(const Step& step, const CoreSet&) {
  return std::make_unique<BatchToSpace>(step);
}

BITTRUE_OPERATOR(batch_to_space, make_batch_to_space)
BITTRUE_OPERATOR(space_to_batch, make_space_to_batch)

}  // namespace
}  // namespace bittrue

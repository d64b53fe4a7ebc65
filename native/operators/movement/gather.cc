// gather and gather_nd: slices picked by position. GatheredPositions outside of the tensor have no defined result; with `wraps`,
// negative ones count from the back.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/embedding_lookup.h"
#include "operators/movement/gather_blocks.h"
#include "operators/movement/strided_copy.h"
#include "operators/movement/table_copy.h"

namespace bittrue {
namespace {

// Integers of an operand that is constant or computed at run time.
class GatheredPositions {
 public:
  explicit GatheredPositions(const Operand& operand) : type_(operand.type), count_(operand.elements) {
    require(operand.dense(), "positions must be dense");
    require(type_ == Type::s16 || type_ == Type::s32 || type_ == Type::s64, "positions must be integers");
    constant_ = operand.constant != nullptr;
    if (constant_) values_ = operand.integers();
  }
  bool constant() const { return constant_; }
  int64_t count() const { return count_; }
  int64_t at(const uint8_t* stored, int64_t i) const {
    if (constant_) return values_[i];
    return type_ == Type::s16   ? reinterpret_cast<const int16_t*>(stored)[i]
           : type_ == Type::s32 ? reinterpret_cast<const int32_t*>(stored)[i]
                                : reinterpret_cast<const int64_t*>(stored)[i];
  }
  // Positions [first, first + count): where they lie, narrow ones in `room`.
  const int64_t* from(const uint8_t* stored, int64_t first, int64_t count, int64_t* room) const {
    if (constant_) return values_.data() + first;
    if (type_ == Type::s64) return reinterpret_cast<const int64_t*>(stored) + first;
    for (int64_t i = 0; i < count; ++i) room[i] = at(stored, first + i);
    return room;
  }

 private:
  Type type_;
  int64_t count_;
  bool constant_;
  std::vector<int64_t> values_;
};

// What both operators share: a table of where each slice begins, made once or in every run.
class GatheredPlaces : public Kernel {
 public:
  GatheredPlaces(const Step& step, TableCopy copy, int64_t entries)
      : positions_(step.input(1)), copy_(std::move(copy)), entries_(entries) {}

  void run(const Run& run) const override {
    if (positions_.constant()) return copy_.run(run.inputs[0], table_.data(), run.outputs[0], run.pool);
    auto* table = reinterpret_cast<int64_t*>(run.scratch);
    if (!make_table(run.inputs[1], table)) throw Undefined();
    copy_.run(run.inputs[0], table, run.outputs[0], run.pool);
  }
  int64_t scratch_bytes(int) const override { return positions_.constant() ? 0 : entries_ * 8; }
  bool packs(size_t input) const override { return input == 1 && positions_.constant(); }
  std::string note() const override { return "table of positions"; }

 protected:
  // False when a position lies outside of the tensor.
  virtual bool make_table(const uint8_t* stored, int64_t* table) const = 0;
  // For constructors of derived classes, last.
  void prepare() {
    if (!positions_.constant()) return;
    table_.resize(static_cast<size_t>(entries_));
    require(make_table(nullptr, table_.data()), "a position lies outside of the tensor");
  }

  GatheredPositions positions_;

 private:
  TableCopy copy_;
  std::vector<int64_t> table_;
  int64_t entries_;
};

void require_movable(const Step& step) {
  require_same_type(step.input(0), step.output());
  require(step.input(0).dense() && step.output().dense(), "both sides must be dense");
}

// The dimensions multiply to `elements`; a dimension of 0 hides what the others are.
void require_product(std::initializer_list<int64_t> dimensions, int64_t elements) {
  int64_t product = 1;
  for (const int64_t dimension : dimensions) {
    require(dimension >= 0 && (dimension == 0 || product <= (int64_t{1} << 48) / dimension), "impossible dimensions");
    product *= dimension;
  }
  require(product == elements, "the shapes do not fit");
}

// The tensor as [batch, outer, dimension, inner], the positions as [batch, count].
struct GatherShape {
  int64_t batch, outer, dimension, inner, count, chunk;
  bool empty;

  explicit GatherShape(const Step& step)
      : batch(step.integer("batch")),
        outer(step.integer("outer")),
        dimension(step.integer("dimension")),
        inner(step.integer("inner")),
        count(step.integer("count")) {
    require_movable(step);
    require_product({batch, outer, dimension, inner}, step.input(0).elements);
    require_product({batch, count}, step.input(1).elements);
    require_product({batch, outer, count, inner}, step.output().elements);
    chunk = inner * type_bytes(step.output().type);
    empty = step.output().elements == 0;
  }
  // One table for all batches and outer positions, or one that all outer positions share.
  int64_t entries() const { return empty ? 0 : batch == 1 ? count : batch * outer * count; }
  TableCopy copy() const {
    if (empty) return TableCopy({}, 0, 0, 1);
    if (batch != 1) return TableCopy({}, entries(), chunk, chunk);
    return TableCopy({{plain_table(outer, dimension * chunk), count * chunk}}, count, chunk, chunk);
  }
};

class Gather final : public GatheredPlaces {
 public:
  Gather(const Step& step, const GatherShape& shape)
      : GatheredPlaces(step, shape.copy(), shape.entries()), shape_(shape), wraps_(step.integer("wraps", 0, 1) != 0) {
    prepare();
  }

 private:
  bool make_table(const uint8_t* stored, int64_t* table) const override {
    const GatherShape& s = shape_;
    // As the reference: an upper bound is only met when something is read, a negative position never passes.
    const int64_t limit = wraps_ || s.batch * s.outer != 0 ? s.dimension : std::numeric_limits<int64_t>::max();
    const int64_t least = wraps_ ? -s.dimension : 0;
    for (int64_t i = 0; i < positions_.count(); ++i) {
      const int64_t p = positions_.at(stored, i);
      if (p < least || p >= limit) return false;
    }
    if (s.empty) return true;
    for (int64_t b = 0; b < s.batch; ++b) {
      for (int64_t o = 0; o < (s.batch == 1 ? 1 : s.outer); ++o) {
        for (int64_t k = 0; k < s.count; ++k) {
          const int64_t p = positions_.at(stored, b * s.count + k);
          *table++ = ((b * s.outer + o) * s.dimension + p + (p < 0 ? s.dimension : 0)) * s.chunk;
        }
      }
    }
    return true;
  }

  GatherShape shape_;
  bool wraps_;
};

// The tensor as [batch, dimensions..., inner], the positions as [batch, count, number of dimensions].
struct GatherNdShape {
  std::vector<int64_t> dimensions;
  int64_t batch, count, block = 1, chunk;
  bool wraps;

  explicit GatherNdShape(const Step& step)
      : dimensions(step.list("sizes")),
        batch(step.integer("batch")),
        count(step.integer("count")),
        wraps(step.integer("wraps", 0, 1) != 0) {
    require_movable(step);
    const int64_t inner = step.integer("inner");
    for (const int64_t dimension : dimensions) {
      require(dimension >= 0 && (dimension == 0 || block <= (int64_t{1} << 48) / dimension), "impossible dimensions");
      block *= dimension;
    }
    require_product({batch, block, inner}, step.input(0).elements);
    require_product({batch, count, static_cast<int64_t>(dimensions.size())}, step.input(1).elements);
    require_product({batch, count, inner}, step.output().elements);
    // What nothing is read for needs no table, however often; from either end, its positions do not matter.
    if (step.output().elements == 0 && (wraps || step.input(1).elements == 0)) count = 0;
    chunk = inner * type_bytes(step.output().type);
  }
};

class GatherNd final : public GatheredPlaces {
 public:
  GatherNd(const Step& step, const GatherNdShape& shape)
      : GatheredPlaces(step, TableCopy({}, shape.batch * shape.count, shape.chunk, shape.chunk),
                       shape.batch * shape.count),
        shape_(shape) {
    prepare();
  }

 private:
  bool make_table(const uint8_t* stored, int64_t* table) const override {
    int64_t i = 0;
    for (int64_t slice = 0; slice < shape_.batch * shape_.count; ++slice) {
      int64_t flat = slice / shape_.count;
      for (const int64_t dimension : shape_.dimensions) {
        const int64_t p = positions_.at(stored, i++);
        if (p < (shape_.wraps ? -dimension : 0) || p >= dimension) return false;
        flat = flat * dimension + p + (p < 0 ? dimension : 0);
      }
      table[slice] = flat * shape_.chunk;
    }
    return true;
  }

  GatherNdShape shape_;
};

// Each position picks an element along the axis, at its own place along the others, which may end earlier.
class GatherElements final : public Kernel {
 public:
  explicit GatherElements(const Step& step)
      : positions_(step.input(1)),
        source_(step.input(0).shape),
        shape_(step.input(1).shape),
        size_(type_bytes(step.output().type)) {
    require_movable(step);
    const int rank = step.input(0).rank();
    axis_ = step.integer("axis", 0, rank - 1);
    require(step.input(1).rank() == rank && step.output().shape == shape_, "the shapes do not fit");
    for (int i = 0; i < rank; ++i) require(i == axis_ || shape_[i] <= source_[i], "the shapes do not fit");
  }

  bool packs(size_t input) const override { return input == 1 && positions_.constant(); }
  std::string note() const override { return "elements at positions"; }

  void run(const Run& run) const override {
    const int64_t rows = positions_.count() == 0 ? 0 : positions_.count() / shape_.back();
    const int64_t together = std::max<int64_t>(1, kTogether / std::max<int64_t>(1, shape_.back()));
    std::atomic<bool> inside{true};
    run.pool.parallel((rows + together - 1) / together, [&](int64_t task, int) {
      for (int64_t r = task * together; r < std::min(rows, (task + 1) * together); ++r) {
        if (!row(run, r)) inside.store(false, std::memory_order_relaxed);
      }
    });
    if (!inside.load(std::memory_order_relaxed)) throw Undefined();
  }

 private:
  static constexpr int64_t kTogether = 8192, kPart = 512;

  // A row of the last axis. False where a position lies outside.
  bool row(const Run& run, int64_t r) const {
    const int64_t last = static_cast<int64_t>(shape_.size()) - 1, length = shape_[last];
    // Where it begins in the source, but for what the positions say, and how far neighbours lie apart.
    int64_t begin = 0, step = axis_ == last ? size_ : 0, stride = source_[last] * size_;
    for (int64_t a = last - 1, rest = r; a >= 0; --a) {
      if (a == axis_) step = stride;
      if (a != axis_) begin += rest % shape_[a] * stride;
      rest /= shape_[a];
      stride *= source_[a];
    }
    const uint8_t* from = run.inputs[0] + begin;
    uint8_t* to = run.outputs[0] + r * length * size_;
    const int64_t next = axis_ == last ? 0 : size_;
    int64_t room[kPart];
    for (int64_t i = 0; i < length; i += kPart, from += kPart * next, to += kPart * size_) {
      const int64_t count = std::min(kPart, length - i);
      const int64_t* positions = positions_.from(run.inputs[1], r * length + i, count, room);
      const auto pick = size_ == 1   ? pick_some<1>
                        : size_ == 2 ? pick_some<2>
                        : size_ == 4 ? pick_some<4>
                        : size_ == 8 ? pick_some<8>
                                     : pick_some<0>;
      if (!pick({from, next, step, source_[axis_], size_}, positions, count, to)) return false;
    }
    return true;
  }

  struct Line {
    const uint8_t* from;
    int64_t next, step, dimension, size;
  };
  template <int kSize>
  static bool pick_some(const Line& line, const int64_t* positions, int64_t count, uint8_t* to) {
    // Along the last axis all elements come from one row.
    if (line.next == 0) return pick_beside<kSize, true>(line, positions, count, to);
    return pick_beside<kSize, false>(line, positions, count, to);
  }
  template <int kSize, bool kOneRow>
  static bool pick_beside(const Line& line, const int64_t* positions, int64_t count, uint8_t* to) {
    const int64_t size = kSize == 0 ? line.size : kSize, dimension = line.dimension;
    const int64_t step = kOneRow ? size : line.step, next = kOneRow ? 0 : line.next;
    const uint8_t* from = line.from;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t p = positions[i], place = p + ((p >> 63) & dimension);
      if (static_cast<uint64_t>(place) >= static_cast<uint64_t>(dimension)) return false;
      std::memcpy(to + i * size, from + i * next + place * step, static_cast<size_t>(size));
    }
    return true;
  }

  GatheredPositions positions_;
  std::vector<int64_t> source_, shape_;
  int64_t size_, axis_ = 0;
};

std::unique_ptr<Kernel> make_gather(const Step& step, const CoreSet&) {
  if (step.has_array("scales")) return make_embedding_lookup(step);
  if (step.integers.count("block_axis") != 0) return make_gather_blocks(step);
  if (step.integers.count("axis") != 0) return std::make_unique<GatherElements>(step);
  return std::make_unique<Gather>(step, GatherShape(step));
}

std::unique_ptr<Kernel> make_gather_nd(const Step& step, const CoreSet&) {
  return std::make_unique<GatherNd>(step, GatherNdShape(step));
}

BITTRUE_OPERATOR(gather, make_gather)
BITTRUE_OPERATOR(gather_nd, make_gather_nd)

}  // namespace
}  // namespace bittrue

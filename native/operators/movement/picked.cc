// reverse_sequence, matrix_set_diag, triangle and unpool: elements whose places follow from positions that are operands or from
// axes. Lengths and positions that lie outside have no defined result.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/core/sizes.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

// Position i of an operand of 32- or 64-bit integers.
int64_t position(const uint8_t* stored, bool wide, int64_t i) {
  return wide ? reinterpret_cast<const int64_t*>(stored)[i] : reinterpret_cast<const int32_t*>(stored)[i];
}

void require_positions(const Operand& operand) {
  require((operand.type == Type::s32 || operand.type == Type::s64) && operand.dense(), "positions are integers");
}

// The tensor as [before, first axis, between, second axis, after] with the sequence and the batch in either order.
class ReverseSequence final : public Kernel {
 public:
  explicit ReverseSequence(const Step& step) {
    const Operand &in = step.input(0), &lengths = step.input(1), &out = step.output();
    require_same_type(in, out);
    require_positions(lengths);
    const int rank = in.rank();
    const int64_t along = step.integer("along", 0, rank - 1), batch = step.integer("batch", 0, rank - 1);
    require(in.dense() && out.dense() && in.shape == out.shape && along != batch, "the shapes do not fit");
    require(lengths.elements == in.shape[batch], "one length per position of the batch is needed");
    wide_ = lengths.type == Type::s64, batch_first_ = batch < along;
    const int64_t low = std::min(along, batch), high = std::max(along, batch);
    for (int axis = 0; axis < rank; ++axis) {
      int64_t& size = axis < low ? before_ : axis < high ? between_ : after_;
      if (axis != low && axis != high) size *= in.shape[axis];
    }
    size_ = in.shape[along], count_ = in.shape[batch];
    chunk_ = after_ * type_bytes(in.type);
  }

  std::string note() const override { return "slices, backwards to a length"; }

  void run(const Run& run) const override {
    if (before_ * between_ * size_ * count_ * chunk_ == 0) return;
    for (int64_t b = 0; b < count_; ++b) {
      const int64_t length = position(run.inputs[1], wide_, b);
      if (length > size_ || length < -kMost) throw Undefined();
    }
    const int64_t rows = batch_first_ ? count_ : size_, columns = batch_first_ ? size_ : count_;
    run.pool.parallel(before_ * rows, [&](int64_t task, int) {
      const int64_t outer = task / rows, row = task % rows;
      for (int64_t between = 0; between < between_; ++between) {
        for (int64_t column = 0; column < columns; ++column) {
          const int64_t b = batch_first_ ? row : column, at = batch_first_ ? column : row;
          const int64_t length = position(run.inputs[1], wide_, b), from = at < length ? length - 1 - at : at;
          const int64_t source_row = batch_first_ ? row : from, source_column = batch_first_ ? from : column;
          const int64_t target = ((outer * rows + row) * between_ + between) * columns + column;
          const int64_t source = ((outer * rows + source_row) * between_ + between) * columns + source_column;
          std::memcpy(run.outputs[0] + target * chunk_, run.inputs[0] + source * chunk_, static_cast<size_t>(chunk_));
        }
      }
    });
  }

 private:
  static constexpr int64_t kMost = 2147483647;

  bool wide_ = false, batch_first_ = false;
  int64_t before_ = 1, between_ = 1, after_ = 1, size_ = 0, count_ = 0, chunk_ = 0;
};

class SetDiagonal final : public Kernel {
 public:
  explicit SetDiagonal(const Step& step) : given_(step.has_input(0)) {
    const Operand &diagonal = step.input(1), &out = step.output();
    require_same_type(diagonal, out);
    constexpr int64_t kMost = int64_t{1} << 40;
    batch_ = step.integer("batch", 0, kMost), rows_ = step.integer("rows", 0, kMost);
    columns_ = step.integer("columns", 0, kMost);
    item_ = type_bytes(out.type);
    const int64_t length = std::min(rows_, columns_);
    require(diagonal.dense() && out.dense() && elements_of({batch_, rows_, columns_}) == out.elements,
            "the shapes do not fit");
    require(diagonal.elements >= elements_of({batch_, length}), "a diagonal is too short");
    if (given_) {
      require_same_type(step.input(0), out);
      require(step.input(0).dense() && step.input(0).elements == out.elements, "the shapes do not fit");
    } else {
      store_element(out.type, 0, zero_);
    }
  }

  std::string note() const override { return "matrices and their diagonals"; }

  void run(const Run& run) const override {
    const int64_t line = columns_ * item_, length = std::min(rows_, columns_);
    run.pool.parallel(batch_, [&](int64_t n, int) {
      uint8_t* out = run.outputs[0] + n * rows_ * line;
      if (given_) {
        std::memcpy(out, run.inputs[0] + n * rows_ * line, static_cast<size_t>(rows_ * line));
      } else {
        std::memset(out, zero_[0], static_cast<size_t>(rows_ * line));
      }
      const uint8_t* diagonal = run.inputs[1] + n * length * item_;
      for (int64_t i = 0; i < length; ++i) {
        std::memcpy(out + i * (line + item_), diagonal + i * item_, static_cast<size_t>(item_));
      }
    });
  }

 private:
  bool given_;
  int64_t batch_ = 0, rows_ = 0, columns_ = 0, item_ = 0;
  uint8_t zero_[kLargestElement] = {};  // all of its bytes are equal
};

// One side of a diagonal of matrices, zeros on the other.
class Triangle final : public Kernel {
 public:
  explicit Triangle(const Step& step) : upper_(step.integer("upper", 0, 1) != 0) {
    const Operand &in = step.input(0), &out = step.output();
    require_same_type(in, out);
    const int rank = in.rank();
    require(rank >= 2 && in.shape == out.shape && in.dense() && out.dense(), "the shapes do not fit");
    rows_ = in.shape[rank - 2], columns_ = in.shape[rank - 1];
    lines_ = columns_ == 0 ? 0 : in.elements / columns_;
    item_ = type_bytes(in.type);
    const int64_t diagonal = step.integer("diagonal");
    diagonal_ = std::clamp(diagonal, -rows_ - 1, columns_ + 1);
    uint8_t zero[kLargestElement] = {};
    store_element(in.type, 0, zero);
    zeros_.assign(static_cast<size_t>(columns_ * item_), zero[0]);
  }
  std::string note() const override { return "one side of a diagonal"; }

  void run(const Run& run) const override {
    const int64_t line = columns_ * item_;
    constexpr int64_t kTogether = 64;
    run.pool.parallel((lines_ + kTogether - 1) / kTogether, [&](int64_t task, int) {
      for (int64_t row = task * kTogether; row < std::min(lines_, (task + 1) * kTogether); ++row) {
        // Columns before `at` are those below the diagonal, or up to it.
        const int64_t at = std::clamp<int64_t>(row % rows_ + diagonal_ + (upper_ ? 0 : 1), 0, columns_) * item_;
        const uint8_t *from = run.inputs[0] + row * line, *zeros = zeros_.data();
        uint8_t* to = run.outputs[0] + row * line;
        std::memcpy(to, upper_ ? zeros : from, static_cast<size_t>(at));
        std::memcpy(to + at, (upper_ ? from : zeros) + at, static_cast<size_t>(line - at));
      }
    });
  }

 private:
  bool upper_;
  int64_t rows_ = 0, columns_ = 0, lines_ = 0, item_ = 0, diagonal_ = 0;
  std::vector<uint8_t> zeros_;
};

// Of several elements for one place, the last one stays.
class Unpool final : public Kernel {
 public:
  explicit Unpool(const Step& step) : elements_(step.output().elements), count_(step.input(0).elements) {
    const Operand &in = step.input(0), &places = step.input(1), &out = step.output();
    require_same_type(in, out);
    require_positions(places);
    require(in.dense() && out.dense() && places.elements == in.elements, "the shapes do not fit");
    item_ = type_bytes(out.type);
    wide_ = places.type == Type::s64;
    store_element(out.type, 0, zero_);
  }

  std::string note() const override { return "elements put at positions"; }

  void run(const Run& run) const override {
    if (wide_) return put_at<int64_t>(run);
    put_at<int32_t>(run);
  }

 private:
  template <class Place>
  void put_at(const Run& run) const {
    switch (item_) {
      case 1: return put<Place, 1>(run);
      case 2: return put<Place, 2>(run);
      case 4: return put<Place, 4>(run);
      case 8: return put<Place, 8>(run);
      default: return put<Place, 0>(run);
    }
  }

  template <class Place, int kItem>
  void put(const Run& run) const {
    constexpr int64_t kTogether = int64_t{1} << 20;
    const auto item = static_cast<size_t>(kItem == 0 ? item_ : kItem);
    const auto* places = reinterpret_cast<const Place*>(run.inputs[1]);
    const uint8_t* from = run.inputs[0];
    uint8_t* to = run.outputs[0];
    const auto elements = static_cast<uint64_t>(elements_);
    std::memset(to, zero_[0], static_cast<size_t>(elements_) * item);
    for (int64_t first = 0; first < count_; first += kTogether) {
      run.check();
      const int64_t end = std::min(count_, first + kTogether);
      for (int64_t i = first; i < end; ++i) {
        const auto at = static_cast<uint64_t>(int64_t{places[i]});  // what is negative lies outside, too
        if (at >= elements) throw Undefined();
        std::memcpy(to + at * item, from + static_cast<size_t>(i) * item, item);
      }
    }
  }

  int64_t elements_, count_, item_ = 0;
  bool wide_ = false;
  uint8_t zero_[kLargestElement] = {};  // all of its bytes are equal
};

template <class Made>
std::unique_ptr<Kernel> make_picked(const Step& step, const CoreSet&) {
  return std::make_unique<Made>(step);
}

BITTRUE_OPERATOR(matrix_set_diag, make_picked<SetDiagonal>)
BITTRUE_OPERATOR(reverse_sequence, make_picked<ReverseSequence>)
BITTRUE_OPERATOR(triangle, make_picked<Triangle>)
BITTRUE_OPERATOR(unpool, make_picked<Unpool>)

}  // namespace
}  // namespace bittrue

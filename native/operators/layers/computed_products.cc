#include "operators/layers/computed_products.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/share.h"
#include "operators/core/interleave.h"
#include "operators/layers/integer_finish.h"
#include "operators/layers/weights.h"

namespace bittrue {
namespace {

constexpr int64_t kComputedRows = 24;   // of one task: a multiple of most tiles' heights
constexpr int64_t kComputedRate = 100;  // see CoreSet::byte_rate
constexpr int64_t kFewRows = 8;         // that meet a matrix where it lies: packing it would take longer

// Zero points of bytes as native memory keeps them: the plan's, or those of an operand that is read while running.
class BytePoints {
 public:
  // Parameter `name`, or the array of this name with an s behind it; `operand` holds those of late steps.
  BytePoints(const Step& step, const std::string& name, size_t operand, Type type) {
    const bool late = step.integers.count("late") != 0 && step.integer("late", 0, 1) != 0;
    if (late && step.has_input(operand)) {
      const Operand& given = step.input(operand);
      wide_ = given.type == Type::s32;
      require(given.dense() && (wide_ || given.type == type), "late zero points have another form");
      operand_ = operand, flip_ = flip_of(type);
      count = given.elements;
    } else if (!late && step.has_array(name + "s")) {
      const Array& given = step.array(name + "s");
      for (count = 0; count < given.count; ++count) keep(given.integer(count), type);
    } else {
      // An absent one is 0 in the plan's numbers.
      keep(late ? 0 : step.integer(name.c_str()), type);
    }
    require(count > 0, "there are no zero points");
  }

  int32_t at(const Run& run, int64_t i) const {
    if (!known_.empty()) return known_[i % count];
    return wide_ ? wide(run, i % count) + flip_ : run.inputs[operand_][i % count];
  }
  // Throws Undefined where one is so large that differences may leave 16 bits, which a row may keep them in.
  void check(const Run& run) const {
    for (int64_t i = 0; wide_ && i < count; ++i) {
      if (wide(run, i) < -kFarPoint || wide(run, i) > kFarPoint) throw Undefined();
    }
  }
  bool is_operand(size_t input) const { return known_.empty() && input == operand_; }

  int64_t count = 1;

 private:
  static constexpr int32_t kFarPoint = (1 << 15) - 256;

  int32_t wide(const Run& run, int64_t i) const { return reinterpret_cast<const int32_t*>(run.inputs[operand_])[i]; }
  void keep(int64_t point, Type type) {
    require(point >= -(1 << 16) && point <= 1 << 16, "a zero point is out of range");
    known_.push_back(static_cast<int32_t>(point + flip_of(type)));
  }

  size_t operand_ = 0;
  bool wide_ = false;  // the operand holds s32
  int32_t flip_ = 0;
  std::vector<int32_t> known_;
};

// Integers that are added to the sums of every matrix.
struct ByteAddends {
  bool given = false;
  int64_t by_row = 0, by_column = 0, by_matrix = 0;  // elements from one to the next

  ByteAddends(const Step& step, const ProductSizes& p) {
    if (!step.has_input(ProductOperands::kAddend)) return;
    const Operand& c = step.input(ProductOperands::kAddend);
    if (c.type == Type::f32) return;
    require(c.type == Type::s32 && c.dense(), "addends of another type");
    given = true;
    if (p.apart) {
      require(c.elements == p.right_matrices * p.columns, "one addend per column is needed");
      by_column = 1, by_matrix = p.columns;
      return;
    }
    const int64_t wide = c.rank() == 0 ? 1 : c.shape.back(), high = c.elements / std::max<int64_t>(1, wide);
    require((wide == 1 || wide == p.columns) && (high == 1 || (high == p.rows && c.rank() == 2)),
            "addends of another form");
    by_column = wide == 1 ? 0 : 1;
    by_row = high == 1 ? 0 : wide;
  }
};

// With w as weights less their zero points as they are kept, and zero points zx of a row and zw of a column, a sum is
//   sum x w + [addend + zx (K zw - sum w)] - zw sum x:
// the brackets of every column are found when a run begins. A weight is a byte as it is kept less 128.
class ByteProducts final : public Kernel {
 public:
  ByteProducts(const Step& step, const CoreSet& cores, const ProductSizes& products)
      : p_(joined(step, products)),
        core_(adds_in_pairs(step) ? cores.pair_product() : cores.byte_product()),
        row_terms_(cores.row_terms()),
        row_points_(step, "input_zero_point", ProductOperands::kRowPoint, step.input(0).type),
        column_points_(step, "weight_zero_point", ProductOperands::kColumnPoints, step.input(1).type),
        addends_(step, p_),
        finish_(step, p_.columns) {
    const Operand &x = step.input(0), &w = step.input(1), &out = step.output();
    using Result = IntegerFinish::Result;
    require(is_8bit(x.type) && is_8bit(w.type), "no native kernel for these types");
    require(adds_in_pairs(step) || step.rule("accumulate") == "s32_wrap", "sums are kept in 32 bits");
    require(p_.depth <= int64_t{1} << 31 && p_.columns <= int64_t{1} << 31, "the matrices are very large");
    require(row_points_.count == 1 || row_points_.count == p_.rows || row_points_.count == p_.left_matrices * p_.rows,
            "one zero point, or one per row, is needed");
    require(column_points_.count == 1 || column_points_.count == p_.columns ||
                column_points_.count == p_.right_matrices * p_.columns,
            "one zero point, or one per column, is needed");
    if (finish_.result == Result::bytes) {
      require(is_8bit(out.type) && step.rules.count("rescale_tail") == 0, "no native kernel for these types");
      requantize_ = cores.requantize_rows();
      read_requantizations(step);
    } else {
      require(out.type == (finish_.result == Result::reals ? Type::f32 : Type::s32),
              "no native kernel for these types");
    }
    rate_ = cores.byte_rate(kComputedRate);
    depth_ = round_up(p_.depth, 4);
    most_ = core_.lanes * core_.vectors;
    width_ = round_up(p_.columns, core_.lanes);
    ones_.assign(static_cast<size_t>(depth_), 1);
    if (w.constant == nullptr) {
      in_place_ =
          core_.run_in_place != nullptr && !p_.transpose_b && p_.rows * p_.matrices() <= kFewRows * p_.right_matrices;
      return;
    }
    constant_ = true;
    kept_.resize(static_cast<size_t>(p_.right_matrices * width_ * depth_));
    kept_sums_.resize(static_cast<size_t>(p_.right_matrices * width_));
    for (int64_t i = 0; i < p_.right_matrices * panels(); ++i) {
      pack(static_cast<const uint8_t*>(w.constant), w.type == Type::s8 ? 0 : 0x80, i, kept_.data(), kept_sums_.data());
    }
  }

  int64_t scratch_bytes(int threads) const override { return shared_bytes() + threads * worker_bytes(); }
  bool packs(size_t input) const override { return input == 1 && constant_; }
  std::string note() const override {
    return constant_ ? "matmul" : in_place_ ? "matmul, columns where they lie" : "matmul, packed while running";
  }

  void run(const Run& run) const override {
    const int threads = run.pool.threads_for(p_.work() / rate_);
    row_points_.check(run);
    column_points_.check(run);
    Shared shared;
    uint8_t* at = run.scratch;
    const auto take = [&](int64_t bytes) {
      uint8_t* from = at;
      at += round_up(bytes, 64);
      return from;
    };
    const int64_t columns = p_.right_matrices * width_;
    shared.bases = reinterpret_cast<int32_t*>(take(columns * 4));
    shared.corrections = reinterpret_cast<uint32_t*>(take(columns * 4));
    shared.points = reinterpret_cast<int32_t*>(take(columns * 4));
    shared.factors = finish_.find_factors(run, p_.columns, reinterpret_cast<float*>(take(p_.columns * 4)));
    shared.addends = finish_.find_addends(run);
    auto* sums = constant_ ? nullptr : reinterpret_cast<int32_t*>(take(columns * 4));
    auto* packed = constant_ || in_place_ ? nullptr : reinterpret_cast<int8_t*>(take(columns * depth_));
    shared.packed = constant_ ? kept_.data() : packed;
    run.pool.parallel(p_.right_matrices * panels(), threads, [&](int64_t task, int) {
      if (in_place_) {
        add_up(run.inputs[1], task, sums);
      } else if (!constant_) {
        pack(run.inputs[1], 0x80, task, packed, sums);
      }
      fold(run, task, constant_ ? kept_sums_.data() : sums, shared);
    });
    for (int64_t n = 0; n < column_points_.count; ++n) shared.moved |= column_points_.at(run, n) != 128;
    const int64_t blocks = (p_.rows + kComputedRows - 1) / kComputedRows;
    run.pool.parallel(p_.matrices() * blocks, threads, [&](int64_t task, int worker) {
      const int64_t first = task % blocks * kComputedRows;
      block(run, shared, task / blocks, first, std::min(kComputedRows, p_.rows - first),
            run.scratch + shared_bytes() + worker * worker_bytes());
    });
  }

 private:
  // What all tasks read: of every column of every matrix on the right, and of every column.
  struct Shared {
    const int8_t* packed = nullptr;
    int32_t *bases = nullptr, *points = nullptr;
    uint32_t* corrections = nullptr;
    const float *factors = nullptr, *addends = nullptr;
    bool moved = false;  // a zero point of weights is not 0
  };

  // Matrices that all meet the same one are one of more rows.
  static ProductSizes joined(const Step& step, ProductSizes p) {
    const Operand* c = step.has_input(ProductOperands::kAddend) ? &step.input(ProductOperands::kAddend) : nullptr;
    const bool by_row = c != nullptr && c->rank() == 2 && c->shape[0] > 1;
    if (p.right_matrices > 1 || p.transpose_a || by_row || p.left_matrices != p.matrices()) return p;
    p.rows *= p.left_matrices;
    p.left_matrices = 1;
    p.left = p.right = {0};
    return p;
  }

  void read_requantizations(const Step& step) {
    const int64_t count = p_.apart ? p_.right_matrices : 1;
    const rules::Requantize all = step.requantize(count * p_.columns);
    if (count == 1 || all.multipliers.size() == 1) {
      requantizations_ = {all};
      return;
    }
    requantizations_.assign(static_cast<size_t>(count), all);
    for (int64_t i = 0; i < count; ++i) {
      const auto first = all.multipliers.begin() + i * p_.columns;
      requantizations_[static_cast<size_t>(i)].multipliers.assign(first, first + p_.columns);
    }
  }

  int64_t panels() const { return (p_.columns + most_ - 1) / most_; }
  int64_t shared_bytes() const {
    const int64_t columns = p_.right_matrices * width_;
    return (constant_ ? 3 : 4) * round_up(columns * 4, 64) + round_up(p_.columns * 4, 64) +
           (constant_ || in_place_ ? 0 : round_up(columns * depth_, 64));
  }
  // Rows that are turned or filled up.
  int64_t copy_bytes() const {
    return depth_ == p_.depth && !p_.transpose_a ? 0 : round_up(kComputedRows * depth_, 64);
  }
  int64_t worker_bytes() const {
    return round_up(kComputedRows * width_ * 4, 64) + round_up(kComputedRows, 16) * 4 +
           round_up(kComputedRows * 8, 64) + copy_bytes();
  }

  // Bytes of four rows in turn.
  static void interleave_sixteen(const uint8_t* a, const uint8_t* b, const uint8_t* c, const uint8_t* d, uint8_t flip,
                                 uint8_t* to) {
    Vector8 rows[4];
    const uint8_t* const from[4] = {a, b, c, d};
    for (int i = 0; i < 4; ++i) {
      std::memcpy(&rows[i], from[i], 16);
      rows[i] ^= flip;
    }
    const auto store = [&](Vector8 first, Vector8 second, uint8_t* target) {
      Vector16 pairs[2];
      std::memcpy(&pairs[0], &first, 16);
      std::memcpy(&pairs[1], &second, 16);
      const Vector16 fours[2] = {interleave_low(pairs[0], pairs[1]), interleave_high(pairs[0], pairs[1])};
      std::memcpy(target, fours, 32);
    };
    store(interleave_low(rows[0], rows[1]), interleave_low(rows[2], rows[3]), to);
    store(interleave_high(rows[0], rows[1]), interleave_high(rows[2], rows[3]), to + 32);
  }

  // Panel i % panels of matrix i / panels, [depth / 4][width][4], and the sums of its columns. `flip` makes bytes signed.
  void pack(const uint8_t* right, uint8_t flip, int64_t i, int8_t* packed, int32_t* sums) const {
    const uint8_t* matrix = right + i / panels() * p_.depth * p_.columns;
    const int64_t first = i % panels() * most_;
    const int64_t wide = std::min(most_, width_ - first), used = std::min(wide, p_.columns - first);
    int8_t* to = packed + i / panels() * width_ * depth_ + first * depth_;
    auto* target = reinterpret_cast<uint8_t*>(to);
    for (int64_t k = 0; k < p_.depth; k += 4, target += 4 * wide) {
      if (p_.transpose_b || p_.depth - k < 4) {
        std::memset(target, 0, static_cast<size_t>(4 * wide));
        for (int64_t n = 0; n < used; ++n) {
          for (int64_t j = 0; j < std::min<int64_t>(4, p_.depth - k); ++j) {
            const uint8_t byte =
                p_.transpose_b ? matrix[(first + n) * p_.depth + k + j] : matrix[(k + j) * p_.columns + first + n];
            target[4 * n + j] = byte ^ flip;
          }
        }
        continue;
      }
      const uint8_t *a = matrix + k * p_.columns + first, *b = a + p_.columns, *c = b + p_.columns, *d = c + p_.columns;
      int64_t n = 0;
      for (; n + 16 <= used; n += 16) interleave_sixteen(a + n, b + n, c + n, d + n, flip, target + 4 * n);
      for (; n < used; ++n) {
        target[4 * n] = a[n] ^ flip;
        target[4 * n + 1] = b[n] ^ flip;
        target[4 * n + 2] = c[n] ^ flip;
        target[4 * n + 3] = d[n] ^ flip;
      }
      std::memset(target + 4 * used, 0, static_cast<size_t>(4 * (wide - used)));
    }
    core_.run(row_of_ones(depth_, sums + i / panels() * width_ + first), to, wide);
  }

  // Whose sums are those of the columns' bytes.
  ByteRows row_of_ones(int64_t depth, int32_t* sums) const {
    ByteRows rows;
    rows.rows = ones_.data();
    rows.count = 1;
    rows.depth = depth;
    rows.sums = sums;
    rows.stride = width_;
    return rows;
  }

  // The sums of the columns of such a panel where it lies.
  void add_up(const uint8_t* right, int64_t i, int32_t* sums) const {
    const int64_t matrix = i / panels(), first = i % panels() * most_;
    core_.run_in_place(row_of_ones(p_.depth, sums + matrix * width_ + first),
                       right + matrix * p_.depth * p_.columns + first, p_.columns, std::min(most_, p_.columns - first));
  }

  // What the columns of such a panel add to their sums.
  void fold(const Run& run, int64_t i, const int32_t* sums, const Shared& shared) const {
    const int64_t matrix = i / panels(), first = i % panels() * most_, end = std::min(p_.columns, first + most_);
    const int64_t row_point = row_points_.count == 1 ? row_points_.at(run, 0) : 0;
    const bool adds = addends_.given && addends_.by_row == 0;
    const int32_t* addends = nullptr;
    if (adds) {
      addends = reinterpret_cast<const int32_t*>(run.inputs[ProductOperands::kAddend]) + matrix * addends_.by_matrix;
    }
    for (int64_t n = first; n < end; ++n) {
      const int64_t at = matrix * width_ + n;
      shared.points[at] = column_points_.at(run, matrix * p_.columns + n) - 128;
      shared.corrections[at] = zero_point_factor(p_.depth, shared.points[at], sums[at]);
      shared.bases[at] = folded_bias(adds ? addends[n * addends_.by_column] : 0, row_point, shared.corrections[at]);
    }
  }

  // `count` rows of a matrix of the output.
  void block(const Run& run, const Shared& shared, int64_t matrix, int64_t first, int64_t count,
             uint8_t* scratch) const {
    auto* sums = reinterpret_cast<int32_t*>(scratch);
    auto* row_sums = reinterpret_cast<int32_t*>(scratch + round_up(kComputedRows * width_ * 4, 64));
    auto** pointers = reinterpret_cast<const uint8_t**>(row_sums + round_up(kComputedRows, 16));
    const int64_t right = p_.right[matrix] * width_;
    const uint8_t* data = run.inputs[0] + p_.left[matrix] * p_.rows * p_.depth;
    data = copy_bytes() == 0 ? data + first * p_.depth
                             : arranged(data, first, count, scratch + worker_bytes() - copy_bytes());
    ByteRows rows;
    rows.rows = data;
    rows.row_step = depth_;
    rows.count = count;
    rows.depth = depth_;
    rows.stride = width_;
    for (int64_t c = 0; c < width_; c += most_) {
      rows.sums = sums + c;
      if (in_place_) {
        rows.depth = p_.depth;
        core_.run_in_place(rows, run.inputs[1] + p_.right[matrix] * p_.depth * p_.columns + c, p_.columns,
                           std::min(most_, p_.columns - c));
      } else {
        core_.run(rows, shared.packed + (right + c) * depth_, std::min(most_, width_ - c));
      }
    }
    if (shared.moved) {
      for (int64_t r = 0; r < count; ++r) pointers[r] = data + r * depth_;
      row_terms_(pointers, kComputedRows, 1, p_.depth, count, -1, row_sums);
    }
    // Rows of sums move together, as the core that rescales them prepares itself for every call.
    const int64_t columns = p_.columns, row = matrix * p_.rows + first;
    const rules::Requantize& requantization =
        requantizations_[requantizations_.size() == 1 ? 0 : static_cast<size_t>(p_.right[matrix])];
    for (int64_t r = 0; r < count; ++r) {
      int32_t* to = sums + r * columns;
      complete(run, shared, right, p_.left[matrix] * p_.rows + first + r, first + r,
               shared.moved ? static_cast<uint32_t>(row_sums[r]) : 0, sums + r * width_, to);
      if (finish_.result == IntegerFinish::Result::reals) {
        finish_.reals([=](int64_t n) { return to[n]; }, columns, shared.factors, shared.addends,
                      run.outputs[0] + (row + r) * columns * 4);
      }
    }
    if (finish_.result == IntegerFinish::Result::sums) {
      std::memcpy(run.outputs[0] + row * columns * 4, sums, static_cast<size_t>(count * columns) * 4);
    } else if (requantize_ != nullptr) {
      requantize_(requantization, sums, count, run.outputs[0] + row * columns, columns);
    }
  }

  // The sums of one row: `point` is its place among the zero points of rows, `place` that in its matrix, `row_sum` less the
  // sum of its bytes. `to` may overlap `from`, but never lies behind it.
  void complete(const Run& run, const Shared& shared, int64_t right, int64_t point, int64_t place, uint32_t row_sum,
                const int32_t* from, int32_t* to) const {
    const int64_t columns = p_.columns;
    const int32_t *bases = shared.bases + right, *points = shared.points + right;
    const uint32_t* corrections = shared.corrections + right;
    const bool apart = column_points_.count > 1;
    const uint32_t term = apart || !shared.moved ? 0 : row_sum * static_cast<uint32_t>(points[0]);
    for (int64_t n = 0; n < columns; ++n) {
      to[n] = static_cast<int32_t>(static_cast<uint32_t>(from[n]) + static_cast<uint32_t>(bases[n]) + term);
    }
    if (apart && shared.moved) {
      for (int64_t n = 0; n < columns; ++n) {
        to[n] = static_cast<int32_t>(static_cast<uint32_t>(to[n]) + row_sum * static_cast<uint32_t>(points[n]));
      }
    }
    if (row_points_.count > 1) {
      const auto own = static_cast<uint32_t>(row_points_.at(run, point));
      for (int64_t n = 0; n < columns; ++n) {
        to[n] = static_cast<int32_t>(static_cast<uint32_t>(to[n]) + own * corrections[n]);
      }
    }
    if (addends_.by_row != 0) {
      const auto* addends =
          reinterpret_cast<const int32_t*>(run.inputs[ProductOperands::kAddend]) + place * addends_.by_row;
      for (int64_t n = 0; n < columns; ++n) {
        to[n] =
            static_cast<int32_t>(static_cast<uint32_t>(to[n]) + static_cast<uint32_t>(addends[n * addends_.by_column]));
      }
    }
  }

  // Rows side by side, with bytes behind them that meet weights of zero.
  const uint8_t* arranged(const uint8_t* matrix, int64_t first, int64_t count, uint8_t* to) const {
    for (int64_t r = 0; r < count; ++r) {
      uint8_t* row = to + r * depth_;
      if (p_.transpose_a) {
        for (int64_t k = 0; k < p_.depth; ++k) row[k] = matrix[k * p_.rows + first + r];
      } else {
        std::memcpy(row, matrix + (first + r) * p_.depth, static_cast<size_t>(p_.depth));
      }
      std::memset(row + p_.depth, 0, static_cast<size_t>(depth_ - p_.depth));
    }
    return to;
  }

  ProductSizes p_;
  const ByteProduct& core_;
  RowTerms row_terms_;
  BytePoints row_points_, column_points_;
  ByteAddends addends_;
  IntegerFinish finish_;
  RequantizeRows requantize_ = nullptr;
  std::vector<rules::Requantize> requantizations_ = {{}};  // one, or one per matrix on the right
  int64_t depth_ = 0, most_ = 0, width_ = 0, rate_ = 1;
  bool constant_ = false, in_place_ = false;
  std::vector<uint8_t> ones_;
  std::vector<int8_t> kept_;  // constant columns, and their sums
  std::vector<int32_t> kept_sums_;
};

}  // namespace

std::unique_ptr<Kernel> make_computed_products(const Step& step, const CoreSet& cores, const ProductSizes& products) {
  return std::make_unique<ByteProducts>(step, cores, products);
}

}  // namespace bittrue

#include "operators/layers/computed_products.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/share.h"
#include "operators/layers/weights.h"

namespace bittrue {
namespace {

constexpr int64_t kComputedRows = 24;   // of one task: a multiple of most tiles' heights
constexpr int64_t kComputedRate = 100;  // multiply-adds of one nanosecond, about

// A weight is a byte as it is kept less 128. The sums of columns, which fold zero points, are those of a row of ones.
class ByteProducts final : public Kernel {
 public:
  ByteProducts(const Step& step, const CoreSet& cores, const ComputedProducts& products)
      : p_(products),
        core_(adds_in_pairs(step) ? cores.pair_product() : cores.byte_product()),
        row_terms_(cores.row_terms()) {
    const Operand &x = step.input(0), &w = step.input(1), &out = step.output();
    require(is_8bit(x.type) && is_8bit(w.type) && x.dense() && w.dense() && out.dense(),
            "no native kernel for these types");
    require(adds_in_pairs(step) || step.rule("accumulate") == "s32_wrap", "sums are kept in 32 bits");
    require(p_.depth <= int64_t{1} << 31 && p_.columns <= int64_t{1} << 31, "the matrices are very large");
    if (step.integers.count("late") != 0 && step.integer("late", 0, 1) != 0) {
      input_point_ = is_given(step, kInputPoint, x.type);
      weight_point_ = is_given(step, kWeightPoint, w.type);
      points_ = {flip_of(x.type), flip_of(w.type) - 128};
    } else {
      points_ = {step.integer("input_zero_point", -(1 << 16), 1 << 16) + flip_of(x.type),
                 step.integer("weight_zero_point", -(1 << 16), 1 << 16) + flip_of(w.type) - 128};
    }
    const std::string& form = step.text("form");
    if (form == "sums") {
      require(out.type == Type::s32, "sums are kept in 32 bits");
    } else {
      require(form == "quantized" && is_8bit(out.type) && step.bounded &&
                  step.magnitude <= std::numeric_limits<int32_t>::max(),
              "no native form");
      requantize_ = cores.requantize_row();
      requantization_ = step.requantize(p_.columns);
      require(requantization_.multipliers.size() == 1, "one multiplier is needed");
    }
    depth_ = round_up(p_.depth, 4);
    most_ = core_.lanes * core_.vectors;
    width_ = round_up(p_.columns, core_.lanes);
    ones_.assign(static_cast<size_t>(depth_), 1);
  }

  int64_t scratch_bytes(int threads) const override { return shared_bytes() + threads * worker_bytes(); }
  std::string note() const override { return "matmul, packed while running"; }

  void run(const Run& run) const override {
    ZeroPoints points = points_;
    if (input_point_) points.input = run.inputs[kInputPoint][0];
    if (weight_point_) points.weight = run.inputs[kWeightPoint][0] - 128;
    auto* packed = reinterpret_cast<int8_t*>(run.scratch);
    auto* terms = reinterpret_cast<int32_t*>(run.scratch + packed_bytes());
    const int64_t panels = (p_.columns + most_ - 1) / most_, matrices = static_cast<int64_t>(p_.left.size());
    const int threads =
        matrices * p_.rows * p_.columns * p_.depth / kComputedRate < kWorthSharing ? 1 : run.pool.threads();
    run.pool.parallel(p_.right_matrices * panels, threads, [&](int64_t task, int) {
      const int64_t matrix = task / panels, first = task % panels * most_;
      pack(run.inputs[1] + matrix * p_.depth * p_.columns, first, points,
           packed + matrix * width_ * depth_ + first * depth_, terms + matrix * width_ + first);
    });
    const int64_t blocks = (p_.rows + kComputedRows - 1) / kComputedRows;
    run.pool.parallel(matrices * blocks, threads, [&](int64_t task, int worker) {
      const int64_t matrix = task / blocks, first = task % blocks * kComputedRows,
                    count = std::min(kComputedRows, p_.rows - first);
      uint8_t* scratch = run.scratch + shared_bytes() + worker * worker_bytes();
      auto* sums = reinterpret_cast<int32_t*>(scratch);
      auto* row_terms = reinterpret_cast<int32_t*>(scratch + round_up(kComputedRows * width_ * 4, 64));
      auto** pointers = reinterpret_cast<const uint8_t**>(row_terms + round_up(kComputedRows, 16));
      const uint8_t* data = run.inputs[0] + (p_.left[matrix] * p_.rows + first) * p_.depth;
      if (depth_ != p_.depth) data = widen(data, count, scratch + worker_bytes() - copy_bytes());
      ByteRows rows;
      rows.rows = data;
      rows.row_step = depth_;
      rows.count = count;
      rows.depth = depth_;
      rows.stride = width_;
      const int8_t* right = packed + p_.right[matrix] * width_ * depth_;
      for (int64_t c = 0; c < width_; c += most_) {
        rows.sums = sums + c;
        core_.run(rows, right + c * depth_, std::min(most_, width_ - c));
      }
      if (points.weight != 0) {
        for (int64_t r = 0; r < count; ++r) pointers[r] = data + r * depth_;
        row_terms_(pointers, kComputedRows, 1, p_.depth, count, static_cast<int32_t>(-points.weight), row_terms);
      } else {
        std::fill_n(row_terms, count, 0);
      }
      finish(sums, row_terms, terms + p_.right[matrix] * width_, count, matrix * p_.rows + first, run.outputs[0]);
    });
  }

 private:
  // Of the bytes as they are kept, weights less 128.
  struct ZeroPoints {
    int64_t input, weight;
  };
  static constexpr size_t kInputPoint = 4, kWeightPoint = 6;  // operands of late zero points

  static bool is_given(const Step& step, size_t input, Type type) {
    if (!step.has_input(input)) return false;
    const Operand& point = step.input(input);
    require(point.elements == 1 && point.dense() && point.type == type, "late zero points have another form");
    return true;
  }

  int64_t packed_bytes() const { return round_up(p_.right_matrices * width_ * depth_, 64); }
  int64_t shared_bytes() const { return packed_bytes() + round_up(p_.right_matrices * width_ * 4, 64); }
  int64_t copy_bytes() const { return depth_ == p_.depth ? 0 : round_up(kComputedRows * depth_, 64); }
  int64_t worker_bytes() const {
    return round_up(kComputedRows * width_ * 4, 64) + round_up(kComputedRows, 16) * 4 +
           round_up(kComputedRows * 8, 64) + copy_bytes();
  }

  // Columns from `first` on, at most a panel of them, [depth / 4][width][4], and what they add to their sums.
  void pack(const uint8_t* matrix, int64_t first, const ZeroPoints& points, int8_t* to, int32_t* terms) const {
    const int64_t wide = std::min(most_, width_ - first), used = std::min(wide, p_.columns - first);
    auto* target = reinterpret_cast<uint8_t*>(to);
    for (int64_t k = 0; k < p_.depth; k += 4, target += 4 * wide) {
      if (p_.turned || p_.depth - k < 4) {
        std::memset(target, 0, static_cast<size_t>(4 * wide));
        for (int64_t n = 0; n < used; ++n) {
          for (int64_t i = 0; i < std::min<int64_t>(4, p_.depth - k); ++i) {
            const uint8_t byte =
                p_.turned ? matrix[(first + n) * p_.depth + k + i] : matrix[(k + i) * p_.columns + first + n];
            target[4 * n + i] = byte ^ 0x80;
          }
        }
        continue;
      }
      const uint8_t *a = matrix + k * p_.columns + first, *b = a + p_.columns, *c = b + p_.columns, *d = c + p_.columns;
      for (int64_t n = 0; n < used; ++n) {
        target[4 * n] = a[n] ^ 0x80;
        target[4 * n + 1] = b[n] ^ 0x80;
        target[4 * n + 2] = c[n] ^ 0x80;
        target[4 * n + 3] = d[n] ^ 0x80;
      }
      std::memset(target + 4 * used, 0, static_cast<size_t>(4 * (wide - used)));
    }
    ByteRows rows;
    rows.rows = ones_.data();
    rows.count = 1;
    rows.depth = depth_;
    rows.sums = terms;
    rows.stride = wide;
    core_.run(rows, to, wide);
    for (int64_t n = 0; n < wide; ++n) {
      terms[n] = folded_bias(0, points.input, zero_point_factor(p_.depth, points.weight, terms[n]));
    }
  }

  // Rows with bytes behind them that meet weights of zero.
  const uint8_t* widen(const uint8_t* from, int64_t count, uint8_t* to) const {
    for (int64_t r = 0; r < count; ++r) {
      std::memcpy(to + r * depth_, from + r * p_.depth, static_cast<size_t>(p_.depth));
      std::memset(to + r * depth_ + p_.depth, 0, static_cast<size_t>(depth_ - p_.depth));
    }
    return to;
  }

  // Rows of sums move together, and all of them are rescaled at once: the core prepares itself for every call.
  void finish(int32_t* sums, const int32_t* row_terms, const int32_t* terms, int64_t count, int64_t first_row,
              uint8_t* out) const {
    const int64_t columns = p_.columns;
    for (int64_t r = 0; r < count; ++r) {
      const auto row = static_cast<uint32_t>(row_terms[r]);
      const int32_t* from = sums + r * width_;
      int32_t* to = sums + r * columns;
      for (int64_t n = 0; n < columns; ++n) {
        to[n] = static_cast<int32_t>(static_cast<uint32_t>(from[n]) + static_cast<uint32_t>(terms[n]) + row);
      }
    }
    if (requantize_ != nullptr) {
      requantize_(requantization_, sums, out + first_row * columns, count * columns);
    } else {
      std::memcpy(out + first_row * columns * 4, sums, static_cast<size_t>(count * columns) * 4);
    }
  }

  ComputedProducts p_;
  const ByteProduct& core_;
  RowTerms row_terms_;
  RequantizeRow requantize_ = nullptr;
  rules::Requantize requantization_;
  ZeroPoints points_ = {0, 0};
  bool input_point_ = false, weight_point_ = false;
  int64_t depth_ = 0, most_ = 0, width_ = 0;
  std::vector<uint8_t> ones_;
};

}  // namespace

std::unique_ptr<Kernel> make_computed_products(const Step& step, const CoreSet& cores,
                                               const ComputedProducts& products) {
  return std::make_unique<ByteProducts>(step, cores, products);
}

}  // namespace bittrue

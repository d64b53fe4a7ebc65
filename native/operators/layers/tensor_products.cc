// Products of tensors, a step of matmul: rows times constant 8-bit columns as a layer; other bytes as computed products,
// wider integers by 16-bit products, binary32 in order.
#include <algorithm>
#include <cstring>

#include "core/share.h"
#include "isa/portable/turned_weights.h"
#include "operators/layers/columns.h"
#include "operators/layers/computed_products.h"
#include "operators/layers/integer_layer.h"
#include "operators/layers/ordered_products.h"
#include "operators/layers/tensor_products.h"

namespace bittrue {

int64_t matrices_of(const Operand& operand) {
  int64_t count = 1;
  for (int i = 0; i + 2 < operand.rank(); ++i) count *= operand.shape[i];
  return count;
}

std::vector<int64_t> matching(const Operand& operand, const Operand& out) {
  const int axes = out.rank() - 2, missing = out.rank() - operand.rank();
  std::vector<int64_t> result(static_cast<size_t>(matrices_of(out)));
  for (size_t i = 0; i < result.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), stride = 1;
    for (int axis = axes - 1; axis >= 0; --axis) {
      const int64_t place = rest % out.shape[axis];
      rest /= out.shape[axis];
      if (axis < missing) continue;
      const int64_t dimension = operand.shape[axis - missing];
      require(dimension == 1 || dimension == out.shape[axis], "the operands do not broadcast to the output");
      if (dimension != 1) result[i] += place * stride;
      stride *= dimension;
    }
  }
  return result;
}

ProductSizes read_products(const Step& step) {
  Operand x = step.input(0), y = step.input(1), out = step.output();
  require(x.dense() && y.dense() && out.dense(), "all operands must be dense");
  require(x.elements > 0 && y.elements > 0 && out.elements > 0, "there is nothing to do");
  require(x.rank() >= 1 && y.rank() >= 1, "matrices have two axes");
  ProductSizes p;
  p.transpose_a = step.integer("transpose_a", 0, 1) != 0 && x.rank() > 1;
  p.transpose_b = step.integer("transpose_b", 0, 1) != 0 && y.rank() > 1;
  // Vectors are matrices of one row, or one column.
  if (x.rank() == 1) {
    x.shape.insert(x.shape.begin(), 1);
    out.shape.insert(out.shape.end() - (y.rank() > 1 ? 1 : 0), 1);
  }
  if (y.rank() == 1) {
    y.shape.push_back(1);
    out.shape.push_back(1);
  }
  require(out.rank() == std::max(x.rank(), y.rank()), "matrices have two axes");
  const int64_t *left = x.shape.data() + x.rank() - 2, *right = y.shape.data() + y.rank() - 2;
  p.rows = left[p.transpose_a], p.depth = left[!p.transpose_a], p.columns = right[!p.transpose_b];
  require(
      right[p.transpose_b] == p.depth && out.shape[out.rank() - 2] == p.rows && out.shape[out.rank() - 1] == p.columns,
      "the shapes do not fit");
  require(matrices_of(out) <= (int64_t{1} << 20), "there are very many matrices");
  p.left = matching(x, out), p.right = matching(y, out);
  p.left_matrices = matrices_of(x), p.right_matrices = matrices_of(y);
  return p;
}

namespace {

class IntegerProducts final : public Kernel {
 public:
  IntegerProducts(const Step& step, const CoreSet& cores, const ProductSizes& products)
      : p_(products),
        input_(step),
        weights_(step.input(1), step.integer("weight_zero_point")),
        columns_(products.columns, products.depth, input_.largest(), weights_.largest()) {
    const std::string& form = step.text("form");
    const bool sums = form == "sums";
    require(sums || form == "quantized", "no native form");
    if (sums) {
      require(step.output().type == Type::s32 && step.rule("accumulate") == "s32_wrap", "sums are kept in 32 bits");
    } else {
      finish_ = std::make_unique<Finish>(step, cores, products.columns);
      bias_ = std::make_unique<Bias>(step, 2, products.columns);
      const bool narrow = step.rule("accumulate") == "s32_wrap" && is_8bit(step.output().type);
      const bool proven = step.bounded && step.magnitude <= kMostSum;
      if (narrow && proven) requantize_ = cores.requantize_rows();
      requantization_ = step.requantize(products.columns);
      require(requantization_.multipliers.size() == 1, "one multiplier is needed");
    }
    if (weights_.constant()) {
      packed_.resize(static_cast<size_t>(p_.right_matrices * columns_.elements()));
      for (int64_t i = 0; i < p_.right_matrices * p_.columns; ++i) pack(nullptr, i, packed_.data());
    }
  }

  int64_t scratch_bytes(int threads) const override { return packed_bytes() + threads * worker_bytes(); }
  bool packs(size_t input) const override { return input == 1 && weights_.constant(); }
  std::string note() const override { return "16-bit products, 64-bit sums"; }

  void run(const Run& run) const override {
    const int16_t* packed = packed_.data();
    if (!weights_.constant()) {
      auto* target = reinterpret_cast<int16_t*>(run.scratch);
      share(run.pool, p_.right_matrices * p_.columns, p_.right_matrices * p_.columns * p_.depth * 4,
            [&](int64_t i, int) { pack(run.inputs[1], i, target); });
      packed = target;
    }
    const int64_t blocks = (p_.rows + kPixels - 1) / kPixels;
    share(run.pool, p_.matrices() * blocks, p_.work(), [&](int64_t task, int worker) {
      auto* rows = reinterpret_cast<int16_t*>(run.scratch + packed_bytes() + worker * worker_bytes());
      const int64_t matrix = task / blocks, first = task % blocks * kPixels;
      const int64_t count = std::min(kPixels, p_.rows - first);
      for (int64_t r = 0; r < count; ++r)
        take_row(run.inputs[0], p_.left[matrix], first + r, rows + r * columns_.depth);
      multiply(packed + p_.right[matrix] * columns_.elements(), rows, count, matrix * p_.rows + first, run.outputs[0]);
    });
  }

 private:
  int64_t packed_bytes() const {
    return weights_.constant() ? 0 : round_up(p_.right_matrices * columns_.elements() * 2, 64);
  }
  int64_t worker_bytes() const { return round_up(kPixels * columns_.depth * 2, 64); }

  // Column i % columns of matrix i / columns.
  void pack(const uint8_t* stored, int64_t i, int16_t* target) const {
    const int64_t matrix = i / p_.columns, column = i % p_.columns, size = p_.depth * p_.columns;
    const int64_t base = matrix * size + (p_.transpose_b ? column * p_.depth : column),
                  step = p_.transpose_b ? 1 : p_.columns;
    columns_.pack(column, target + matrix * columns_.elements(),
                  [&](int64_t k) { return weights_.at(stored, base + k * step); });
  }

  void take_row(const uint8_t* in, int64_t matrix, int64_t row, int16_t* out) const {
    const int64_t base = matrix * p_.rows * p_.depth;
    if (p_.transpose_a) {
      for (int64_t k = 0; k < p_.depth; ++k) input_.convert(in, base + k * p_.rows + row, 1, out + k);
    } else {
      input_.convert(in, base + row * p_.depth, p_.depth, out);
    }
    std::fill(out + p_.depth, out + columns_.depth, int16_t{0});
  }

  void multiply(const int16_t* packed, const int16_t* rows, int64_t count, int64_t first_row, uint8_t* out) const {
    int64_t sums[kPixels * kColumns], plane_sums[kPixels * kColumns];
    for (int64_t c = 0; c < p_.columns; c += kColumns) {
      const int64_t wide = std::min(kColumns, p_.columns - c);
      columns_.multiply(packed, rows, count, c, wide, sums, plane_sums);
      for (int64_t r = 0; r < count; ++r) {
        const int64_t* from = sums + r * kColumns;
        const int64_t at = (first_row + r) * p_.columns + c;
        if (finish_ != nullptr && requantize_ == nullptr) {
          finish_->run(from, *bias_, nullptr, c, wide, out + at * finish_->bytes());
          continue;
        }
        int32_t narrow[kColumns];
        for (int64_t i = 0; i < wide; ++i) narrow[i] = static_cast<int32_t>(static_cast<uint32_t>(from[i]));
        if (requantize_ != nullptr) {
          requantize_(requantization_, narrow, 1, out + at, wide);
        } else {
          std::memcpy(out + at * 4, narrow, static_cast<size_t>(wide) * 4);
        }
      }
    }
  }

  ProductSizes p_;
  CenteredInput input_;
  CenteredWeights weights_;
  Columns columns_;
  std::unique_ptr<Finish> finish_;  // none: sums are stored as they are
  std::unique_ptr<Bias> bias_;      // of zeros
  RequantizeRows requantize_ = nullptr;
  rules::Requantize requantization_;
  std::vector<int16_t> packed_;
};

class RealProducts final : public Kernel {
 public:
  RealProducts(const Step& step, const ProductSizes& products) : p_(products) {
    const Operand& right = step.input(1);
    require(step.input(0).type == Type::f32 && right.type == Type::f32 && step.output().type == Type::f32,
            "binary32 operands are needed");
    if (right.constant == nullptr) return;
    std::vector<float> values(static_cast<size_t>(right.elements));
    std::memcpy(values.data(), right.constant, static_cast<size_t>(right.bytes()));
    packed_.resize(static_cast<size_t>(p_.right_matrices * panels() * panel()));
    for (int64_t i = 0; i < p_.right_matrices * panels(); ++i) pack(values.data(), i, packed_.data());
  }

  int64_t scratch_bytes(int threads) const override { return packed_bytes() + threads * worker_bytes(); }
  bool packs(size_t input) const override { return input == 1 && !packed_.empty(); }
  std::string note() const override { return "binary32 sums in order"; }

  void run(const Run& run) const override {
    const float* packed = packed_.data();
    if (packed_.empty()) {
      auto* target = reinterpret_cast<float*>(run.scratch);
      share(run.pool, p_.right_matrices * panels(), p_.right_matrices * panels() * panel(),
            [&](int64_t i, int) { pack(reinterpret_cast<const float*>(run.inputs[1]), i, target); });
      packed = target;
    }
    const int64_t blocks = (p_.rows + kBlock - 1) / kBlock;
    share(run.pool, p_.matrices() * blocks, p_.work() * 4, [&](int64_t task, int worker) {
      const int64_t matrix = task / blocks, first = task % blocks * kBlock;
      auto* scratch = reinterpret_cast<float*>(run.scratch + packed_bytes() + worker * worker_bytes());
      multiply(run, packed + p_.right[matrix] * panels() * panel(), matrix, first, std::min(kBlock, p_.rows - first),
               scratch);
    });
  }

 private:
  static constexpr int kTogether = 4;    // rows
  static constexpr int64_t kBlock = 32;  // rows of a task

  int64_t panels() const { return (p_.columns + kOrderedColumns - 1) / kOrderedColumns; }
  int64_t panel() const { return p_.depth * kOrderedColumns; }
  int64_t packed_bytes() const {
    return packed_.empty() ? round_up(p_.right_matrices * panels() * panel() * 4, 64) : 0;
  }
  int64_t worker_bytes() const { return p_.transpose_a ? round_up(kBlock * p_.depth * 4, 64) : 0; }

  // Panel i % panels of matrix i / panels: eight columns side by side.
  void pack(const float* right, int64_t i, float* target) const {
    const int64_t matrix = i / panels(), first = i % panels() * kOrderedColumns;
    const int64_t wide = std::min<int64_t>(kOrderedColumns, p_.columns - first);
    const float* from = right + matrix * p_.depth * p_.columns;
    float* to = target + i * panel();
    for (int64_t k = 0; k < p_.depth; ++k, to += kOrderedColumns) {
      for (int64_t n = 0; n < kOrderedColumns; ++n) {
        const int64_t column = first + n;
        to[n] = n >= wide ? 0.0f : from[p_.transpose_b ? column * p_.depth + k : k * p_.columns + column];
      }
    }
  }

  void multiply(const Run& run, const float* packed, int64_t matrix, int64_t first, int64_t count,
                float* scratch) const {
    const float* rows = reinterpret_cast<const float*>(run.inputs[0]) + p_.left[matrix] * p_.rows * p_.depth;
    auto* out = reinterpret_cast<float*>(run.outputs[0]) + (matrix * p_.rows + first) * p_.columns;
    if (p_.transpose_a) {
      for (int64_t k = 0; k < p_.depth; ++k) {
        for (int64_t r = 0; r < count; ++r) scratch[r * p_.depth + k] = rows[k * p_.rows + first + r];
      }
      rows = scratch;
    } else {
      rows += first * p_.depth;
    }
    for (int64_t c = 0; c < p_.columns; c += kOrderedColumns, packed += panel()) {
      const size_t bytes = static_cast<size_t>(std::min<int64_t>(kOrderedColumns, p_.columns - c)) * sizeof(float);
      for (int64_t r = 0; r < count;) {
        float sums[kTogether][kOrderedColumns] = {};
        const bool several = r + kTogether <= count;
        const float* together[kTogether];
        for (int i = 0; i < kTogether; ++i) together[i] = rows + (several ? r + i : r) * p_.depth;
        if (several) {
          add_products<kTogether>(together, packed, kOrderedColumns, p_.depth, sums);
        } else {
          add_products<1>(together, packed, kOrderedColumns, p_.depth, sums);
        }
        for (int i = 0; i < (several ? kTogether : 1); ++i) std::memcpy(out + (r + i) * p_.columns + c, sums[i], bytes);
        r += several ? kTogether : 1;
      }
    }
  }

  ProductSizes p_;
  std::vector<float> packed_;  // constant columns
};

// The constant one.
ConstantMatrix second_factor(const Step& step, const ProductSizes& p) {
  ConstantMatrix matrix{signed_weights(step.input(1), step.integer("weight_zero_point")), p.depth, p.columns, false};
  matrix.by_rows = !p.transpose_b && p.depth % 4 == 0;
  if (!p.transpose_b && !matrix.by_rows) {
    std::vector<int8_t> columns(static_cast<size_t>(p.columns * p.depth));
    portable::turn(matrix.weights.data, p.depth, p.columns, columns.data());
    matrix.weights.moved = std::move(columns);
    matrix.weights.data = matrix.weights.moved.data();
  }
  return matrix;
}

}  // namespace

std::unique_ptr<Kernel> make_tensor_products(const Step& step, const CoreSet& cores) {
  if (step.rules.count("sum_of_products") != 0) throw NoKernel("no native rule for sums");
  const ProductSizes products = read_products(step);
  if (step.text("form") == "plain") return std::make_unique<RealProducts>(step, products);
  const bool one_matrix = products.right_matrices == 1 && !products.transpose_a;
  if (one_matrix && step.text("form") == "quantized" && suits_matmul(step)) {
    return make_matmul_layer(step, cores, second_factor(step, products), biases(step, 2, products.columns));
  }
  const bool sums = adds_in_pairs(step) || step.rule("accumulate") == "s32_wrap";
  const bool stored = step.text("form") == "sums" || is_8bit(step.output().type);
  if (sums && stored && is_8bit(step.input(0).type) && is_8bit(step.input(1).type)) {
    return make_computed_products(step, cores, products);
  }
  return std::make_unique<IntegerProducts>(step, cores, products);
}

}  // namespace bittrue

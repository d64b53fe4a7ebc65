// Products of tensors, a step of matmul: rows times constant 8-bit columns as a layer; other bytes as computed products,
// wider integers by 16-bit products, binary32 in order.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/share.h"
#include "isa/portable/turned_weights.h"
#include "operators/layers/columns.h"
#include "operators/layers/computed_products.h"
#include "operators/layers/eights.h"
#include "operators/layers/integer_layer.h"
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

// Sums of binary32 in the order that the slot `sum_of_products` says, without it from +0 on in order.
class RealProducts final : public Kernel {
 public:
  RealProducts(const Step& step, const CoreSet& cores, const ProductSizes& products)
      : core_(cores.real_matmul()), p_(products) {
    const Operand& right = step.input(1);
    require(step.input(0).type == Type::f32 && right.type == Type::f32 && step.output().type == Type::f32,
            "binary32 operands are needed");
    const auto rule = step.rules.find("sum_of_products");
    if (rule != step.rules.end() && rule->second != "binary32_in_order") {
      const bool in_chains = rule->second == "binary32_fused_in_chains";
      eights_ = rule->second == "binary32_eights_then_fused";
      require(in_chains || eights_ || rule->second == "binary32_fused_in_order" ||
                  rule->second == "binary32_fused_from_bias",
              "no native rule for sums");
      fused_ = true;
      // Even and odd terms of a single row.
      if (in_chains && p_.rows == 1) chains_ = 2;
    }
    if (right.constant == nullptr) return;
    std::vector<float> values(static_cast<size_t>(right.elements));
    std::memcpy(values.data(), right.constant, static_cast<size_t>(right.bytes()));
    packed_.resize(static_cast<size_t>(p_.right_matrices * matrix_floats()));
    for (int64_t i = 0; i < p_.right_matrices * panels(); ++i) pack(values.data(), i, packed_.data());
  }

  int64_t scratch_bytes(int threads) const override { return packed_bytes() + threads * worker_bytes(); }
  bool packs(size_t input) const override { return input == 1 && !packed_.empty(); }
  std::string note() const override { return fused_ ? "fused binary32 sums in order" : "binary32 sums in order"; }

  void run(const Run& run) const override {
    const float* packed = packed_.data();
    if (packed_.empty()) {
      auto* target = reinterpret_cast<float*>(run.scratch);
      share(run.pool, p_.right_matrices * panels(), p_.right_matrices * matrix_floats(),
            [&](int64_t i, int) { pack(reinterpret_cast<const float*>(run.inputs[1]), i, target); });
      packed = target;
    }
    const int64_t blocks = (p_.rows + kBlock - 1) / kBlock;
    std::atomic<bool> odd{false};
    share(run.pool, p_.matrices() * blocks, p_.work(), [&](int64_t task, int worker) {
      const int64_t matrix = task / blocks, first = task % blocks * kBlock;
      auto* scratch = reinterpret_cast<float*>(run.scratch + packed_bytes() + worker * worker_bytes());
      if (multiply(run, packed + p_.right[matrix] * matrix_floats(), matrix, first, std::min(kBlock, p_.rows - first),
                   scratch)) {
        odd = true;
      }
    });
    // Signs and payloads of NaN are the reference's to tell.
    if (odd) throw Undefined();
  }

 private:
  static constexpr int64_t kBlock = 24;  // rows of a task: a multiple of every tile's height

  int64_t panel() const { return core_.lanes * core_.vectors; }
  int64_t panels() const { return (p_.columns + panel() - 1) / panel(); }
  int64_t width(int64_t first) const { return round_up(std::min(panel(), p_.columns - first), core_.lanes); }
  int64_t matrix_floats() const { return p_.depth * round_up(p_.columns, core_.lanes); }
  int64_t packed_bytes() const { return packed_.empty() ? round_up(p_.right_matrices * matrix_floats() * 4, 64) : 0; }
  bool gathers() const { return p_.transpose_a || chains_ > 1; }
  int64_t sum_floats() const { return round_up(kBlock * panel(), 16); }
  int64_t worker_bytes() const {
    return round_up((chains_ * sum_floats() + (gathers() ? kBlock * p_.depth : 0)) * 4, 64);
  }
  int64_t chain_depth(int64_t chain) const { return (p_.depth - chain + chains_ - 1) / chains_; }

  // Panel i % panels of matrix i / panels, chain after chain.
  void pack(const float* right, int64_t i, float* target) const {
    const int64_t matrix = i / panels(), first = i % panels() * panel(), wide = width(first);
    const int64_t used = std::min(wide, p_.columns - first);
    const int64_t down = p_.transpose_b ? 1 : p_.columns, across = p_.transpose_b ? p_.depth : 1;
    const float* from = right + matrix * p_.depth * p_.columns + first * across;
    float* to = target + matrix * matrix_floats() + p_.depth * first;
    for (int64_t chain = 0; chain < chains_; ++chain) {
      for (int64_t k = chain; k < p_.depth; k += chains_, to += wide) {
        for (int64_t n = 0; n < used; ++n) to[n] = from[k * down + n * across];
        std::fill(to + used, to + wide, 0.0f);
      }
    }
  }

  // Whether a result is NaN.
  bool multiply(const Run& run, const float* packed, int64_t matrix, int64_t first, int64_t count,
                float* scratch) const {
    const float* left = reinterpret_cast<const float*>(run.inputs[0]) + p_.left[matrix] * p_.rows * p_.depth;
    auto* out = reinterpret_cast<float*>(run.outputs[0]) + (matrix * p_.rows + first) * p_.columns;
    float* gathered = scratch + chains_ * sum_floats();
    const float *begins[kBlock], *starts[kBlock];
    for (int64_t r = 0; r < count; ++r) {
      begins[r] = left + (first + r) * p_.depth;
      if (!gathers()) continue;
      float* to = gathered + r * p_.depth;
      begins[r] = to;
      for (int64_t chain = 0; chain < chains_; ++chain) {
        for (int64_t k = chain; k < p_.depth; k += chains_) {
          *to++ = left[p_.transpose_a ? k * p_.rows + first + r : (first + r) * p_.depth + k];
        }
      }
    }
    uint32_t odd = 0;
    for (int64_t c = 0; c < p_.columns; c += panel()) {
      RealRows rows;
      rows.rows = starts;
      rows.capacity = kBlock, rows.count = count, rows.stride = width(c);
      const int64_t wide = rows.stride, used = std::min(wide, p_.columns - c);
      int64_t begin = 0;
      for (int64_t chain = 0; chain < chains_; begin += chain_depth(chain++)) {
        for (int64_t r = 0; r < count; ++r) starts[r] = begins[r] + begin;
        rows.depth = chain_depth(chain), rows.sums = scratch + chain * sum_floats();
        std::fill_n(rows.sums, count * wide, 0.0f);
        if (eights_) {
          const float* room[kBlock];
          add_eights(core_, starts, count, rows.depth, packed, wide, true, room, rows.sums);
        } else if (rows.depth > 0) {
          (fused_ ? core_.run_fused : core_.run)(rows, packed, wide);
        }
        packed += rows.depth * wide;
      }
      for (int64_t r = 0; r < count; ++r) {
        for (int64_t n = 0; n < used; ++n) {
          const float* sum = scratch + r * wide + n;
          const float value = chains_ > 1 ? *sum + sum[sum_floats()] : *sum;
          odd |= value != value;
          out[r * p_.columns + c + n] = value;
        }
      }
    }
    return odd != 0;
  }

  const RealMatmul& core_;
  ProductSizes p_;
  bool fused_ = false, eights_ = false;
  int64_t chains_ = 1;
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
  const ProductSizes products = read_products(step);
  if (step.text("form") == "plain") return std::make_unique<RealProducts>(step, cores, products);
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

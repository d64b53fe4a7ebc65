// 8-bit rows times constant weights, as a matrix product of the cores.
#include "operators/layers/integer_layer.h"

#include <algorithm>
#include <cstring>

#include "core/share.h"
#include "operators/layers/integer_finish.h"

namespace bittrue {
namespace {

constexpr size_t kNone = IntegerFinish::kNone;

// Where the zero point of the rows is known while running only, what it folds into the bias is added to the sums.
class IntegerLayer final : public Kernel {
 public:
  // `zero_point`: input that holds zx while running, kNone when the step has the parameter input_zero_point.
  IntegerLayer(const Step& step, const CoreSet& cores, const ConstantMatrix& matrix,
               const std::vector<int64_t>& addends, size_t zero_point, IntegerFinish finish)
      : depth_(matrix.depth),
        columns_(matrix.columns),
        weight_zero_point_(matrix.weights.zero_point),
        zero_point_(zero_point),
        finish_(std::move(finish)),
        row_terms_(cores.row_terms()) {
    const Operand &in = step.input(0), &out = step.output();
    const bool pairs = adds_in_pairs(step);
    if (!requantized()) {
      require((pairs || step.rule("accumulate") == "s32_wrap") && is_8bit(in.type), "no native kernel for these types");
      require(out.type == (finish_.result == IntegerFinish::Result::reals ? Type::f32 : Type::s32),
              "no native kernel for these types");
    }
    require(in.dense() && out.dense() && depth_ > 0, "both sides must be dense");
    rows_ = in.elements / depth_;
    require(rows_ * depth_ == in.elements && rows_ * columns_ == out.elements, "the shapes do not fit");
    packed_depth_ = round_up(depth_, 4);
    int64_t known_zero_point = 0;
    if (zero_point != kNone) {
      require(step.input(zero_point).elements == 1 && step.input(zero_point).type == in.type,
              "one zero point is needed");
    } else {
      // Without padding any zero point will do. An absent one is 0 in the plan's numbers.
      const int64_t most = requantized() ? int64_t{1} << 31 : 255;
      const bool given = requantized() || step.integers.count("input_zero_point") != 0;
      known_zero_point = (given ? step.integer("input_zero_point", -most, most) : 0) + flip_of(in.type);
    }
    const int8_t* const weights = matrix.weights.data;
    const std::vector<int64_t> sums =
        matrix.by_rows ? sums_of_columns(weights, depth_, columns_) : sums_of_rows(weights, columns_, depth_);
    std::vector<int32_t> bias(static_cast<size_t>(columns_));
    for (int64_t n = 0; n < columns_; ++n) {
      corrections_.push_back(zero_point_factor(depth_, weight_zero_point_, sums[n]));
      bias[n] = folded_bias(addends[n], known_zero_point, corrections_.back());
    }
    // Weights that need no bytes between columns are used as they are.
    std::vector<int8_t> packed;
    if (packed_depth_ != depth_) {
      packed.resize(static_cast<size_t>(columns_ * packed_depth_));
      for (int64_t n = 0; n < columns_; ++n) {
        std::copy_n(weights + n * depth_, depth_, packed.data() + n * packed_depth_);
      }
    }
    MatmulSpec spec;
    spec.columns = columns_;
    spec.depth = packed_depth_;
    spec.weights = packed.empty() ? weights : packed.data();
    spec.by_rows = matrix.by_rows;
    spec.bias = bias.data();
    spec.row_terms = weight_zero_point_ != 0;
    spec.sums = !requantized();
    spec.pairs = pairs;
    if (requantized()) spec.requantize = step.requantize(columns_);
    matmul_ = cores.matmul(spec);
    rate_ = cores.byte_rate(requantized() ? 80 : 150);
    block_ = std::min<int64_t>(std::max<int64_t>(rows_, 1), round_up(64, matmul_->tile_rows()));
  }

  int64_t scratch_bytes(int threads) const override { return copy_bytes() + factor_bytes() + threads * worker_bytes(); }
  bool packs(size_t input) const override { return input != 0 && input != zero_point_ && !finish_.reads(input); }
  std::string note() const override { return "matmul"; }

  void run(const Run& run) const override {
    if (rows_ == 0 || columns_ == 0) return;
    const uint8_t* data = packed_rows(run.inputs[0], rows_, depth_, packed_depth_, run.scratch);
    auto* own = reinterpret_cast<float*>(run.scratch + copy_bytes());
    const float *factors = finish_.find_factors(run, columns_, own), *addends = finish_.find_addends(run);
    const uint32_t zero_point = zero_point_ == kNone ? 0 : run.inputs[zero_point_][0];

    const int64_t panels = matmul_->panels(), blocks = (rows_ + block_ - 1) / block_;
    const int64_t bytes = columns_ * (requantized() ? 1 : 4);
    const int threads = run.pool.threads_for(rows_ * columns_ * depth_ / rate_);
    const bool apart = threads > 1 && (requantized() || blocks < 2 * threads);
    const int64_t groups =
        cut(apart ? group_count(panels, threads) : 1, block_ * columns_ * depth_, kTaskMostWork, panels);
    run.pool.parallel(blocks * groups, threads, [&](int64_t task, int worker) {
      uint8_t* scratch = run.scratch + copy_bytes() + factor_bytes() + worker * worker_bytes();
      auto* rows = reinterpret_cast<const uint8_t**>(scratch);
      auto* terms = reinterpret_cast<int32_t*>(scratch + round_up(block_ * 8, 64));
      const int64_t first = task / groups * block_, group = task % groups;
      MatmulRows part;
      part.rows = rows;
      part.capacity = block_;
      part.count = std::min(block_, rows_ - first);
      part.row_terms = terms;
      part.out = run.outputs[0] + first * bytes;
      part.out_stride = bytes;
      for (int64_t r = 0; r < part.count; ++r) rows[r] = data + (first + r) * packed_depth_;
      if (weight_zero_point_ != 0) {
        row_terms_(rows, block_, 1, depth_, part.count, static_cast<int32_t>(-weight_zero_point_), terms);
      }
      matmul_->run(part, panels * group / groups, panels * (group + 1) / groups);
      if (groups == 1) finish(part.out, part.count, zero_point, factors, addends);
    });
    if (groups > 1) finish(run.outputs[0], rows_, zero_point, factors, addends);
  }

 private:
  int64_t copy_bytes() const { return depth_ == packed_depth_ ? 0 : round_up(rows_ * packed_depth_, 64); }
  bool requantized() const { return finish_.result == IntegerFinish::Result::bytes; }
  int64_t factor_bytes() const { return finish_.late() ? round_up(columns_ * 4, 64) : 0; }
  int64_t worker_bytes() const { return round_up(block_ * 8, 64) + round_up(block_ * 4, 64); }

  // `rows` rows of sums become the result where they lie.
  void finish(uint8_t* out, int64_t rows, uint32_t zero_point, const float* factors, const float* addends) const {
    if (requantized() || (finish_.result == IntegerFinish::Result::sums && zero_point == 0)) return;
    auto* sums = reinterpret_cast<int32_t*>(out);
    const uint32_t* corrections = corrections_.data();
    for (int64_t r = 0; r < rows; ++r, sums += columns_) {
      if (finish_.result == IntegerFinish::Result::sums) {
        for (int64_t n = 0; n < columns_; ++n) {
          sums[n] = static_cast<int32_t>(static_cast<uint32_t>(sums[n]) + zero_point * corrections[n]);
        }
        continue;
      }
      // Both have four bytes.
      finish_.reals([=](int64_t n) { return static_cast<uint32_t>(sums[n]) + zero_point * corrections[n]; }, columns_,
                    factors, addends, reinterpret_cast<uint8_t*>(sums));
    }
  }

  int64_t depth_, columns_, weight_zero_point_;
  size_t zero_point_;
  IntegerFinish finish_;
  RowTerms row_terms_;
  int64_t rows_ = 0, packed_depth_ = 0, block_ = 0, rate_ = 1;
  std::vector<uint32_t> corrections_;
  std::unique_ptr<Matmul> matmul_;
};

}  // namespace

ConstantMatrix constant_matrix(const Step& step) {
  const Operand &a = step.input(0), &b = step.input(1);
  const bool turned = step.integer("transpose_b", 0, 1) != 0;
  require(!turned || b.rank() == 2, "transposed batches");
  require(b.rank() >= 2, "weights are no matrix");
  ConstantMatrix matrix;
  matrix.depth = b.shape[b.rank() - (turned ? 1 : 2)];
  matrix.columns = b.shape[b.rank() - (turned ? 2 : 1)];
  const std::vector<int64_t> zero_points = weight_zero_points(step, ProductOperands::kColumnPoints);
  const bool pairs = adds_in_pairs(step);
  // Cores take rows as they lie, unless a column needs bytes of its own.
  matrix.by_rows = !turned && !pairs && is_8bit(b.type) && matrix.depth % 4 == 0 &&
                   matrix.depth * matrix.columns == b.elements && zero_points.size() == 1;
  matrix.weights = matrix.by_rows ? signed_weights(b, zero_points[0]) : column_weights(b, zero_points, turned, pairs);
  require(a.rank() >= 1, "the shapes do not fit");
  if (step.integer("transpose_a", 0, 1) != 0) {
    // A single row or column is its own transpose.
    require(a.rank() == 2 && (a.shape[0] == 1 || a.shape[1] == 1), "rows are not side by side");
    require(a.shape[0] == matrix.depth, "the shapes do not fit");
  } else {
    require(a.shape.back() == matrix.depth, "the shapes do not fit");
  }
  return matrix;
}

std::vector<int64_t> column_addends(const Step& step, int64_t columns) {
  if (!step.has_input(ProductOperands::kAddend)) return std::vector<int64_t>(static_cast<size_t>(columns), 0);
  const Operand& addend = step.input(ProductOperands::kAddend);
  require(addend.rank() < 2 || addend.shape[0] == 1, "addends differ by row");
  std::vector<int64_t> values = addend.integers();
  if (values.size() == 1) values.assign(static_cast<size_t>(columns), values[0]);
  require(static_cast<int64_t>(values.size()) == columns, "one addend per column is needed");
  return values;
}

std::unique_ptr<Kernel> make_matmul_layer(const Step& step, const CoreSet& cores, const ConstantMatrix& matrix,
                                          const std::vector<int64_t>& bias) {
  IntegerFinish finish;
  finish.result = IntegerFinish::Result::bytes;
  return std::make_unique<IntegerLayer>(step, cores, matrix, bias, kNone, std::move(finish));
}

std::unique_ptr<Kernel> make_integer_layer(const Step& step, const CoreSet& cores) {
  require(!step.has_array("input_zero_points"), "zero points differ by row");
  const ConstantMatrix b = constant_matrix(step);
  IntegerFinish finish(step, b.columns);
  const bool real_addends = finish.addends != kNone;
  const std::vector<int64_t> addends =
      real_addends ? std::vector<int64_t>(static_cast<size_t>(b.columns), 0) : column_addends(step, b.columns);
  const bool late = step.integer("late", 0, 1) != 0 && step.has_input(ProductOperands::kRowPoint);
  return std::make_unique<IntegerLayer>(step, cores, b, addends, late ? ProductOperands::kRowPoint : kNone,
                                        std::move(finish));
}

}  // namespace bittrue

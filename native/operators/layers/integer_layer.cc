// 8-bit rows times constant weights, as a matrix product of the cores.
#include "operators/layers/integer_layer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/share.h"

namespace bittrue {
namespace {

constexpr size_t kNone = SIZE_MAX;

enum class Result : uint8_t { bytes, sums, reals };

// How the sums become the result; requantized ones are the core's.
struct IntegerFinish {
  Result result = Result::sums;
  std::vector<float> factors;  // known ones: one per column
  // Operands that are read while running, kNone where there are none: binary32 scales of rows (one) and of columns (one, or
  // one per column), a binary32 addend per column.
  size_t row_scale = kNone, column_scales = kNone, addends = kNone;
  bool one_column_scale = false;
  // Addends and products are rounded once, products of row scales (one) before them.
  bool fused = false;
  float first_factor = 1.0f;
};

// Where the zero point of the rows is known while running only, what it folds into the bias is added to the sums.
class IntegerLayer final : public Kernel {
 public:
  // `zero_point`: input that holds zx while running, kNone when the step has the parameter input_zero_point.
  IntegerLayer(const Step& step, const CoreSet& cores, int64_t columns, int64_t depth, const SignedWeights& weights,
               const std::vector<int64_t>& addends, size_t zero_point, IntegerFinish finish)
      : depth_(depth),
        columns_(columns),
        weight_zero_point_(weights.zero_point),
        zero_point_(zero_point),
        finish_(std::move(finish)),
        row_terms_(cores.row_terms()) {
    const Operand &in = step.input(0), &out = step.output();
    const bool pairs = adds_in_pairs(step);
    if (!requantized()) {
      require((pairs || step.rule("accumulate") == "s32_wrap") && is_8bit(in.type), "no native kernel for these types");
      require(out.type == (finish_.result == Result::reals ? Type::f32 : Type::s32),
              "no native kernel for these types");
    }
    require(in.dense() && out.dense() && depth > 0, "both sides must be dense");
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
    // Weights that need no bytes between columns are used as they are.
    std::vector<int8_t> packed(packed_depth_ == depth_ ? 0 : static_cast<size_t>(columns_ * packed_depth_), 0);
    std::vector<int32_t> bias(static_cast<size_t>(columns_));
    for (int64_t n = 0; n < columns_; ++n) {
      const int8_t* row = weights.data + n * depth_;
      if (!packed.empty()) std::memcpy(packed.data() + n * packed_depth_, row, static_cast<size_t>(depth_));
      corrections_.push_back(zero_point_factor(depth_, weight_zero_point_, sum_of(row, depth_)));
      bias[n] = folded_bias(addends[n], known_zero_point, corrections_.back());
    }
    MatmulSpec spec;
    spec.columns = columns_;
    spec.depth = packed_depth_;
    spec.weights = packed.empty() ? weights.data : packed.data();
    spec.bias = bias.data();
    spec.row_terms = weight_zero_point_ != 0;
    spec.sums = !requantized();
    spec.pairs = pairs;
    if (requantized()) spec.requantize = step.requantize(columns_);
    matmul_ = cores.matmul(spec);
    block_ = std::min<int64_t>(std::max<int64_t>(rows_, 1), round_up(64, matmul_->tile_rows()));
  }

  int64_t scratch_bytes(int threads) const override { return copy_bytes() + factor_bytes() + threads * worker_bytes(); }
  bool packs(size_t input) const override {
    return input != 0 && input != zero_point_ && input != finish_.row_scale && input != finish_.column_scales &&
           input != finish_.addends;
  }
  std::string note() const override { return "matmul"; }

  void run(const Run& run) const override {
    if (rows_ == 0 || columns_ == 0) return;
    const uint8_t* data = packed_rows(run.inputs[0], rows_, depth_, packed_depth_, run.scratch);
    auto* own = reinterpret_cast<float*>(run.scratch + copy_bytes());
    const float* factors = finish_.factors.empty() ? own : finish_.factors.data();
    if (finish_.result == Result::reals && finish_.factors.empty()) find_factors(run, own);
    const float* addends =
        finish_.addends == kNone ? nullptr : reinterpret_cast<const float*>(run.inputs[finish_.addends]);
    const uint32_t zero_point = zero_point_ == kNone ? 0 : run.inputs[zero_point_][0];

    const int64_t panels = matmul_->panels(), blocks = (rows_ + block_ - 1) / block_;
    // Multiply-adds of one nanosecond, about: what decides whether threads are worth it.
    const int64_t rate = requantized() ? 80 : 150, bytes = columns_ * (requantized() ? 1 : 4);
    const int threads = rows_ * columns_ * depth_ / rate < kWorthSharing ? 1 : run.pool.threads();
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
  bool requantized() const { return finish_.result == Result::bytes; }
  int64_t factor_bytes() const {
    return finish_.result == Result::reals && finish_.factors.empty() ? round_up(columns_ * 4, 64) : 0;
  }
  int64_t worker_bytes() const { return round_up(block_ * 8, 64) + round_up(block_ * 4, 64); }

  void find_factors(const Run& run, float* factors) const {
    const float row = *reinterpret_cast<const float*>(run.inputs[finish_.row_scale]);
    const auto* columns = reinterpret_cast<const float*>(run.inputs[finish_.column_scales]);
    for (int64_t n = 0; n < columns_; ++n) factors[n] = row * columns[finish_.one_column_scale ? 0 : n];
  }

  // `rows` rows of sums become the result where they lie.
  void finish(uint8_t* out, int64_t rows, uint32_t zero_point, const float* factors, const float* addends) const {
    if (requantized() || (finish_.result == Result::sums && zero_point == 0)) return;
    auto* sums = reinterpret_cast<int32_t*>(out);
    const uint32_t* corrections = corrections_.data();
    for (int64_t r = 0; r < rows; ++r, sums += columns_) {
      if (finish_.result == Result::sums) {
        for (int64_t n = 0; n < columns_; ++n) {
          sums[n] = static_cast<int32_t>(static_cast<uint32_t>(sums[n]) + zero_point * corrections[n]);
        }
        continue;
      }
      // Both have four bytes.
      auto* reals = reinterpret_cast<uint8_t*>(sums);
      for (int64_t n = 0; n < columns_; ++n) {
        const auto sum = static_cast<int32_t>(static_cast<uint32_t>(sums[n]) + zero_point * corrections[n]);
        float real = static_cast<float>(sum);
        if (finish_.fused) {
          real = std::fma(real * finish_.first_factor, factors[n], addends == nullptr ? 0.0f : addends[n]);
        } else {
          real *= factors[n];
          if (addends != nullptr) real += addends[n];
        }
        std::memcpy(reals + 4 * n, &real, 4);
      }
    }
  }

  int64_t depth_, columns_, weight_zero_point_;
  size_t zero_point_;
  IntegerFinish finish_;
  RowTerms row_terms_;
  int64_t rows_ = 0, packed_depth_ = 0, block_ = 0;
  std::vector<uint32_t> corrections_;
  std::unique_ptr<Matmul> matmul_;
};

// Which operands of matmul hold what.
constexpr size_t kAddend = 2, kRowScale = 3, kRowPoint = 4, kColumnScales = 5, kColumnPoints = 6, kResultScale = 7;

// How sums become real numbers: factors of the plan, or operands that are read while running.
IntegerFinish real_finish(const Step& step, int64_t columns) {
  const std::string& rule = step.rule("scale_back");
  require(rule == "binary32_product_of_scales" || rule == "binary32_rows_then_fused", "no native rule for this slot");
  require(step.integer("b_scale_first", 0, 1) == 0 && step.integer("first_in_multiplier", 0, 1) != 0 &&
              step.integer("second_in_multiplier", 0, 1) != 0,
          "scales of another form");
  IntegerFinish finish;
  finish.result = Result::reals;
  finish.fused = rule == "binary32_rows_then_fused";
  require(!finish.fused || step.integer("late", 0, 1) == 0, "scales of another form");
  if (step.integer("late", 0, 1) == 0) {
    const Array &first = step.array("first_scale"), &second = step.array("second_scale");
    require(first.count == 1 || first.count == columns, "one factor, or one per column, is needed");
    require(second.count == 1 || second.count == columns, "one factor, or one per column, is needed");
    require(!finish.fused || first.count == 1, "one factor of rows is needed");
    if (finish.fused) finish.first_factor = static_cast<float>(first.real(0));
    for (int64_t n = 0; n < columns; ++n) {
      const float factor = finish.fused ? 1.0f : static_cast<float>(first.real(first.count == 1 ? 0 : n));
      finish.factors.push_back(factor * static_cast<float>(second.real(second.count == 1 ? 0 : n)));
      require(std::isfinite(finish.factors.back()), "a factor is not finite");
    }
  } else {
    const Operand &row = step.input(kRowScale), &own = step.input(kColumnScales);
    require(row.type == Type::f32 && own.type == Type::f32 && row.elements == 1 &&
                (own.elements == 1 || own.elements == columns) && !step.has_input(kResultScale) &&
                step.real("alpha") == 1.0,
            "scales of another form");
    finish.row_scale = kRowScale;
    finish.column_scales = kColumnScales;
    finish.one_column_scale = own.elements == 1;
  }
  if (step.has_input(kAddend) && step.input(kAddend).type == Type::f32) {
    require(step.input(kAddend).elements == columns, "one addend per column is needed");
    finish.addends = kAddend;
  }
  return finish;
}

}  // namespace

ConstantMatrix constant_matrix(const Step& step) {
  const Operand &a = step.input(0), &b = step.input(1);
  const bool turned = step.integer("transpose_b", 0, 1) != 0;
  require(!turned || b.rank() == 2, "transposed batches");
  ConstantMatrix matrix;
  matrix.weights = column_weights(b, weight_zero_points(step, kColumnPoints), turned, adds_in_pairs(step));
  matrix.depth = b.shape[b.rank() - (turned ? 1 : 2)];
  matrix.columns = b.shape[b.rank() - (turned ? 2 : 1)];
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
  if (!step.has_input(kAddend)) return std::vector<int64_t>(static_cast<size_t>(columns), 0);
  const Operand& addend = step.input(kAddend);
  require(addend.rank() < 2 || addend.shape[0] == 1, "addends differ by row");
  std::vector<int64_t> values = addend.integers();
  if (values.size() == 1) values.assign(static_cast<size_t>(columns), values[0]);
  require(static_cast<int64_t>(values.size()) == columns, "one addend per column is needed");
  return values;
}

std::unique_ptr<Kernel> make_matmul_layer(const Step& step, const CoreSet& cores, int64_t columns, int64_t depth,
                                          const SignedWeights& weights, const std::vector<int64_t>& bias) {
  IntegerFinish finish;
  finish.result = Result::bytes;
  return std::make_unique<IntegerLayer>(step, cores, columns, depth, weights, bias, kNone, std::move(finish));
}

std::unique_ptr<Kernel> make_integer_layer(const Step& step, const CoreSet& cores) {
  require(!step.has_array("input_zero_points"), "zero points differ by row");
  const ConstantMatrix b = constant_matrix(step);
  IntegerFinish finish;
  if (step.rules.count("scale_back") != 0) finish = real_finish(step, b.columns);
  const bool real_addends = finish.addends != kNone;
  const std::vector<int64_t> addends =
      real_addends ? std::vector<int64_t>(static_cast<size_t>(b.columns), 0) : column_addends(step, b.columns);
  const bool late = step.integer("late", 0, 1) != 0;
  return std::make_unique<IntegerLayer>(step, cores, b.columns, b.depth, b.weights, addends,
                                        late && step.has_input(kRowPoint) ? kRowPoint : kNone, std::move(finish));
}

}  // namespace bittrue

// qlinear_matmul and qgemm with 8-bit results: rows times a constant matrix, as a layer.
#include "operators/integer_layer.h"
#include "operators/matmul_layer.h"
#include "operators/registry.h"

namespace bittrue {
namespace {

// One multiplier, or one per column.
void require_column_multipliers(const Step& step) {
  const Array& factor = step.array("factor");
  require(factor.shape.size() <= 1 || factor.shape.back() == factor.count, "multipliers differ by row");
  require(step.array("factor").count == 1 || step.output().shape.empty() || factor.count == step.output().shape.back(),
          "multipliers differ by row");
}

// An addend of every column: a constant of one row, or one number.
std::vector<int64_t> column_addends(const Step& step, size_t input, int64_t columns) {
  if (!step.has_input(input)) return std::vector<int64_t>(static_cast<size_t>(columns), 0);
  const Operand& addend = step.input(input);
  require(addend.rank() < 2 || addend.shape[0] == 1, "addends differ by row");
  std::vector<int64_t> values = addend.integers();
  if (values.size() == 1) values.assign(static_cast<size_t>(columns), values[0]);
  require(static_cast<int64_t>(values.size()) == columns, "one addend per column is needed");
  return values;
}

// A kernel for a step of fewer inputs.
class Rearranged final : public Kernel {
 public:
  Rearranged(std::unique_ptr<Kernel> kernel, size_t first, size_t second)
      : kernel_(std::move(kernel)), first_(first), second_(second) {}

  void run(const Run& run) const override {
    uint8_t* inputs[] = {run.inputs[first_], run.inputs[second_]};
    kernel_->run({inputs, run.outputs, run.scratch, run.pool});
  }
  int64_t scratch_bytes(int threads) const override { return kernel_->scratch_bytes(threads); }
  bool packs(size_t input) const override { return input != first_ && input != second_; }
  std::string note() const override { return kernel_->note(); }

 private:
  std::unique_ptr<Kernel> kernel_;
  size_t first_, second_;
};

// Both factors are computed: the step of batch_matmul that does the same.
std::unique_ptr<Kernel> make_computed_product(const Step& step, const CoreSet& cores) {
  Step product = step;
  product.name = "batch_matmul";
  product.inputs = {step.inputs[0], step.inputs[3]};
  product.integers["adj_x"] = product.integers["adj_y"] = {0};
  product.texts["form"] = "quantized";
  auto kernel = find_factory(product.name)(product, cores);
  if (kernel == nullptr) return nullptr;
  return std::make_unique<Rearranged>(std::move(kernel), 0, 3);
}

}  // namespace

std::unique_ptr<Kernel> make_qlinear_matmul(const Step& step, const CoreSet& cores) {
  require(step.integer("late", 0, 1) == 0, "scales are known while running only");
  require(step.rule("accumulate") == "s32_wrap" && is_8bit(step.input(0).type) && is_8bit(step.output().type),
          "no native kernel for these types");
  require_column_multipliers(step);
  const Operand &a = step.input(0), &b = step.input(3);
  if (b.constant == nullptr) return make_computed_product(step, cores);
  const SignedWeights weights = column_weights(b, weight_zero_points(step, 5));
  const int64_t depth = b.shape[b.rank() - 2], columns = b.shape[b.rank() - 1];
  require(a.rank() >= 1 && a.shape.back() == depth, "the shapes do not fit");
  return make_matmul_layer(step, cores, columns, depth, weights, column_addends(step, step.inputs.size(), columns));
}

std::unique_ptr<Kernel> make_qgemm(const Step& step, const CoreSet& cores) {
  require(step.integer("late", 0, 1) == 0, "scales are known while running only");
  require(step.rule("accumulate") == "s32_wrap" && is_8bit(step.input(0).type), "no native kernel for these types");
  require_column_multipliers(step);
  const Operand &a = step.input(0), &b = step.input(3);
  require(a.rank() == 2 && b.rank() == 2, "factors are no matrices");
  const bool turned = step.integer("trans_b", 0, 1) != 0;
  // A single row or column is its own transpose.
  require(step.integer("trans_a", 0, 1) == 0 || a.shape[0] == 1 || a.shape[1] == 1, "rows are not side by side");
  const SignedWeights weights = column_weights(b, weight_zero_points(step, 5), turned);
  const int64_t depth = b.shape[turned ? 1 : 0], columns = b.shape[turned ? 0 : 1];
  require(a.elements == depth * step.output().shape[0], "the shapes do not fit");
  const std::vector<int64_t> addends = column_addends(step, 6, columns);
  if (is_8bit(step.output().type)) return make_matmul_layer(step, cores, columns, depth, weights, addends);
  return make_scaled_sums(step, cores, columns, depth, weights, addends);
}

}  // namespace bittrue

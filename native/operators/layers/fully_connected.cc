// fully_connected: 8-bit layers as a matrix product, all others by the general kernel.
#include <algorithm>
#include <cstring>

#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/registry.h"
#include "operators/layers/general_convolution.h"
#include "operators/layers/matmul_layer.h"
#include "operators/layers/real_layer.h"
#include "operators/layers/weights.h"

namespace bittrue {
namespace {

// Multiply-adds of one nanosecond, about, for few rows: what decides whether threads are worth it.
constexpr int64_t kRate = 80;

class FullyConnected final : public Kernel {
 public:
  FullyConnected(const Step& step, const CoreSet& cores, int64_t columns, int64_t depth, const SignedWeights& weights,
                 const std::vector<int64_t>& bias);

  void run(const Run& run) const override;
  int64_t scratch_bytes(int threads) const override { return copy_bytes() + threads * worker_bytes(); }
  bool packs(size_t input) const override { return input != 0; }
  std::string note() const override { return "matmul"; }

 private:
  int64_t copy_bytes() const { return depth_ == packed_depth_ ? 0 : round_up(rows_ * packed_depth_, 64); }
  int64_t worker_bytes() const { return round_up(block_ * 8, 64) + round_up(block_ * 4, 64); }

  int64_t depth_, columns_, rows_, packed_depth_, block_;
  int64_t zero_point_;  // of the weights
  RowTerms row_terms_;
  std::unique_ptr<Matmul> matmul_;
};

FullyConnected::FullyConnected(const Step& step, const CoreSet& cores, int64_t columns, int64_t depth,
                               const SignedWeights& weights, const std::vector<int64_t>& bias)
    : depth_(depth), columns_(columns), row_terms_(cores.row_terms()) {
  const Operand& in = step.input(0);
  require(in.dense() && step.output().dense(), "both sides must be dense");
  require(depth_ > 0, "there is nothing to add up");
  rows_ = in.elements / depth_;
  require(rows_ * depth_ == in.elements && rows_ * columns_ == step.output().elements, "the shapes do not fit");
  packed_depth_ = round_up(depth_, 4);
  const int flip = flip_of(in.type);
  // Without padding any zero point will do: it only enters the folded bias.
  const int64_t in_zero_point = step.integer("input_zero_point", -(int64_t{1} << 31), int64_t{1} << 31) + flip;
  zero_point_ = weights.zero_point;

  // Weights that need no bytes between columns are used as they are.
  const bool dense = packed_depth_ == depth_;
  std::vector<int8_t> packed(dense ? 0 : static_cast<size_t>(columns_ * packed_depth_), 0);
  std::vector<int32_t> folded(static_cast<size_t>(columns_));
  for (int64_t n = 0; n < columns_; ++n) {
    const int8_t* row = weights.data + n * depth_;
    if (!dense) std::memcpy(packed.data() + n * packed_depth_, row, static_cast<size_t>(depth_));
    folded[n] = folded_bias(bias[n], in_zero_point, zero_point_factor(depth_, zero_point_, sum_of(row, depth_)));
  }
  MatmulSpec spec;
  spec.columns = columns_;
  spec.depth = packed_depth_;
  spec.weights = dense ? weights.data : packed.data();
  spec.bias = folded.data();
  spec.row_terms = zero_point_ != 0;
  spec.requantize = step.requantize(columns_);
  matmul_ = cores.matmul(spec);
  block_ = std::min<int64_t>(std::max<int64_t>(rows_, 1), round_up(64, matmul_->tile_rows()));
}

void FullyConnected::run(const Run& run) const {
  if (rows_ == 0 || columns_ == 0) return;
  const uint8_t* data = packed_rows(run.inputs[0], rows_, depth_, packed_depth_, run.scratch);
  const int64_t panels = matmul_->panels(), blocks = (rows_ + block_ - 1) / block_;
  const int threads = rows_ * columns_ * depth_ / kRate < kWorthSharing ? 1 : run.pool.threads();
  const int64_t groups =
      cut(threads > 1 ? group_count(panels, threads) : 1, block_ * columns_ * depth_, kTaskMostWork, panels);
  run.pool.parallel(blocks * groups, threads, [&](int64_t task, int worker) {
    uint8_t* scratch = run.scratch + copy_bytes() + worker * worker_bytes();
    auto* rows = reinterpret_cast<const uint8_t**>(scratch);
    auto* terms = reinterpret_cast<int32_t*>(scratch + round_up(block_ * 8, 64));
    const int64_t first = task / groups * block_, group = task % groups;
    MatmulRows part;
    part.rows = rows;
    part.capacity = block_;
    part.count = std::min(block_, rows_ - first);
    part.row_terms = terms;
    part.out = run.outputs[0] + first * columns_;
    part.out_stride = columns_;
    for (int64_t r = 0; r < part.count; ++r) rows[r] = data + (first + r) * packed_depth_;
    if (zero_point_ != 0) row_terms_(rows, block_, 1, depth_, part.count, static_cast<int32_t>(-zero_point_), terms);
    matmul_->run(part, panels * group / groups, panels * (group + 1) / groups);
  });
}

}  // namespace

std::unique_ptr<Kernel> make_matmul_layer(const Step& step, const CoreSet& cores, int64_t columns, int64_t depth,
                                          const SignedWeights& weights, const std::vector<int64_t>& bias) {
  return std::make_unique<FullyConnected>(step, cores, columns, depth, weights, bias);
}

std::unique_ptr<Kernel> make_fully_connected(const Step& step, const CoreSet& cores) {
  require(step.texts.count("arithmetic") == 0, "whole numbers in binary32 have no native kernel");
  if (is_real_layer(step)) return make_real_fully_connected(step, cores);
  if (!suits_matmul(step)) return make_general_fully_connected(step, cores);
  const Operand& weights = step.input(1);
  require(weights.rank() == 2, "weights have two axes");
  return make_matmul_layer(step, cores, weights.shape[0], weights.shape[1],
                           signed_weights(weights, step.integer("weight_zero_point")),
                           biases(step, 2, weights.shape[0]));
}

BITTRUE_OPERATOR(fully_connected, make_fully_connected)

}  // namespace bittrue

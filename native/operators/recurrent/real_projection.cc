#include <atomic>
#include <cstring>

#include "core/share.h"
#include "operators/core/finite.h"
#include "operators/layers/single_rows.h"
#include "operators/recurrent/projection.h"

namespace bittrue {
namespace {

class RealProjection final : public Projection {
 public:
  RealProjection(const Step& step, const CoreSet& cores, const ProjectionPart& part, bool packed)
      : part_(part), packed_(packed), product_(cores.real_matmul(), part.depth, part.columns, 1.0f, packed) {
    const Operand& weights = step.input(part.input);
    require(weights.type == Type::f32 && weights.dense(), "no native kernel for these types");
    require(!packed_ || weights.constant != nullptr, "weights are computed");
    // Single rows meet the weights as they are.
    if (weights.constant == nullptr || (!packed_ && part.rows == 1)) return;
    std::vector<float> values(static_cast<size_t>(weights.elements));
    std::memcpy(values.data(), weights.constant, values.size() * sizeof(float));
    kept_.resize(static_cast<size_t>(part.directions * product_.matrix_numbers()));
    for (int64_t d = 0; d < part.directions; ++d) {
      product_.pack_all(of(values.data(), d), true, kept_.data() + d * product_.matrix_numbers());
    }
  }

  int64_t shared_bytes() const override {
    return !kept_.empty() ? 0 : round_up(part_.directions * product_.matrix_numbers() * 4, 64);
  }
  int64_t worker_bytes(int64_t) const override { return product_.worker_bytes(); }
  bool packed() const override { return packed_; }

  void prepare(const Run& run, int64_t most_rows, uint8_t* shared) const override {
    if (!kept_.empty() || most_rows == 1) return;
    const auto* weights = reinterpret_cast<const float*>(run.inputs[part_.input]);
    const int64_t panels = product_.panels();
    run.pool.parallel(part_.directions * panels, [&](int64_t task, int) {
      const int64_t d = task / panels;
      product_.pack(of(weights, d), true, task % panels,
                    reinterpret_cast<float*>(shared) + d * product_.matrix_numbers());
    });
  }

  bool multiply(const Run& run, int64_t direction, const float* rows, int64_t count, const Addend& addend, float* out,
                const uint8_t* shared, uint8_t* scratch) const override {
    if (!packed_ && count == 1) return single_row(run, direction, rows, addend, out);
    const float* all = !kept_.empty() ? kept_.data() : reinterpret_cast<const float*>(shared);
    const float* packed = all + direction * product_.matrix_numbers();
    if (run.pool.threads() == 1 || count * part_.columns * part_.depth < 200000) {
      return product_.multiply_all(rows, count, packed, addend, out, part_.columns, scratch);
    }
    constexpr int64_t kRows = FusedProduct::kRows;
    const int64_t panels = product_.panels(), blocks = (count + kRows - 1) / kRows;
    std::atomic<bool> finite{true};
    run.pool.parallel(blocks * panels, [&](int64_t task, int worker) {
      const int64_t first = task / panels * kRows;
      Addend own = addend;
      if (own.from != nullptr) own.from += first * own.down;
      if (!product_.multiply(rows + first * part_.depth, std::min(kRows, count - first), packed, task % panels, own,
                             out + first * part_.columns, part_.columns, scratch + worker * product_.worker_bytes())) {
        finite.store(false, std::memory_order_relaxed);
      }
    });
    return finite.load(std::memory_order_relaxed);
  }

 private:
  const float* of(const float* weights, int64_t direction) const {
    return weights + (direction * part_.all + part_.first) * part_.depth;
  }

  bool single_row(const Run& run, int64_t direction, const float* row, const Addend& addend, float* out) const {
    sums_of_lanes_of_eight(of(reinterpret_cast<const float*>(run.inputs[part_.input]), direction), row, part_.depth,
                           part_.columns, out);
    for (int64_t n = 0; n < part_.columns; ++n) out[n] = out[n] + (addend.from == nullptr ? 0.0f : addend.from[n]);
    return all_finite(out, part_.columns);
  }

  ProjectionPart part_;
  bool packed_;
  FusedProduct product_;
  std::vector<float> kept_;
};

}  // namespace

std::unique_ptr<Projection> make_real_projection(const Step& step, const CoreSet& cores, const ProjectionPart& part,
                                                 bool packed) {
  return std::make_unique<RealProjection>(step, cores, part, packed);
}

}  // namespace bittrue

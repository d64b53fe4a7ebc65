// scatter_nd: slices added, in order, to zeros at the coordinates of each. Coordinates outside have no defined result.
#include <algorithm>

#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

// How sums are stored: what zero is, and how two stored values are added.
template <class T>
struct ScatteredNumber {
  using Kind = T;
  static constexpr T kZero = 0;
  static T add(T a, T b) { return static_cast<T>(a + b); }
};
// s8, moved up by 128.
struct ScatteredCode {
  using Kind = uint8_t;
  static constexpr uint8_t kZero = 128;
  static uint8_t add(uint8_t a, uint8_t b) { return static_cast<uint8_t>(a + b - 128); }
};
struct ScatteredTruth {
  using Kind = uint8_t;
  static constexpr uint8_t kZero = 0;
  static uint8_t add(uint8_t a, uint8_t b) { return a | b; }
};

template <class Value>
class Scatter final : public Kernel {
 public:
  using T = typename Value::Kind;

  Scatter(std::vector<int64_t> dimensions, int64_t count, int64_t inner, int64_t elements)
      : dimensions_(std::move(dimensions)), count_(count), inner_(inner), elements_(elements) {}

  void run(const Run& run) const override {
    const auto* coordinates = reinterpret_cast<const int32_t*>(run.inputs[0]);
    const T* updates = reinterpret_cast<const T*>(run.inputs[1]);
    T* out = reinterpret_cast<T*>(run.outputs[0]);
    std::fill(out, out + elements_, Value::kZero);
    for (int64_t i = 0; i < count_; ++i, updates += inner_) {
      if (inner_ >= 64 || i % 1024 == 0) run.check();
      int64_t flat = 0;
      for (const int64_t dimension : dimensions_) {
        const int64_t place = *coordinates++;
        if (place < 0 || place >= dimension) throw Undefined();
        flat = flat * dimension + place;
      }
      T* to = out + flat * inner_;
      for (int64_t k = 0; k < inner_; ++k) to[k] = Value::add(to[k], updates[k]);
    }
  }

 private:
  std::vector<int64_t> dimensions_;
  int64_t count_, inner_, elements_;
};

std::unique_ptr<Kernel> make_scatter_nd(const Step& step, const CoreSet&) {
  if (step.text("into") != "zeros" || step.text("reduction") != "add" || step.integer("wraps", 0, 1) != 0)
    return nullptr;
  const Operand &indices = step.input(0), &updates = step.input(1), &out = step.output();
  require(indices.type == Type::s32, "coordinates must be s32");
  require_same_type(updates, out);
  require(indices.dense() && updates.dense() && out.dense(), "all sides must be dense");
  const std::vector<int64_t>& dimensions = step.list("sizes");
  const auto depth = static_cast<int64_t>(dimensions.size());
  require(depth <= out.rank(), "too many coordinates");
  const bool any = updates.elements != 0;
  int64_t inner = any ? 1 : 0, count = step.integer("count", 0, int64_t{1} << 40);
  for (int64_t a = 0; a < out.rank(); ++a) {
    if (a < depth) {
      require(dimensions[a] == out.shape[a], "sizes differ");
    } else if (any) {
      require(out.shape[a] > 0 && inner <= updates.elements / out.shape[a], "the updates do not fit");
      inner *= out.shape[a];
    }
  }
  require(!any || (updates.elements % inner == 0 && updates.elements / inner == count), "the updates do not fit");
  require(count * depth == indices.elements, "the coordinates do not fit");
  // Neither coordinates nor updates.
  if (depth == 0 && !any) count = 0;
  switch (out.type) {
    case Type::s8: return std::make_unique<Scatter<ScatteredCode>>(dimensions, count, inner, out.elements);
    case Type::u8: return std::make_unique<Scatter<ScatteredNumber<uint8_t>>>(dimensions, count, inner, out.elements);
    case Type::boolean: return std::make_unique<Scatter<ScatteredTruth>>(dimensions, count, inner, out.elements);
    case Type::s32: return std::make_unique<Scatter<ScatteredNumber<uint32_t>>>(dimensions, count, inner, out.elements);
    case Type::s64: return std::make_unique<Scatter<ScatteredNumber<uint64_t>>>(dimensions, count, inner, out.elements);
    case Type::f32: return std::make_unique<Scatter<ScatteredNumber<float>>>(dimensions, count, inner, out.elements);
    default: return nullptr;
  }
}

BITTRUE_OPERATOR(scatter_nd, make_scatter_nd)

}  // namespace
}  // namespace bittrue

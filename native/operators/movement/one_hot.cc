// one_hot: a new axis that holds one value where its position is the index, another one elsewhere.
#include <algorithm>
#include <limits>

#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

template <class T>
class OneHot final : public Kernel {
 public:
  OneHot(bool wide, bool either_end, int64_t before, int64_t depth, int64_t after)
      : wide_(wide), either_end_(either_end), before_(before), depth_(depth), after_(after) {}

  void run(const Run& run) const override {
    // Two operands, or one that holds both, the other way round.
    const auto* values = reinterpret_cast<const T*>(run.inputs[2]);
    const T on = values[either_end_ ? 1 : 0];
    const T off = either_end_ ? values[0] : *reinterpret_cast<const T*>(run.inputs[3]);
    T* out = reinterpret_cast<T*>(run.outputs[0]);
    std::fill(out, out + before_ * depth_ * after_, off);
    for (int64_t b = 0; b < before_; ++b) {
      if (after_ >= 64 || b % 1024 == 0) run.check();
      for (int64_t a = 0; a < after_; ++a) {
        const int64_t place = index(run.inputs[0], b * after_ + a);
        if (place >= 0 && place < depth_) out[(b * depth_ + place) * after_ + a] = on;
      }
    }
  }

 private:
  // Only the low 32 bits count, unless negative ones count from the end.
  int64_t index(const uint8_t* stored, int64_t i) const {
    const int64_t whole =
        wide_ ? reinterpret_cast<const int64_t*>(stored)[i] : reinterpret_cast<const int32_t*>(stored)[i];
    if (either_end_) return whole < 0 ? whole + depth_ : whole;
    return static_cast<int32_t>(whole);
  }

  bool wide_, either_end_;
  int64_t before_, depth_, after_;
};

std::unique_ptr<Kernel> make_one_hot(const Step& step, const CoreSet&) {
  const bool either_end = step.integer("from_either_end", 0, 1) != 0;
  const Operand &indices = step.input(0), &out = step.output();
  require(indices.type == Type::s32 || indices.type == Type::s64, "indices must be s32 or s64");
  require_same_type(step.input(2), out);
  if (either_end) {
    require(step.input(2).elements == 2 && step.input(2).dense(), "two values are needed");
  } else {
    require_same_type(step.input(3), out);
    require(step.input(2).elements == 1 && step.input(3).elements == 1, "one value each is needed");
  }
  require(indices.dense() && out.dense(), "both sides must be dense");
  constexpr int64_t kMost = int64_t{1} << 40;
  const int64_t before = step.integer("before", 0, kMost), after = step.integer("after", 0, kMost);
  const int64_t depth = step.integer("depth", 0, std::numeric_limits<int32_t>::max());
  require(before == 0 || after <= kMost / before, "impossible dimensions");
  require(before * after == indices.elements, "the indices do not fit");
  require(depth == 0 || before * after <= (int64_t{1} << 48) / depth, "impossible dimensions");
  require(before * depth * after == out.elements, "the output does not fit");
  const bool wide = indices.type == Type::s64;
  switch (type_bytes(out.type)) {
    case 1: return std::make_unique<OneHot<uint8_t>>(wide, either_end, before, depth, after);
    case 4: return std::make_unique<OneHot<uint32_t>>(wide, either_end, before, depth, after);
    case 8: return std::make_unique<OneHot<uint64_t>>(wide, either_end, before, depth, after);
    default: return nullptr;
  }
}

BITTRUE_OPERATOR(one_hot, make_one_hot)

}  // namespace
}  // namespace bittrue

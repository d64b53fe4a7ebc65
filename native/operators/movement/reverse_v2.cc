// reverse_v2: neighbouring axes read backwards.
#include <algorithm>

#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

constexpr int64_t kMostAxes = 8;

// As many axes are reversed as the second input has elements; which ones may be known only at run time, so there is one
// copy for every axis that may be the first of them.
class Reverse final : public Kernel {
 public:
  explicit Reverse(const Step& step) : rank_(step.input(0).rank()), count_(step.input(1).elements) {
    const Operand &in = step.input(0), &out = step.output(), &axes = step.input(1);
    require_same_type(in, out);
    require(in.shape == out.shape && rank_ <= kMostAxes && count_ >= 1 && count_ <= rank_, "the shapes do not fit");
    require(axes.type == Type::s32 && axes.dense(), "axes are 32-bit integers");
    const std::vector<int64_t> source = byte_strides(in), target = byte_strides(out);
    for (int64_t first = 0; first + count_ <= rank_; ++first) {
      std::vector<CopyAxis> copy;
      int64_t offset = 0;
      for (int64_t a = 0; a < rank_; ++a) {
        const bool backwards = a >= first && a < first + count_;
        if (backwards) offset += (in.shape[a] - 1) * source[a];
        copy.push_back({in.shape[a], backwards ? -source[a] : source[a], target[a]});
      }
      copies_.emplace_back(copy, type_bytes(in.type), offset);
      // As the reference: a dimension of 0 behind the reversed axes has no defined result.
      const auto behind = in.shape.begin() + first + count_;
      defined_[first] = in.elements > 0 || std::find(in.shape.begin(), behind, 0) != behind;
    }
    if (axes.constant != nullptr) {
      int32_t values[kMostAxes];
      const std::vector<int64_t> given = axes.integers();
      for (int64_t i = 0; i < count_; ++i) values[i] = static_cast<int32_t>(given[i]);
      chosen_ = first(values);
      require(chosen_ >= 0, "these axes cannot be reversed");
    }
  }

  void run(const Run& run) const override {
    const int64_t chosen = chosen_ >= 0 ? chosen_ : first(reinterpret_cast<const int32_t*>(run.inputs[1]));
    if (chosen < 0) throw Undefined();
    copies_[chosen].run(run.inputs[0], run.outputs[0], run.pool);
  }
  bool packs(size_t input) const override { return input == 1 && chosen_ >= 0; }
  std::string note() const override { return "strided copy"; }

 private:
  // The first of the reversed axes; -1 when they are no neighbours or lie outside of the tensor.
  int64_t first(const int32_t* values) const {
    uint64_t seen = 0;
    int64_t lowest = rank_;
    for (int64_t i = 0; i < count_; ++i) {
      if (values[i] < -rank_ || values[i] >= rank_) return -1;
      const int64_t axis = values[i] < 0 ? values[i] + rank_ : values[i];
      seen |= uint64_t{1} << axis;
      lowest = std::min(lowest, axis);
    }
    // As many neighbours as there are axes: none is named twice.
    if (count_ == 0 || seen != ((uint64_t{1} << count_) - 1) << lowest) return -1;
    return defined_[lowest] ? lowest : -1;
  }

  int64_t rank_, count_, chosen_ = -1;
  std::vector<StridedCopy> copies_;
  bool defined_[kMostAxes] = {};
};

std::unique_ptr<Kernel> make_reverse_v2(const Step& step, const CoreSet&) { return std::make_unique<Reverse>(step); }

BITTRUE_OPERATOR(reverse_v2, make_reverse_v2)

}  // namespace
}  // namespace bittrue

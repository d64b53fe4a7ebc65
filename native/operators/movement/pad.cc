// pad: a border of one value or of mirrored elements around a tensor.
#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"
#include "operators/movement/table_copy.h"

namespace bittrue {
namespace {

class Pad final : public Kernel {
 public:
  explicit Pad(const Step& step) : copy_(axes(step), type_bytes(step.input(0).type)) {
    require_same_type(step.input(0), step.output());
    value_is_input_ = step.integer("value_is_input", 0, 1) != 0;
    if (value_is_input_) {
      require_same_type(step.input(2), step.output());
      require(step.input(2).elements == 1, "the value must be one element");
    } else {
      store_element(step.output().type, step.integer("value"), value_);
    }
  }

  void run(const Run& run) const override {
    copy_.run(run.inputs[0], value_is_input_ ? run.inputs[2] : value_, run.outputs[0], run.pool);
  }
  bool packs(size_t input) const override { return input == 1; }
  std::string note() const override { return "strided copies"; }

 private:
  static std::vector<PaddedAxis> axes(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    const std::vector<int64_t>& before = step.list("before");
    require(in.rank() == out.rank() && static_cast<int>(before.size()) == in.rank(), "ranks differ");
    const std::vector<int64_t> source = byte_strides(in), target = byte_strides(out);
    std::vector<PaddedAxis> result;
    for (int a = 0; a < in.rank(); ++a) {
      result.push_back({in.shape[a], before[a], out.shape[a], source[a], target[a]});
    }
    return result;
  }

  PaddedCopy copy_;
  bool value_is_input_ = false;
  uint8_t value_[kLargestElement];
};

class MirrorPad final : public Kernel {
 public:
  explicit MirrorPad(const Step& step) : copy_(make(step)) {}

  void run(const Run& run) const override { copy_.run(run.inputs[0], run.outputs[0], run.pool); }
  bool packs(size_t input) const override { return input == 1; }
  std::string note() const override { return "table of positions"; }

 private:
  static TableCopy make(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require_same_type(in, out);
    const std::vector<int64_t>&before = step.list("before"), &after = step.list("after");
    const int64_t edge = step.integer("edge", 0, 1);
    const int rank = in.rank();
    require(out.rank() == rank && static_cast<int>(before.size()) == rank && static_cast<int>(after.size()) == rank,
            "ranks differ");
    const std::vector<int64_t> source = byte_strides(in), target = byte_strides(out);
    std::vector<TableAxis> axes;
    for (int a = 0; a < rank; ++a) {
      const int64_t dimension = in.shape[a];
      require(before[a] >= 0 && after[a] >= 0 && before[a] <= dimension && after[a] <= dimension,
              "the border does not fit");
      // An axis without elements mirrors nothing.
      const bool fits =
          (before[a] == 0 || before[a] + edge <= dimension) && (after[a] == 0 || after[a] + edge <= dimension);
      require(fits && out.shape[a] == before[a] + dimension + after[a], "the border does not fit");
      std::vector<int64_t> table;
      for (int64_t i = before[a] - 1 + edge; i > edge - 1; --i) table.push_back(i * source[a]);
      for (int64_t i = 0; i < dimension; ++i) table.push_back(i * source[a]);
      for (int64_t i = dimension - 1 - edge; i > dimension - 1 - edge - after[a]; --i) table.push_back(i * source[a]);
      axes.push_back({std::move(table), target[a]});
    }
    // Axes without a border at the end are contiguous pieces.
    int64_t chunk = type_bytes(in.type);
    for (int a = rank - 1; a >= 0 && before[a] == 0 && after[a] == 0; --a) {
      if (source[a] != chunk || target[a] != chunk) break;
      chunk *= in.shape[a];
      axes.pop_back();
    }
    if (axes.empty()) axes.push_back({{0}, 0});
    return TableCopy(std::move(axes), chunk);
  }

  TableCopy copy_;
};

std::unique_ptr<Kernel> make_pad(const Step& step, const CoreSet&) {
  if (step.integers.count("edge") != 0) return std::make_unique<MirrorPad>(step);
  return std::make_unique<Pad>(step);
}

BITTRUE_OPERATOR(pad, make_pad)

}  // namespace
}  // namespace bittrue

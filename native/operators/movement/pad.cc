// pad: a border of one value around a tensor, of mirrored or repeated elements, or pieces cut off.
#include <string>

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

class TabledPad final : public Kernel {
 public:
  explicit TabledPad(const Step& step) : copy_(make(step)) {}

  void run(const Run& run) const override { copy_.run(run.inputs[0], run.outputs[0], run.pool); }
  bool packs(size_t input) const override { return input == 1; }
  std::string note() const override { return "table of positions"; }

 private:
  // The position of the source for every position of an axis of the target: given ones, or a mirror's.
  static std::vector<int64_t> positions(const Step& step, int axis) {
    const int64_t dimension = step.input(0).shape[axis];
    std::vector<int64_t> table;
    if (step.integers.count("edge") != 0) {
      const int64_t before = step.list("before").at(axis), after = step.list("after").at(axis);
      const int64_t edge = step.integer("edge", 0, 1);
      require(before >= 0 && after >= 0 && before <= dimension && after <= dimension, "the border does not fit");
      for (int64_t i = before - 1 + edge; i > edge - 1; --i) table.push_back(i);
      for (int64_t i = 0; i < dimension; ++i) table.push_back(i);
      for (int64_t i = dimension - 1 - edge; i > dimension - 1 - edge - after; --i) table.push_back(i);
    } else {
      const Array& given = step.array("positions_" + std::to_string(axis));
      for (int64_t i = 0; i < given.count; ++i) table.push_back(given.integer(i));
    }
    require(static_cast<int64_t>(table.size()) == step.output().shape[axis], "the border does not fit");
    // An axis without elements has nothing to repeat.
    for (const int64_t place : table) require(place >= 0 && place < dimension, "the border does not fit");
    return table;
  }

  static TableCopy make(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require_same_type(in, out);
    const int rank = in.rank();
    require(out.rank() == rank, "ranks differ");
    const std::vector<int64_t> source = byte_strides(in), target = byte_strides(out);
    int64_t chunk = type_bytes(in.type);
    std::vector<TableAxis> axes(static_cast<size_t>(rank));
    bool whole = true;  // axes that are copied as they are, at the end: contiguous pieces
    for (int a = rank; a-- > 0;) {
      std::vector<int64_t> table = positions(step, a);
      for (int64_t i = 0; i < static_cast<int64_t>(table.size()); ++i) whole = whole && table[i] == i;
      whole = whole && out.shape[a] == in.shape[a] && source[a] == chunk && target[a] == chunk;
      if (whole) {
        chunk *= in.shape[a];
        axes.pop_back();
        continue;
      }
      for (int64_t& place : table) place *= source[a];
      axes[a] = {std::move(table), target[a]};
    }
    if (axes.empty()) axes.push_back({{0}, 0});
    return TableCopy(std::move(axes), chunk);
  }

  TableCopy copy_;
};

std::unique_ptr<Kernel> make_pad(const Step& step, const CoreSet&) {
  if (step.integers.count("edge") != 0 || step.has_array("positions_0")) return std::make_unique<TabledPad>(step);
  return std::make_unique<Pad>(step);
}

BITTRUE_OPERATOR(pad, make_pad)

}  // namespace
}  // namespace bittrue

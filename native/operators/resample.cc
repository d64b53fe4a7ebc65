// resample_nearest: for every place of the output the place of the input that it is taken from, axis by axis.
#include "core/kernel.h"
#include "operators/strided_copy.h"
#include "operators/table_copy.h"

namespace bittrue {
namespace {

class ResampleNearest final : public Kernel {
 public:
  explicit ResampleNearest(TableCopy copy) : copy_(std::move(copy)) {}

  void run(const Run& run) const override { copy_.run(run.inputs[0], run.outputs[0], run.pool); }
  bool packs(size_t input) const override { return input != 0; }
  std::string note() const override { return "places by table"; }

 private:
  TableCopy copy_;
};

class Nothing final : public Kernel {
 public:
  void run(const Run&) const override {}
};

}  // namespace

std::unique_ptr<Kernel> make_resample_nearest(const Step& step, const CoreSet&) {
  const Operand &in = step.input(0), &out = step.output();
  require_same_type(in, out);
  require(in.rank() == out.rank() && in.rank() >= 1 && in.dense() && out.dense(), "both sides must be dense");
  if (out.elements == 0) return std::make_unique<Nothing>();
  const std::vector<int64_t> from = byte_strides(in), to = byte_strides(out);
  std::vector<TableAxis> axes;
  int64_t chunk = type_bytes(in.type);
  for (int axis = in.rank() - 1; axis >= 0; --axis) {
    const Array& places = step.array("positions_" + std::to_string(axis));
    require(places.count == out.shape[axis], "one place per output position is needed");
    bool same = in.shape[axis] == out.shape[axis];
    TableAxis table{{}, to[axis]};
    for (int64_t i = 0; i < places.count; ++i) {
      const int64_t place = places.integer(i);
      require(place >= 0 && place < in.shape[axis], "a place lies outside of the tensor");
      same = same && place == i;
      table.source.push_back(place * from[axis]);
    }
    // Inner axes that stay are copied whole.
    if (same && axes.empty() && axis > 0) {
      chunk *= in.shape[axis];
    } else {
      axes.insert(axes.begin(), std::move(table));
    }
  }
  return std::make_unique<ResampleNearest>(TableCopy(std::move(axes), chunk));
}

}  // namespace bittrue

// strided_slice: every stride-th element between two positions of each axis. Begins may be known only at run time; the
// number of positions never is.
#include <algorithm>

#include "core/kernel.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

constexpr int64_t kMostEnd = int64_t{1} << 31;

// One axis; the twin of `_Axis` in src/bittrue/operators/movement/strided_slice.py.
struct SliceAxis {
  int64_t dimension, index, end, stride;
  bool from_start, to_end, shrink;
  int64_t wanted;     // positions that the output needs
  int64_t bytes = 0;  // from one element of the input to the next

  struct Span {
    int64_t start, count;  // the positions start, start + stride, ...
  };

  Span span(int64_t begin, bool offset) const {
    const bool forward = stride > 0;
    const int64_t low = forward ? 0 : -1, high = forward ? dimension : dimension - 1;
    int64_t start = std::min(std::max(begin < 0 ? begin + dimension : begin, low), high);
    if (from_start) start = forward ? 0 : dimension - 1;
    int64_t stop = start >= dimension ? start : start + 1;
    if (!shrink) {
      stop = offset ? end + start : end;
      stop = std::min(std::max(stop < 0 ? stop + dimension : stop, low), high);
      if (to_end) stop = forward ? dimension : -1;
    }
    const int64_t reach = forward ? stop - start : start - stop, step = forward ? stride : -stride;
    return {start, reach > 0 ? (reach + step - 1) / step : 0};
  }
};

class StridedSlice final : public Kernel {
 public:
  explicit StridedSlice(const Step& step)
      : axes_(read(step)), offset_(step.integer("offset", 0, 1) != 0), copy_(make_copy(step, axes_)) {
    const Operand& begin = step.input(1);
    require(begin.type == Type::s32 && begin.dense(), "begins are 32-bit integers");
    for (const SliceAxis& axis : axes_) require(axis.index < begin.elements, "a begin is missing");
    constant_ = begin.constant != nullptr;
    if (constant_) {
      const std::vector<int64_t> values = begin.integers();
      begins_.assign(values.begin(), values.end());
      int64_t from;
      require(place(begins_.data(), from), "the positions do not fill the output");
    }
  }

  void run(const Run& run) const override {
    int64_t from;
    const int32_t* begins = constant_ ? begins_.data() : reinterpret_cast<const int32_t*>(run.inputs[1]);
    if (!place(begins, from)) throw Undefined();
    copy_.run(run.inputs[0] + from, run.outputs[0], run.pool);
  }
  bool packs(size_t input) const override { return input > 1 || (input == 1 && constant_); }
  std::string note() const override { return "strided copy"; }

 private:
  static std::vector<SliceAxis> read(const Step& step) {
    const std::vector<int64_t>&dimensions = step.list("sizes"), &indices = step.list("indices"),
          &ends = step.list("ends"), &strides = step.list("strides"), &from_start = step.list("from_start"),
          &to_end = step.list("to_end"), &shrink = step.list("shrink"), &counts = step.list("counts");
    const size_t rank = dimensions.size();
    for (const auto* list : {&indices, &ends, &strides, &from_start, &to_end, &shrink, &counts}) {
      require(list->size() == rank, "one number per axis is needed");
    }
    std::vector<SliceAxis> axes;
    for (size_t a = 0; a < rank; ++a) {
      require(dimensions[a] >= 0 && dimensions[a] < kMostEnd && indices[a] >= -1 && indices[a] < kMostEnd &&
                  ends[a] >= -kMostEnd && ends[a] <= kMostEnd && strides[a] > -kMostEnd && strides[a] < kMostEnd &&
                  strides[a] != 0 && counts[a] >= 0,
              "a number is out of range");
      axes.push_back({dimensions[a], indices[a], ends[a], strides[a], from_start[a] != 0, to_end[a] != 0,
                      shrink[a] != 0, counts[a]});
    }
    return axes;
  }

  // The copy from the first position on; sets the axes' `bytes`.
  static StridedCopy make_copy(const Step& step, std::vector<SliceAxis>& axes) {
    const Operand &in = step.input(0), &out = step.output();
    require_same_type(in, out);
    require(in.dense() && out.dense(), "both sides must be dense");
    bool empty = false;
    for (const SliceAxis& axis : axes) empty = empty || axis.wanted == 0;
    require(empty == (out.elements == 0), "the output's shape differs");
    const int64_t bytes = type_bytes(in.type);
    // Sizes beside a dimension of 0 may be large, and nothing is moved.
    if (empty) return StridedCopy({{0, 0, 0}}, bytes);
    int64_t elements = 1, moved = 1;
    std::vector<CopyAxis> copy(axes.size());
    for (size_t a = axes.size(); a-- > 0;) {
      SliceAxis& axis = axes[a];
      require(axis.wanted <= axis.dimension && axis.dimension <= in.elements / elements, "the shapes do not fit");
      axis.bytes = elements * bytes;
      copy[a] = {axis.wanted, axis.stride * axis.bytes, moved * bytes};
      elements *= axis.dimension, moved *= axis.wanted;
    }
    require(elements == in.elements && moved == out.elements, "the shapes do not fit");
    return StridedCopy(copy, bytes);
  }

  // Where the copy begins, in bytes; false when the positions do not fill the output.
  bool place(const int32_t* begins, int64_t& from) const {
    bool fits = true, any = true, wanted = true;
    from = 0;
    for (const SliceAxis& axis : axes_) {
      const SliceAxis::Span span = axis.span(axis.index < 0 ? 0 : begins[axis.index], offset_);
      fits = fits && span.count == axis.wanted;
      any = any && span.count != 0;
      wanted = wanted && axis.wanted != 0;
      from += span.start * axis.bytes;
    }
    return fits || !(any || wanted);
  }

  std::vector<SliceAxis> axes_;
  bool offset_, constant_;
  std::vector<int32_t> begins_;
  StridedCopy copy_;
};

std::unique_ptr<Kernel> make_strided_slice(const Step& step, const CoreSet&) {
  return std::make_unique<StridedSlice>(step);
}

BITTRUE_OPERATOR(strided_slice, make_strided_slice)

}  // namespace
}  // namespace bittrue

// transpose, slice, strided_slice and reverse_v2: the input seen through other strides.
#include <algorithm>

#include "core/kernel.h"
#include "operators/strided_copy.h"

namespace bittrue {
namespace {

class View final : public Kernel {
 public:
  View(StridedCopy copy, size_t input) : copy_(std::move(copy)), input_(input) {}

  void run(const Run& run) const override { copy_.run(run.inputs[input_], run.outputs[0], run.pool); }
  bool packs(size_t input) const override { return input != input_; }
  std::string note() const override { return "strided copy"; }

 private:
  StridedCopy copy_;
  size_t input_;
};

std::unique_ptr<Kernel> view(const std::vector<CopyAxis>& axes, const Step& step, int64_t source_offset = 0,
                             size_t input = 0) {
  require_same_type(step.input(input), step.output());
  return std::make_unique<View>(StridedCopy(axes, type_bytes(step.output().type), source_offset), input);
}

// One axis of a strided slice; the twin of `_Axis` in src/bittrue/operators/strided_slice.py.
struct SliceAxis {
  int64_t extent, begin, end, stride;
  bool from_start, to_end, shrink;
  int64_t start = 0, count = 0;  // the positions start, start + stride, ...

  void span(bool offset) {
    const bool forward = stride > 0;
    const int64_t low = forward ? 0 : -1, high = forward ? extent : extent - 1;
    start = std::min(std::max(begin < 0 ? begin + extent : begin, low), high);
    if (from_start) start = forward ? 0 : extent - 1;
    int64_t stop = start >= extent ? start : start + 1;
    if (!shrink) {
      stop = offset ? end + start : end;
      stop = std::min(std::max(stop < 0 ? stop + extent : stop, low), high);
      if (to_end) stop = forward ? extent : -1;
    }
    const int64_t reach = forward ? stop - start : start - stop, step = forward ? stride : -stride;
    count = reach > 0 ? (reach + step - 1) / step : 0;
  }
};

std::vector<SliceAxis> read_slice(const Step& step) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const std::vector<int64_t>&extents = step.list("extents"), &indices = step.list("indices"), &ends = step.list("ends"),
                            &strides = step.list("strides"), &from_start = step.list("from_start"),
                            &to_end = step.list("to_end"), &shrink = step.list("shrink");
  const size_t rank = extents.size();
  for (const auto* list : {&indices, &ends, &strides, &from_start, &to_end, &shrink}) {
    require(list->size() == rank, "one number per axis is needed");
  }
  require(step.input(1).constant != nullptr, "begins are computed at run time");
  const std::vector<int64_t> begins = step.input(1).integers();
  std::vector<SliceAxis> axes;
  for (size_t a = 0; a < rank; ++a) {
    int64_t begin = 0;
    if (indices[a] >= 0) {
      require(indices[a] < static_cast<int64_t>(begins.size()), "a begin is missing");
      begin = begins[indices[a]];
    }
    require(extents[a] >= 0 && extents[a] < kMost && begin >= -kMost && begin <= kMost && ends[a] >= -kMost &&
                ends[a] <= kMost && strides[a] > -kMost && strides[a] < kMost && strides[a] != 0,
            "a number is out of range");
    axes.push_back({extents[a], begin, ends[a], strides[a], from_start[a] != 0, to_end[a] != 0, shrink[a] != 0});
    axes.back().span(step.integer("offset", 0, 1) != 0);
  }
  return axes;
}

}  // namespace

std::unique_ptr<Kernel> make_transpose(const Step& step, const CoreSet&) {
  const Operand &in = step.input(0), &out = step.output();
  const std::vector<int64_t>& order = step.list("permutation");
  const int rank = in.rank();
  require(out.rank() == rank && static_cast<int>(order.size()) == rank, "ranks differ");
  const std::vector<int64_t> source = byte_strides(in), target = byte_strides(out);
  std::vector<bool> used(order.size(), false);
  std::vector<CopyAxis> axes;
  for (int a = 0; a < rank; ++a) {
    const int64_t from = order[a];
    require(from >= 0 && from < rank && !used[from] && in.shape[from] == out.shape[a], "no permutation of the axes");
    used[from] = true;
    axes.push_back({out.shape[a], source[from], target[a]});
  }
  return view(axes, step);
}

std::unique_ptr<Kernel> make_slice(const Step& step, const CoreSet&) {
  const Operand &in = step.input(0), &out = step.output();
  const std::vector<int64_t>&begin = step.list("begin"), &size = step.list("size");
  const int rank = in.rank();
  require(static_cast<int>(begin.size()) == rank && size == out.shape && out.rank() == rank, "the box does not fit");
  const std::vector<int64_t> source = byte_strides(in), target = byte_strides(out);
  std::vector<CopyAxis> axes;
  int64_t offset = 0;
  for (int a = 0; a < rank; ++a) {
    require(begin[a] >= 0 && begin[a] <= in.shape[a] && size[a] <= in.shape[a] - begin[a], "the box does not fit");
    axes.push_back({size[a], source[a], target[a]});
    offset += begin[a] * source[a];
  }
  return view(axes, step, offset);
}

std::unique_ptr<Kernel> make_strided_slice(const Step& step, const CoreSet&) {
  const Operand &in = step.input(0), &out = step.output();
  require(in.dense() && out.dense(), "both sides must be dense");
  const std::vector<SliceAxis> slice = read_slice(step);
  const std::vector<int64_t>& counts = step.list("counts");
  require(counts.size() == slice.size(), "one count per axis is needed");
  int64_t needed = 1, kept = 1;
  bool fits = true;
  for (size_t a = 0; a < slice.size(); ++a) {
    fits = fits && slice[a].count == counts[a];
    if (slice[a].count == 0) kept = 0;
    if (counts[a] == 0) needed = 0;
  }
  require(fits || (kept == 0 && needed == 0), "the positions do not fill the output");
  if (kept == 0) {
    require(out.elements == 0, "the output's shape differs");
    return view({{0, 0, 0}}, step);
  }
  int64_t elements = 1, in_stride = type_bytes(in.type), out_stride = in_stride, offset = 0;
  std::vector<CopyAxis> axes(slice.size());
  for (size_t a = slice.size(); a-- > 0;) {
    // No extent is 0 here: every axis has positions.
    require(slice[a].extent <= in.elements / elements, "the input's shape differs");
    axes[a] = {slice[a].count, slice[a].stride * in_stride, out_stride};
    offset += slice[a].start * in_stride;
    elements *= slice[a].extent;
    in_stride *= slice[a].extent, out_stride *= slice[a].count;
  }
  require(elements == in.elements && out_stride == out.bytes(), "the shapes differ");
  return view(axes, step, offset);
}

std::unique_ptr<Kernel> make_reverse_v2(const Step& step, const CoreSet&) {
  const Operand &in = step.input(0), &out = step.output();
  require(in.shape == out.shape, "the output's shape differs");
  require(step.input(1).constant != nullptr, "the axes are computed at run time");
  const int64_t rank = in.rank();
  std::vector<int64_t> reversed = step.input(1).integers();
  for (int64_t& axis : reversed) {
    require(axis >= -rank && axis < rank, "an axis lies outside of the tensor");
    axis = axis < 0 ? axis + rank : axis;
  }
  std::sort(reversed.begin(), reversed.end());
  for (size_t i = 1; i < reversed.size(); ++i) require(reversed[i] == reversed[0] + static_cast<int64_t>(i), "no neighbours");
  require(!reversed.empty(), "nothing to reverse");
  if (out.elements == 0) {
    // As the reference: an extent of 0 behind the reversed axes is an error.
    const auto behind = in.shape.begin() + reversed.back() + 1;
    require(std::find(in.shape.begin(), behind, 0) != behind, "an extent of 0 lies behind the axes");
    return view({{0, 0, 0}}, step);
  }
  const std::vector<int64_t> source = byte_strides(in), target = byte_strides(out);
  std::vector<CopyAxis> axes;
  int64_t offset = 0;
  for (int64_t a = 0; a < rank; ++a) {
    const bool backwards = a >= reversed.front() && a <= reversed.back();
    if (backwards) offset += (in.shape[a] - 1) * source[a];
    axes.push_back({in.shape[a], backwards ? -source[a] : source[a], target[a]});
  }
  return view(axes, step, offset);
}

}  // namespace bittrue

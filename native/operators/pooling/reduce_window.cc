// reduce_window: from a first value on, the elements of every window in row-major order.
#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/kernel.h"
#include "core/share.h"
#include "operators/core/registry.h"
#include "operators/movement/strided_copy.h"

namespace bittrue {
namespace {

template <class T>
class ReduceWindow final : public Kernel {
 public:
  explicit ReduceWindow(const Step& step) {
    const Operand &in = step.input(0), &first = step.input(1), &out = step.output();
    require_same_type(in, out);
    require_same_type(first, out);
    require(in.dense() && out.dense() && first.elements >= 1, "the shapes do not fit");
    const int rank = in.rank();
    require(rank >= 1 && rank == out.rank(), "the shapes do not fit");
    const std::vector<int64_t>&window = step.list("window"), &strides = step.list("strides"),
          &dilations = step.list("dilations");
    const auto axes = static_cast<size_t>(rank);
    require(window.size() == axes && strides.size() == axes && dilations.size() == axes, "the geometry has other axes");
    spread(step, in);
    taps_ = {0};
    firsts_ = {0};
    int64_t step_of_axis = elements_;
    for (size_t axis = 0; axis < axes && out.elements > 0; ++axis) {
      step_of_axis /= sizes_[axis];
      const int64_t last = sizes_[axis] - 1, reach = out.shape[axis] - 1;
      require(window[axis] >= 1 && strides[axis] >= 1 && dilations[axis] >= 1,
              "a number of the geometry is out of range");
      require(reach == 0 || strides[axis] <= last / reach, "a window reaches beyond the tensor");
      const int64_t room = last - reach * strides[axis];
      require(window[axis] == 1 || dilations[axis] <= room / (window[axis] - 1), "a window reaches beyond the tensor");
      longer(taps_, window[axis], dilations[axis] * step_of_axis);
      if (axis + 1 < axes) {
        longer(firsts_, out.shape[axis], strides[axis] * step_of_axis);
      } else {
        count_ = out.shape[axis], stride_ = strides[axis];
      }
    }
    if (out.elements == 0) firsts_.clear();
    const std::string& name = step.text("function");
    how_ = name == "add" ? How::add : name == "mul" ? How::multiply : name == "minimum" ? How::smallest : How::largest;
    require(how_ != How::largest || name == "maximum", "no native function");
  }
  std::string note() const override { return "windows in order"; }
  int64_t scratch_bytes(int) const override {
    return places_.empty() ? 0 : round_up(elements_ * static_cast<int64_t>(sizeof(T)), 64);
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const T*>(run.inputs[0]);
    const T first = *reinterpret_cast<const T*>(run.inputs[1]);
    auto* out = reinterpret_cast<T*>(run.outputs[0]);
    if (!places_.empty()) {
      auto* room = reinterpret_cast<T*>(run.scratch);
      std::fill_n(room, elements_, first);
      place(in, 0, 0, 0, room);
      in = room;
    }
    const auto lines = static_cast<int64_t>(firsts_.size());
    const int64_t work = lines * count_ * static_cast<int64_t>(taps_.size());
    run.pool.parallel(lines, run.pool.threads_for(work), [&](int64_t line, int) {
      T* to = out + line * count_;
      std::fill_n(to, count_, first);
      for (const int64_t tap : taps_) take(in + firsts_[line] + tap, to);
    });
    if constexpr (!std::is_integral_v<T>) {
      // Signs and payloads of NaN are the reference's to tell.
      for (int64_t i = 0; i < lines * count_; ++i) {
        if (out[i] != out[i]) throw Undefined();
      }
    }
  }

 private:
  enum class How : uint8_t { add, multiply, smallest, largest };

  // The sizes that windows move over: those of the operand, or larger and smaller ones that it is spread over first.
  void spread(const Step& step, const Operand& in) {
    sizes_ = in.shape;
    if (step.integers.count("spread") != 0) {
      sizes_ = step.list("spread");
      const std::vector<int64_t>&low = step.list("low"), &factors = step.list("factors");
      require(sizes_.size() == in.shape.size() && low.size() == sizes_.size() && factors.size() == sizes_.size(),
              "the geometry has other axes");
      for (size_t axis = 0; axis < sizes_.size(); ++axis) {
        require(sizes_[axis] >= 1 && sizes_[axis] <= kMost && factors[axis] >= 1 && factors[axis] <= kMost &&
                    low[axis] >= -kMost && low[axis] <= kMost,
                "a number of the geometry is out of range");
        std::vector<int64_t> places;
        for (int64_t i = 0; i < in.shape[axis]; ++i) {
          const int64_t at = low[axis] + i * factors[axis];
          places.push_back(at >= 0 && at < sizes_[axis] ? at : -1);
        }
        places_.push_back(std::move(places));
      }
    }
    for (const int64_t size : sizes_) {
      require(size <= 0 || elements_ <= kMost * 1024 / size, "the operand is very large");
      elements_ *= size;
    }
  }
  // The elements of an axis, from element `from` of the operand and `to` of what it is spread over.
  void place(const T* in, size_t axis, int64_t from, int64_t to, T* room) const {
    for (const int64_t at : places_[axis]) {
      const int64_t own = to * sizes_[axis] + at;
      if (axis + 1 == places_.size()) {
        if (at >= 0) room[own] = in[from];
        ++from;
        continue;
      }
      int64_t below = 1;
      for (size_t a = axis + 1; a < places_.size(); ++a) below *= static_cast<int64_t>(places_[a].size());
      if (at >= 0) place(in, axis + 1, from, own, room);
      from += below;
    }
  }

  static void longer(std::vector<int64_t>& places, int64_t count, int64_t step) {
    require(count <= (int64_t{1} << 24) / static_cast<int64_t>(places.size()), "there are very many places");
    std::vector<int64_t> found;
    for (const int64_t place : places) {
      for (int64_t i = 0; i < count; ++i) found.push_back(place + i * step);
    }
    places.swap(found);
  }

  void take(const T* from, T* to) const {
    // Integers wrap.
    using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
    switch (how_) {
      case How::add:
        return each(from, to, [](T a, T b) { return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b)); });
      case How::multiply:
        return each(from, to, [](T a, T b) { return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b)); });
      case How::smallest: return each(from, to, [](T a, T b) { return a <= b ? a : b; });
      default: return each(from, to, [](T a, T b) { return a >= b ? a : b; });
    }
  }
  template <class Body>
  void each(const T* from, T* to, const Body& body) const {
    if (stride_ == 1) {
      for (int64_t i = 0; i < count_; ++i) to[i] = body(to[i], from[i]);
    } else {
      for (int64_t i = 0; i < count_; ++i) to[i] = body(to[i], from[i * stride_]);
    }
  }

  static constexpr int64_t kMost = int64_t{1} << 31;

  How how_;
  std::vector<int64_t> sizes_;
  std::vector<std::vector<int64_t>> places_;  // of every axis: where its elements go, -1 for nowhere; none: as they are
  int64_t elements_ = 1;
  std::vector<int64_t> taps_, firsts_;  // elements of a window, and where the windows of a line begin
  int64_t count_ = 0, stride_ = 1;
};

std::unique_ptr<Kernel> make_reduce_window(const Step& step, const CoreSet&) {
  switch (step.input(0).type) {
    case Type::f32: return std::make_unique<ReduceWindow<float>>(step);
    case Type::f64: return std::make_unique<ReduceWindow<double>>(step);
    case Type::s32: return std::make_unique<ReduceWindow<int32_t>>(step);
    case Type::s64: return std::make_unique<ReduceWindow<int64_t>>(step);
    default: return nullptr;
  }
}

BITTRUE_OPERATOR(reduce_window, make_reduce_window)

}  // namespace
}  // namespace bittrue

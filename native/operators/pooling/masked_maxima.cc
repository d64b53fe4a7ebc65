// masked_maxima: scalar twin of src/bittrue/operators/pooling/masked_maxima.py, channel by channel.
#include <algorithm>
#include <limits>
#include <vector>

#include "core/kernel.h"
#include "operators/core/registry.h"

namespace bittrue {
namespace {

class MaskedMaxima final : public Kernel {
 public:
  explicit MaskedMaxima(const Step& step) {
    const Operand &x = step.input(0), &mask = step.input(1), &out = step.output();
    require(x.type == Type::f32 && mask.type == Type::s32 && out.type == Type::f32 && x.dense() && mask.dense() &&
                out.dense(),
            "no native kernel for these types");
    const int64_t axes = step.integer("axes", 1, 8);
    require(x.rank() == axes + 2 && mask.rank() == x.rank() && out.rank() == x.rank() && x.elements > 0 &&
                mask.elements > 0,
            "the shapes do not fit");
    channels_ = x.shape[0] * x.shape[1], marks_ = mask.shape[0] * mask.shape[1];
    int64_t outs = 1;
    for (int64_t axis = 0; axis < axes; ++axis) {
      const Array& places = step.array("axis" + std::to_string(axis));
      require(places.shape.size() == 2 && places.shape[1] > 0 && places.shape[0] == out.shape[axis + 2] &&
                  mask.shape[axis + 2] == x.shape[axis + 2],
              "the shapes do not fit");
      Axis one{x.shape[axis + 2], places.shape[0], places.shape[1], {}};
      for (int64_t i = 0; i < places.count; ++i) {
        one.places.push_back(places.integer(i));
        require(one.places.back() >= -1 && one.places.back() < one.size, "a place is outside");
      }
      size_ *= one.size, outs *= one.out;
      axes_.push_back(std::move(one));
    }
    require(out.elements == channels_ * outs, "the shapes do not fit");
    outs_ = outs;
    // A channel's marks begin anywhere before image number `marks_`: all of them are there.
    require(mask.elements == marks_ * size_ && x.elements == channels_ * size_, "the shapes do not fit");
  }
  std::string note() const override { return "rows up to a mark"; }

  void run(const Run& run) const override {
    run.pool.parallel(channels_, [&](int64_t c, int worker) {
      const auto* x = reinterpret_cast<const float*>(run.inputs[0]) + c * size_;
      const auto* marks = reinterpret_cast<const int32_t*>(run.inputs[1]) + c * size_ % marks_;
      auto* out = reinterpret_cast<float*>(run.outputs[0]) + c * outs_;
      for (int64_t i = 0; i < outs_; ++i) {
        if (i % 4096 == 0) run.check(worker);
        out[i] = largest(x, marks, i);
      }
    });
  }

 private:
  struct Axis {
    int64_t size, out, taps;
    std::vector<int64_t> places;  // [out][taps], -1 outside
  };

  float largest(const float* x, const int32_t* marks, int64_t place) const {
    const int64_t* own[8];
    const size_t count = axes_.size();
    for (size_t axis = count; axis-- > 0; place /= axes_[axis].out) {
      own[axis] = axes_[axis].places.data() + place % axes_[axis].out * axes_[axis].taps;
    }
    float best = std::numeric_limits<float>::lowest();
    int64_t taps[8] = {};
    for (bool more = true; more;) {
      int64_t row = 0;
      bool inside = true;
      for (size_t axis = 0; axis + 1 < count; ++axis) {
        const int64_t at = own[axis][taps[axis]];
        inside = inside && at >= 0;
        row = row * axes_[axis].size + at;
      }
      const Axis& last = axes_.back();
      for (int64_t tap = 0; inside && tap < last.taps; ++tap) {
        if (own[count - 1][tap] < 0) continue;
        const int64_t at = row * last.size + own[count - 1][tap];
        // The first element of an image of several axes always counts.
        if (marks[at] == 0 && (at > 0 || count == 1)) break;
        if (x[at] > best) best = x[at];
      }
      more = false;
      for (size_t axis = count - 1; axis-- > 0;) {
        more = ++taps[axis] < axes_[axis].taps;
        if (more) break;
        taps[axis] = 0;
      }
    }
    return best;
  }

  std::vector<Axis> axes_;
  int64_t channels_ = 0, marks_ = 0, size_ = 1, outs_ = 0;
};

std::unique_ptr<Kernel> make_masked_maxima(const Step& step, const CoreSet&) {
  return std::make_unique<MaskedMaxima>(step);
}

BITTRUE_OPERATOR(masked_maxima, make_masked_maxima)

}  // namespace
}  // namespace bittrue

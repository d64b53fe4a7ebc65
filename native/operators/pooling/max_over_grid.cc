#include <algorithm>
#include <limits>
#include <vector>

#include "operators/pooling/pools.h"

namespace bittrue {
namespace {

// Windows over images that hold a grid of smaller ones: rows and columns of every tap, or what stands in their place.
template <class In>
class GridMaxima final : public Kernel {
 public:
  explicit GridMaxima(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    require(type_bytes(in.type) == sizeof(In) && out.type == Type::f32 && in.rank() == 4 && out.rank() == 4 &&
                in.dense() && out.dense() && in.shape[0] == out.shape[0] && in.shape[1] == out.shape[1],
            "no native kernel for these types");
    flip_ = static_cast<float>(flip_of(in.type));
    planes_ = in.shape[0] * in.shape[1], plane_ = in.shape[2] * in.shape[3];
    out_h_ = out.shape[2], out_w_ = out.shape[3];
    const int64_t width = step.integer("width", in.shape[3], in.shape[3]);
    rows_ = places(step.array("rows"), out_h_, width), columns_ = places(step.array("columns"), out_w_, 1);
    require(out_h_ > 0 && out_w_ > 0, "there is nothing to do");
    int64_t last = 0, end = 0;
    for (const int64_t row : rows_) last = std::max(last, row);
    for (const int64_t column : columns_) end = std::max(end, column);
    require(planes_ == 0 || last + end < plane_, "a window leaves the image");
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const In*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const auto taps_h = static_cast<int64_t>(rows_.size()) / out_h_,
               taps_w = static_cast<int64_t>(columns_.size()) / out_w_;
    run.pool.parallel(planes_ * out_h_, [&](int64_t line, int) {
      const In* plane = in + line / out_h_ * plane_;
      const int64_t* rows = rows_.data() + line % out_h_ * taps_h;
      for (int64_t x = 0; x < out_w_; ++x) {
        const int64_t* columns = columns_.data() + x * taps_w;
        float best = std::numeric_limits<float>::lowest();
        for (int64_t i = 0; i < taps_h; ++i) {
          for (int64_t j = 0; j < taps_w; ++j) {
            if (rows[i] == kAbsent || columns[j] == kAbsent) continue;
            const bool zero = rows[i] == kZero || columns[j] == kZero;
            const float value = zero ? 0.0f : static_cast<float>(plane[rows[i] + columns[j]]) - flip_;
            // NaN is never taken.
            if (value > best) best = value;
          }
        }
        out[line * out_w_ + x] = best;
      }
    });
  }

 private:
  static constexpr int64_t kAbsent = -2, kZero = -1;

  static std::vector<int64_t> places(const Array& given, int64_t outputs, int64_t step) {
    require(given.shape.size() == 2 && given.shape[0] == outputs, "the windows do not fit");
    std::vector<int64_t> found;
    for (int64_t i = 0; i < given.count; ++i) {
      const int64_t place = given.integer(i);
      require(place >= kAbsent && place < (int64_t{1} << 31), "a window leaves the image");
      found.push_back(place < 0 ? place : place * step);
    }
    return found;
  }

  float flip_ = 0;
  int64_t planes_ = 0, plane_ = 0, out_h_ = 0, out_w_ = 0;
  std::vector<int64_t> rows_, columns_;
};

}  // namespace

std::unique_ptr<Kernel> make_max_over_grid(const Step& step) {
  if (is_8bit(step.input(0).type)) return std::make_unique<GridMaxima<uint8_t>>(step);
  require(step.input(0).type == Type::f32, "no native kernel for these types");
  return std::make_unique<GridMaxima<float>>(step);
}

}  // namespace bittrue

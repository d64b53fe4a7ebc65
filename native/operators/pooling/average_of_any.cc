#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "arithmetic/fixed_point.h"
#include "operators/pooling/pools.h"

namespace bittrue {
namespace {

// Averages of integers by their rules, tap by tap: 32-bit ones, padding that counts, taps apart, channels first, three axes.
template <class In>
class AverageOfAny final : public Kernel {
 public:
  explicit AverageOfAny(const Step& step) {
    const Operand &in = step.input(0), &out = step.output();
    const int rank = in.rank();
    require(type_bytes(in.type) == sizeof(In) && step.rule("accumulate") == "s32_wrap" && in.dense() && out.dense() &&
                rank >= 3 && rank <= 5 && out.rank() == rank && out.elements > 0 && in.elements > 0,
            "no native kernel for these types");
    const std::string& rule = step.rule("average");
    require(rule == "integer_trunc" || rule == "integer_half_away" || rule == "integer_half_up",
            "no native rule for this slot");
    rule_ = rule == "integer_trunc" ? Rule::trunc : rule == "integer_half_up" ? Rule::half_up : Rule::half_away;
    in_flip_ = flip_of(in.type);
    const bool last = step.integer("channels_last", 0, 1) != 0;
    const std::string& counted = step.text("counted");
    require(counted == "inside" || counted == "padded", "taps are counted in another way");
    counts_padding_ = counted == "padded";
    const char* names[][2] = {{"pad_front", "pad_back"}, {"pad_top", "pad_bottom"}, {"pad_left", "pad_right"}};
    for (int i = 0; i < rank - 2; ++i) {
      const int place = 3 - (rank - 2) + i;
      const auto at = static_cast<size_t>(last ? 1 + i : 2 + i);
      const std::string letter(1, "dhw"[place]);
      const auto number = [&](const std::string& key, int64_t least) {
        return step.integer(key.c_str(), least, int64_t{1} << 31);
      };
      Axis& axis = axes_[static_cast<size_t>(place)];
      axis = {in.shape[at],
              out.shape[at],
              number("filter_" + letter, 1),
              number("stride_" + letter, 1),
              number("dilation_" + letter, 1),
              number(names[place][0], -(int64_t{1} << 31)),
              number(names[place][1], -(int64_t{1} << 31))};
    }
    inner_ = last ? in.shape.back() : 1;
    planes_ = in.shape[0] * (last ? 1 : in.shape[1]);
    require(planes_ * inner_ == out.shape[0] * (last ? out.shape.back() : out.shape[1]), "the shapes do not fit");
    constexpr int64_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
    low_ = step.integer("low", kLow, kHigh), high_ = step.integer("high", kLow, kHigh);
    flip_ = flip_of(out.type), bytes_ = type_bytes(out.type);
    require(is_8bit(out.type) || out.type == Type::s16 || out.type == Type::s32, "no native kernel for these types");
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const In*>(run.inputs[0]);
    const Axis &d = axes_[0], &h = axes_[1], &w = axes_[2];
    const int64_t lines = d.out * h.out;
    run.pool.parallel(planes_ * lines, [&](int64_t task, int) {
      const int64_t z = task % lines / h.out, y = task % h.out;
      const In* plane = in + task / lines * d.size * h.size * w.size * inner_;
      for (int64_t x = 0; x < w.out; ++x) {
        const int64_t count = std::max<int64_t>(1, counted(d, z) * counted(h, y) * counted(w, x));
        for (int64_t c = 0; c < inner_; ++c) {
          const int32_t total = sum(plane + c, z, y, x);
          keep(run.outputs[0], (task * w.out + x) * inner_ + c, std::clamp(average(total, count), low_, high_));
        }
      }
    });
  }

 private:
  enum class Rule : uint8_t { trunc, half_away, half_up };
  struct Axis {
    int64_t size = 1, out = 1, taps = 1, stride = 1, dilation = 1, before = 0, after = 0;

    int64_t place(int64_t output, int64_t tap) const { return output * stride + tap * dilation - before; }
    // Taps [first, last) of an output lie at or behind position 0, and before position `end`.
    int64_t first(int64_t output) const {
      const int64_t start = place(output, 0);
      return start >= 0 ? 0 : std::min(taps, (-start + dilation - 1) / dilation);
    }
    int64_t last(int64_t output, int64_t end) const {
      const int64_t start = place(output, 0);
      return start >= end ? 0 : std::min(taps, (end - 1 - start) / dilation + 1);
    }
  };

  int64_t counted(const Axis& axis, int64_t output) const {
    if (counts_padding_) return axis.last(output, axis.size + axis.after);
    return std::max<int64_t>(0, axis.last(output, axis.size) - axis.first(output));
  }

  int32_t sum(const In* plane, int64_t z, int64_t y, int64_t x) const {
    const Axis &d = axes_[0], &h = axes_[1], &w = axes_[2];
    uint32_t total = 0;
    for (int64_t i = d.first(z); i < d.last(z, d.size); ++i) {
      for (int64_t j = h.first(y); j < h.last(y, h.size); ++j) {
        const In* line = plane + (d.place(z, i) * h.size + h.place(y, j)) * w.size * inner_;
        for (int64_t k = w.first(x); k < w.last(x, w.size); ++k) {
          total += static_cast<uint32_t>(line[w.place(x, k) * inner_] - in_flip_);
        }
      }
    }
    return static_cast<int32_t>(total);
  }

  int64_t average(int64_t total, int64_t count) const {
    const int64_t half = count >> 1;
    if (rule_ == Rule::trunc) return total / count;
    if (rule_ == Rule::half_away) return arithmetic::wrap_s32(total + (total > 0 ? half : -half)) / count;
    const int64_t moved = total + half, whole = moved / count;
    return whole - (moved % count < 0 ? 1 : 0);
  }

  void keep(uint8_t* out, int64_t i, int64_t value) const {
    if (bytes_ == 1) {
      out[i] = static_cast<uint8_t>(value + flip_);
    } else if (bytes_ == 2) {
      reinterpret_cast<int16_t*>(out)[i] = static_cast<int16_t>(value);
    } else {
      reinterpret_cast<int32_t*>(out)[i] = static_cast<int32_t>(value);
    }
  }

  std::array<Axis, 3> axes_;
  int64_t planes_ = 0, inner_ = 1, low_ = 0, high_ = 0;
  Rule rule_ = Rule::trunc;
  bool counts_padding_ = false;
  int flip_ = 0, in_flip_ = 0, bytes_ = 4;
};

}  // namespace

std::unique_ptr<Kernel> make_average_of_any(const Step& step) {
  const Type type = step.input(0).type;
  if (is_8bit(type)) return std::make_unique<AverageOfAny<uint8_t>>(step);
  if (type == Type::s16) return std::make_unique<AverageOfAny<int16_t>>(step);
  return std::make_unique<AverageOfAny<int32_t>>(step);
}

}  // namespace bittrue

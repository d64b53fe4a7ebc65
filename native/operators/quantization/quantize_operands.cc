// quantize and dequantize with scales that are operands, per tensor and per axis; dynamic_quantize_linear.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "arithmetic/narrow_float.h"
#include "core/share.h"
#include "operators/core/any_type.h"
#include "operators/core/registry.h"
#include "operators/quantization/dynamic_scale.h"
#include "operators/quantization/quantize.h"
#include "operators/quantization/slices.h"
#include "rules/levels.h"
#include "rules/quantize.h"

namespace bittrue {
namespace {

constexpr int64_t kBlock = SliceWalk::kBlock;

// Slices with scales of binary32 and zero points of integers.
struct Slices : SliceWalk {
  // The plan's; late ones are operands, whose zero points have the type `points`.
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  bool late = false, has_points = false, zero_only = false;
  Type points = Type::other;

  // `stored`: the type of the integers.
  Slices(const Step& step, Type stored) : SliceWalk(step), late(step.integer("late", 0, 1) != 0), points(stored) {
    if (late) {
      read_operands(step);
      return;
    }
    const Array &given = step.array("scales"), &own = step.array("zero_points");
    require(given.type == Type::f32 && given.count == count && own.count == count, "one scale per slice is needed");
    for (int64_t i = 0; i < count; ++i) {
      scales.push_back(static_cast<float>(given.real(i)));
      const int64_t point = own.integer(i);
      require(point >= -65536 && point <= 65536, "a zero point is out of range");
      zero_points.push_back(static_cast<int32_t>(point));
    }
  }

  int64_t scratch_bytes() const { return late ? round_up(4 * count, 64) : 0; }
  const float* scales_of(const Run& run) const {
    return late ? reinterpret_cast<const float*>(run.inputs[1]) : scales.data();
  }
  // Throws Undefined where one must be 0 and is not.
  const int32_t* points_of(const Run& run) const {
    if (!late) return zero_points.data();
    auto* found = reinterpret_cast<int32_t*>(run.scratch);
    for (int64_t i = 0; i < count; ++i) {
      found[i] = has_points ? point(run.inputs[2], i) : 0;
      if (zero_only && found[i] != 0) throw Undefined();
    }
    return found;
  }

 private:
  void read_operands(const Step& step) {
    const Operand& given = step.input(1);
    require(given.type == Type::f32 && given.dense() && given.elements == count, "one scale per slice is needed");
    const std::string& rule = step.rule("zero_points");
    require(rule == "used" || rule == "zero", "no native rule for this slot");
    zero_only = rule == "zero";
    has_points = step.has_input(2);
    if (!has_points) return;
    const Operand& own = step.input(2);
    require(own.type == points && own.dense() && own.elements == count, "one zero point per slice is needed");
    require(is_integer(points), "no native kernel for these types");
  }

  int32_t point(const uint8_t* from, int64_t i) const {
    switch (points) {
      case Type::s16: return reinterpret_cast<const int16_t*>(from)[i];
      case Type::u16: return reinterpret_cast<const uint16_t*>(from)[i];
      case Type::s32: return reinterpret_cast<const int32_t*>(from)[i];
      case Type::s4:
      case Type::s2: return reinterpret_cast<const int8_t*>(from)[i];
      default: return from[i] - flip_of(points);
    }
  }
};

template <class Out>
Out quantize_one(float x, float scale, float low, float high, int32_t zero_point) {
  float value = x / scale;
  value = value > low ? value : low;
  value = value < high ? value : high;
  // Rounds ties to even: the unit in the last place is 1 there.
  value += 12582912.0f;
  int32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<Out>(bits - 0x4B400000 + zero_point);
}

template <class Out>
class QuantizeByOperands final : public Kernel {
 public:
  QuantizeByOperands(const Step& step, const CoreSet& cores)
      : slices_(step, step.output().type),
        halves_(step.input(0).type == Type::f16),
        wraps_(step.rule("to_integer") == "even_wrap"),
        quantize_(cores.quantize_reals()),
        widen_(cores.widen_halves()) {
    require(step.rule("quotient") == "binary32" && (wraps_ || step.rule("to_integer") == "clamp_even") &&
                step.rules.count("to_integer_tail") == 0 && step.rules.count("narrow") == 0,
            "no native rule for these slots");
    low_ = static_cast<int32_t>(step.integer("low", -65536, 65536));
    high_ = static_cast<int32_t>(step.integer("high", -65536, 65536));
    flip_ = flip_of(step.output().type);
    require(sizeof(Out) > 1 || (low_ + flip_ == 0 && high_ + flip_ == 255), "the clamp is not the type's range");
  }

  void run(const Run& run) const override {
    const float* scales = slices_.scales_of(run);
    const int32_t* zero_points = slices_.points_of(run);
    slices_.run(run.pool, [&](int64_t first, int64_t slice, int64_t count) {
      const float* in = reinterpret_cast<const float*>(run.inputs[0]) + first;
      float wide[kBlock];
      if (halves_) {
        widen_(reinterpret_cast<const uint16_t*>(run.inputs[0]) + first, wide, count);
        in = wide;
      }
      Out* out = reinterpret_cast<Out*>(run.outputs[0]) + first;
      const int64_t step = slices_.apart ? 1 : 0;
      if constexpr (sizeof(Out) == 1) {
        const int32_t zero_point = zero_points[slice];
        if (step == 0 && (!wraps_ || fits(in, scales[slice], count))) {
          const QuantizeSpec spec{scales[slice], static_cast<float>(low_ - zero_point),
                                  static_cast<float>(high_ - zero_point), zero_point + flip_};
          return quantize_(spec, in, out, count);
        }
      }
      for (int64_t i = 0; i < count; ++i) out[i] = one(in[i], scales[slice + i * step], zero_points[slice + i * step]);
    });
  }
  int64_t scratch_bytes(int) const override { return slices_.scratch_bytes(); }
  bool packs(size_t input) const override { return input != 0 && !slices_.late; }

 private:
  // Whether all quotients lie within 2^30, where both rules are the same.
  static bool fits(const float* in, float scale, int64_t count) {
    const float most = std::min(scale * 0x1p30f, std::numeric_limits<float>::max());
    if (!(most > 0)) return false;
    int32_t all = 1;
    for (int64_t i = 0; i < count; ++i) all &= static_cast<int32_t>(std::fabs(in[i]) <= most);
    return all != 0;
  }

  Out one(float x, float scale, int32_t zero_point) const {
    if (wraps_) {
      return static_cast<Out>(rules::binary32_divide_even(x, scale, zero_point, low_, high_) + flip_);
    }
    return quantize_one<Out>(x, scale, static_cast<float>(low_ - zero_point), static_cast<float>(high_ - zero_point),
                             zero_point + flip_);
  }

  Slices slices_;
  bool halves_, wraps_;
  QuantizeReals quantize_;
  WidenHalves widen_;
  int32_t low_ = 0, high_ = 0, flip_ = 0;
};

// `count` reals from the stored integers at `in`: of scales[0] and points[0], or of one each where `apart`.
using DequantizeRow = void (*)(const uint8_t* in, const float* scales, const int32_t* points, int32_t flip, bool apart,
                               float* out, int64_t count);
template <class In>
void dequantize_row(const uint8_t* in, const float* scales, const int32_t* points, int32_t flip, bool apart, float* out,
                    int64_t count) {
  const auto* source = reinterpret_cast<const In*>(in);
  if (apart) {
    for (int64_t i = 0; i < count; ++i) out[i] = rules::binary32_multiply(source[i], scales[i], points[i] + flip);
    return;
  }
  const float scale = *scales;
  const int32_t zero_point = *points + flip;
  for (int64_t i = 0; i < count; ++i) out[i] = rules::binary32_multiply(source[i], scale, zero_point);
}

class DequantizeByOperands final : public Kernel {
 public:
  DequantizeByOperands(const Step& step, size_t item, DequantizeRow row)
      : slices_(step, step.input(0).type),
        item_(static_cast<int64_t>(item)),
        flip_(flip_of(step.input(0).type)),
        row_(row),
        halves_(step.output().type == Type::f16) {
    if (halves_ && step.rule("narrow") == "even_saturate") {
      most_ = 65504;  // the largest finite one
    } else {
      require(!halves_ || step.rule("narrow") == "even_overflow", "no native rule for this slot");
    }
    slices_.zero_only = slices_.zero_only || item == 4;
  }

  void run(const Run& run) const override {
    const float* scales = slices_.scales_of(run);
    const int32_t* points = slices_.points_of(run);
    for (int64_t i = 0; slices_.late && i < slices_.count; ++i) {
      if (!std::isfinite(scales[i])) throw Undefined();
    }
    slices_.run(run.pool, [&](int64_t first, int64_t slice, int64_t count) {
      const uint8_t* in = run.inputs[0] + first * item_;
      if (!halves_) {
        row_(in, scales + slice, points + slice, flip_, slices_.apart, reinterpret_cast<float*>(run.outputs[0]) + first,
             count);
        return;
      }
      float reals[kBlock];
      row_(in, scales + slice, points + slice, flip_, slices_.apart, reals, count);
      auto* out = reinterpret_cast<uint16_t*>(run.outputs[0]) + first;
      for (int64_t i = 0; i < count; ++i) {
        out[i] = arithmetic::float_to_half(std::min(std::max(reals[i], -most_), most_));
      }
    });
  }
  int64_t scratch_bytes(int) const override { return slices_.scratch_bytes(); }
  bool packs(size_t input) const override { return input != 0 && !slices_.late; }

 private:
  Slices slices_;
  int64_t item_;
  int32_t flip_;
  DequantizeRow row_;
  bool halves_;
  float most_ = std::numeric_limits<float>::infinity();  // of halves
};

// Function: float operator()(float x, float scale, float zero_point) const. Element i of the axis has scale i modulo their
// number, and zero point i modulo theirs.
template <class Function>
class InReals final : public Kernel {
 public:
  InReals(const Step& step, Function function) : function_(function) {
    const Operand &in = step.input(0), &scales = step.input(1), &points = step.input(2);
    require(in.type == Type::f32 && scales.type == Type::f32 && points.type == Type::s32 &&
                step.output().type == Type::f32 && in.dense() && step.output().dense() && scales.elements > 0 &&
                points.elements > 0,
            "no native kernel for these types");
    scales_ = scales.elements, points_ = points.elements;
    if (in.rank() > 0) {
      const int64_t axis = step.integer("axis", 0, in.rank() - 1);
      dimension_ = in.shape[axis];
      for (int64_t i = axis + 1; i < in.rank(); ++i) inner_ *= in.shape[i];
    }
    rows_ = in.elements == 0 ? 0 : in.elements / inner_;
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    const auto* scales = reinterpret_cast<const float*>(run.inputs[1]);
    const auto* points = reinterpret_cast<const int32_t*>(run.inputs[2]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    // Which of several NaN stays is the reference's to tell.
    for (int64_t i = 0; i < scales_; ++i) {
      if (!std::isfinite(scales[i])) throw Undefined();
    }
    const int64_t together = std::max<int64_t>(1, kBlock / std::max<int64_t>(1, inner_));
    run.pool.parallel((rows_ + together - 1) / together, [&](int64_t task, int) {
      for (int64_t row = task * together; row < std::min(rows_, (task + 1) * together); ++row) {
        const int64_t place = row % dimension_, count = inner_;
        const float scale = scales[place % scales_];
        const auto point = static_cast<float>(points[place % points_]);
        const float* from = in + row * count;
        float* to = out + row * count;
        for (int64_t i = 0; i < count; ++i) to[i] = function_(from[i], scale, point);
      }
    });
  }

 private:
  Function function_;
  int64_t scales_ = 0, points_ = 0, dimension_ = 1, inner_ = 1, rows_ = 0;
};

// The extremes of all numbers first; NaN, whose place would matter, is left to the reference.
class DynamicQuantizeLinear final : public Kernel {
 public:
  DynamicQuantizeLinear(const Step& step, const CoreSet& cores)
      : quantize_(cores.quantize_reals()), refuses_(step.rule("dynamic_range") == "binary32_over_255") {
    const Operand &in = step.input(0), &out = step.output();
    require((refuses_ || has_dynamic_scale(step)) && step.rule("quotient") == "binary32" &&
                step.rule("to_integer") == "clamp_even",
            "no native rule for these slots");
    require(in.type == Type::f32 && out.type == Type::u8 && step.output(1).type == Type::f32 &&
                step.output(2).type == Type::u8 && step.output(1).elements == 1 && step.output(2).elements == 1 &&
                in.elements == out.elements && in.dense() && out.dense(),
            "the shapes do not fit");
    elements_ = in.elements;
  }

  int64_t scratch_bytes(int) const override { return tasks() * static_cast<int64_t>(sizeof(Extremes)); }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* found = reinterpret_cast<Extremes*>(run.scratch);
    run.pool.parallel(tasks(), [&](int64_t task, int) {
      found[task] = extremes_of(in + task * kTask, std::min(kTask, elements_ - task * kTask));
    });
    Extremes all;
    for (int64_t i = 0; i < tasks(); ++i) {
      all.low = std::min(all.low, found[i].low);
      all.high = std::max(all.high, found[i].high);
      all.missing |= found[i].missing;
    }
    if (all.missing) throw Undefined();
    const DynamicScale to = dynamic_scale(all);
    if (refuses_ && (all.low == all.high || !std::isfinite(to.scale) || to.scale == 0)) throw Undefined();
    std::memcpy(run.outputs[1], &to.scale, sizeof to.scale);
    run.outputs[2][0] = static_cast<uint8_t>(to.zero_point);
    const QuantizeSpec spec = all_bytes(to);
    run.pool.parallel(tasks(), [&](int64_t task, int) {
      quantize_(spec, in + task * kTask, run.outputs[0] + task * kTask, std::min(kTask, elements_ - task * kTask));
    });
  }

 private:
  static constexpr int64_t kTask = 16384;

  int64_t tasks() const { return (elements_ + kTask - 1) / kTask; }

  QuantizeReals quantize_;
  bool refuses_;  // what has no scale by the specification
  int64_t elements_ = 0;
};

}  // namespace

// Whether scales are binary32: the plan's, or this run's.
static bool has_single_scales(const Step& step) {
  return step.has_array("scales") ? step.array("scales").type == Type::f32 : step.input(1).type == Type::f32;
}

std::unique_ptr<Kernel> make_quantize_by_operands(const Step& step, const CoreSet& cores) {
  const Type from = step.input(0).type, to = step.output().type;
  const bool words = to == Type::s16 || to == Type::u16;
  if ((!words && !is_8bit(to)) || (from != Type::f32 && from != Type::f16) || step.rule("quotient") != "binary32" ||
      step.rules.count("to_integer_tail") != 0 || step.rule("to_integer") == "away_sum_clamp" ||
      !has_single_scales(step)) {
    return make_any_quantize(step);
  }
  if (!words) return std::make_unique<QuantizeByOperands<uint8_t>>(step, cores);
  if (to == Type::s16) return std::make_unique<QuantizeByOperands<int16_t>>(step, cores);
  return std::make_unique<QuantizeByOperands<uint16_t>>(step, cores);
}

template <class In>
static std::unique_ptr<Kernel> dequantize_from(const Step& step) {
  return std::make_unique<DequantizeByOperands>(step, sizeof(In), dequantize_row<In>);
}

// Whether products are those of binary32, of numbers that are finite and differences that 32 bits hold.
static bool multiplies_singles(const Step& step) {
  const bool words = step.input(0).type == Type::s32, halves = step.output().type == Type::f16;
  // An exact product of differences of 17 bits is rounded once, and so is that of binary32.
  const bool exact = step.rule("dequantize") == "exact_multiply_odd";
  if (exact ? words || halves : step.rule("dequantize") != "binary32_multiply") return false;
  if (!has_single_scales(step) || (!halves && step.output().type != Type::f32)) return false;
  if (!halves && step.rule("narrow") != "even_overflow") return false;
  if (!step.has_array("scales")) {
    const bool same = !step.has_input(2) || step.input(2).type == step.input(0).type;
    return same && step.rule("zero_points") != "ignored";
  }
  const Array &scales = step.array("scales"), &points = step.array("zero_points");
  for (int64_t i = 0; i < scales.count; ++i) {
    if (!std::isfinite(scales.real(i)) || (words && points.integer(i) != 0)) return false;
  }
  return true;
}

std::unique_ptr<Kernel> make_dequantize_by_operands(const Step& step) {
  if (!is_integer(step.input(0).type) || !multiplies_singles(step)) return make_any_dequantize(step);
  switch (step.input(0).type) {
    case Type::s8:
    case Type::u8:
    case Type::u4:
    case Type::u2: return dequantize_from<uint8_t>(step);
    case Type::s2:
    case Type::s4: return dequantize_from<int8_t>(step);
    case Type::s16: return dequantize_from<int16_t>(step);
    case Type::u16: return dequantize_from<uint16_t>(step);
    case Type::s32: return dequantize_from<int32_t>(step);
    default: return make_any_dequantize(step);
  }
}

std::unique_ptr<Kernel> make_quantize_in_reals(const Step& step) {
  const auto low = static_cast<float>(step.real("low")), high = static_cast<float>(step.real("high"));
  const auto one = [=](float x, float scale, float zero_point) {
    const float moved = rules::whole_away(x / scale) + zero_point;
    const float limited = moved < high ? moved : high;
    return limited > low ? limited : low;
  };
  return std::make_unique<InReals<decltype(one)>>(step, one);
}

std::unique_ptr<Kernel> make_dequantize_in_reals(const Step& step) {
  const auto one = [](float x, float scale, float zero_point) { return (x - zero_point) * scale; };
  return std::make_unique<InReals<decltype(one)>>(step, one);
}

static std::unique_ptr<Kernel> make_dynamic_quantize_linear(const Step& step, const CoreSet& cores) {
  return std::make_unique<DynamicQuantizeLinear>(step, cores);
}

BITTRUE_OPERATOR(dynamic_quantize_linear, make_dynamic_quantize_linear)

}  // namespace bittrue

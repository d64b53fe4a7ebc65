// quantize: from real numbers to stored integers, or from one scale and zero point to another.
#include "operators/quantization/quantize.h"

#include "operators/elementwise/logistic.h"

#include <limits>

#include "operators/core/any_type.h"
#include "operators/core/lanes.h"
#include "operators/core/late_scales.h"
#include "operators/core/map.h"
#include "operators/core/registry.h"
#include "operators/core/rescaling.h"
#include "rules/center.h"
#include "rules/quantize.h"

namespace bittrue {
namespace {

constexpr int64_t kLeastRounded = std::numeric_limits<int32_t>::min(),
                  kMostRounded = std::numeric_limits<int32_t>::max();

// `count` numbers, each with its scale and zero point, or, by `step` 0, all with the first ones.
using QuantizeRow = void (*)(const float* in, const float* scales, const int32_t* zero_points, int64_t step,
                             int32_t low, int32_t high, int64_t* out, int64_t count);
template <int32_t (*rule)(float x, float scale, int32_t zero_point, int32_t low, int32_t high)>
void quantize_row(const float* in, const float* scales, const int32_t* zero_points, int64_t step, int32_t low,
                  int32_t high, int64_t* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = rule(in[i], scales[i * step], zero_points[i * step], low, high);
}

struct QuantizeRule {
  const char* name;
  QuantizeRow row;
  bool multiplies = false;  // by the scale's reciprocal
  bool short_points = false;
};
constexpr QuantizeRule kQuantizeRules[] = {
    {"binary32_divide_away", quantize_row<rules::binary32_divide_away>},
    {"binary32_divide_away_limited", quantize_row<rules::binary32_divide_away_limited>},
    {"binary32_divide_away_sum", quantize_row<rules::binary32_divide_away_sum>},
    {"binary32_divide_even", quantize_row<rules::binary32_divide_even>},
    {"binary32_reciprocal_away_sum", quantize_row<rules::binary32_reciprocal_away_sum>, true},
    {"binary32_reciprocal_even", quantize_row<rules::binary32_reciprocal_even>, true, true},
    {"binary32_reciprocal_even_limited", quantize_row<rules::binary32_reciprocal_even_limited>, true, true},
    {"binary32_reciprocal_fused_even", quantize_row<rules::binary32_reciprocal_fused_even>, true, true},
};

// binary32 to integers; `dimension` scales, each for `inner` neighbours.
class QuantizeReal final : public Kernel {
 public:
  QuantizeReal(const Step& step, const CoreSet& cores)
      : parameters_(axis_parameters(step, step.output())), quantize_(cores.quantize_reals()) {
    const std::string& name = step.rule("quantize");
    for (const QuantizeRule& rule : kQuantizeRules) {
      if (name == rule.name) rule_ = rule;
    }
    require(rule_.row != nullptr, "no native rule for this slot");
    for (float& scale : parameters_.scales) scale = rule_.multiplies ? 1.0f / scale : scale;
    for (const int32_t zero_point : parameters_.zero_points) {
      require(!rule_.short_points || (zero_point >= -65536 && zero_point <= 65536), "a zero point is out of range");
    }
    require(step.input(0).elements == step.output().elements && step.input(0).dense() && step.output().dense(),
            "both sides must be dense");
    low_ = static_cast<int32_t>(step.integer("low", kLeastRounded, kMostRounded));
    high_ = static_cast<int32_t>(step.integer("high", kLeastRounded, kMostRounded));
    flip_ = flip_of(step.output().type);
    item_ = type_bytes(step.output().type);
    moves_ = name == "binary32_reciprocal_fused_even";
    const bool has_core = name == "binary32_divide_even" || name == "binary32_reciprocal_even" ||
                          name == "binary32_reciprocal_even_limited" || moves_;
    by_core_ = has_core && is_8bit(step.output().type) && low_ >= -flip_ && low_ <= high_ && high_ <= 255 - flip_;
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    const AxisParameters& p = parameters_;
    // Rows of one scale, or of all of them.
    const bool apart = p.inner == 1;
    const int64_t rows = apart ? p.outer : p.outer * p.dimension, length = apart ? p.dimension : p.inner;
    const int64_t per_row = (length + kBlock - 1) / kBlock;
    run.pool.parallel(rows * per_row, apart ? 1 : run.pool.threads(), [&](int64_t task, int) {
      const int64_t row = task / per_row, from = task % per_row * kBlock, count = std::min(kBlock, length - from);
      const int64_t first = row * length + from, place = apart ? from : row % p.dimension;
      const float* scales = p.scales.data() + place;
      const int32_t* zero_points = p.zero_points.data() + place;
      uint8_t* out = run.outputs[0] + first * item_;
      if (by_core_ && !apart && by_core(in + first, out, count, *scales, *zero_points)) return;
      int64_t values[kBlock];
      rule_.row(in + first, scales, zero_points, apart ? 1 : 0, low_, high_, values, count);
      for (int64_t i = 0; i < count; ++i) values[i] += flip_;
      store_low_bits(values, item_, out, count);
    });
  }

 private:
  static constexpr int64_t kBlock = 2048;

  // False where these are not the core's bytes.
  bool by_core(const float* in, uint8_t* out, int64_t count, float scale, int32_t zero_point) const {
    if (zero_point < -65536 || zero_point > 65536) return false;
    // What does not fit 32 bits (16 where the rule limits products to them), or is no number, has a meaning of its own.
    // Scales of products are reciprocals.
    const bool multiplies = rule_.multiplies;
    const float most = multiplies ? (moves_ ? 536870912.0f : 32000.0f) / scale : scale * 1073741824.0f;
    if (multiplies && !(most > 0 && std::isfinite(most))) return false;
    int32_t usual = 1;
    for (int64_t i = 0; i < count; ++i) usual &= static_cast<int32_t>(std::fabs(in[i]) <= most);
    if (usual == 0) return false;
    // Where the zero point is added before results are rounded, the limits are those of the sum.
    const int32_t later = moves_ ? 0 : zero_point;
    quantize_({scale, static_cast<float>(low_ - later), static_cast<float>(high_ - later), later + flip_, multiplies,
               moves_ ? static_cast<float>(zero_point) : 0.0f},
              in, out, count);
    return true;
  }

  AxisParameters parameters_;  // scales are reciprocals where the rule multiplies
  QuantizeReals quantize_;
  QuantizeRule rule_{};
  bool by_core_ = false;
  bool moves_ = false;  // the zero point is added before results are rounded
  int32_t low_ = 0, high_ = 0, flip_ = 0;
  int64_t item_ = 0;
};

// One scale: vectors multiply by its reciprocal, the scalars behind them divide.
template <class Out>
std::unique_ptr<Kernel> make_lane_quantize(const Step& step) {
  const std::string &body = step.rule("quantize"), &tail = step.rule("quantize_tail");
  const bool limited = body == "binary32_reciprocal_even_wrap_limited" && tail == "binary64_divide_away_limited";
  require(limited || (body == "binary32_reciprocal_even_wrap" && tail == "binary64_divide_away"),
          "no native rule for this slot");
  const AxisParameters p = axis_parameters(step, step.output());
  require(p.scales.size() == 1, "there must be one scale");
  const float scale = p.scales[0], inverse = static_cast<float>(1.0 / static_cast<double>(scale));
  const int32_t zero_point = p.zero_points[0], flip = flip_of(step.output().type);
  const auto low = static_cast<int32_t>(step.integer("low", kLeastRounded, kMostRounded));
  const auto high = static_cast<int32_t>(step.integer("high", kLeastRounded, kMostRounded));
  const auto by_vectors = limited ? rules::binary32_reciprocal_even_wrap_limited : rules::binary32_reciprocal_even_wrap;
  const auto by_scalars = limited ? rules::binary64_divide_away_limited : rules::binary64_divide_away;
  return make_lane_map<float, Out>(
      step, [=](float x) { return static_cast<Out>(by_vectors(x, inverse, zero_point, low, high) + flip); },
      [=](float x) { return static_cast<Out>(by_scalars(x, scale, zero_point, low, high) + flip); });
}

using ByteTable = std::array<uint8_t, 256>;

std::unique_ptr<Kernel> make_lane_rescaled(const Step& step) {
  const Type from = step.input(0).type, to = step.output().type;
  require(is_8bit(from) && is_8bit(to), "no native kernel for these types");
  const Storing store = storing(step);
  const int64_t zero_point = step.integer("input_zero_point", kLeastRounded, kMostRounded);
  const auto table = [&](const char* slot) {
    const Rescaling rescale = rescaling(step, step.rule(slot), "");
    ByteTable result;
    for (int byte = 0; byte < 256; ++byte) {
      const int64_t q = arithmetic::wrap_s32(value_of_byte(from, byte) - zero_point);
      result[byte] = static_cast<uint8_t>(store(rescale(q)) + flip_of(to));
    }
    return result;
  };
  const ByteTable body = table("rescale"), tail = table("rescale_tail");
  return make_lane_map<uint8_t, uint8_t>(
      step, [body](uint8_t q) { return body[q]; }, [tail](uint8_t q) { return tail[q]; });
}

rules::CenterRule center_of(const Step& step) {
  rules::CenterRule found = rules::CenterRule::s32_wrap;
  const auto slot = step.rules.find("center");
  require(slot == step.rules.end() || rules::find_rule(slot->second, found), "no native rule for this slot");
  return found;
}

// A multiplier and a zero point per position of one axis, or one of each.
class RescaledSlices final : public Kernel {
 public:
  explicit RescaledSlices(const Step& step) : center_(center_of(step)), reader_(step.input(0).type) {
    const Operand &in = step.input(0), &out = step.output();
    const bool wide = in.type == Type::s64;
    for (const Type type : {wide ? out.type : in.type, out.type}) {
      require(is_integer(type) && type_bytes(type) <= 4 && type != Type::u32, "no native kernel for these types");
    }
    in_bytes_ = type_bytes(in.type), out_bytes_ = type_bytes(out.type);
    require(in.elements == out.elements && in.dense() && out.dense(), "both sides must be dense");
    if (step.has_array("input_zero_points")) {
      const int64_t axis = step.integer("axis", 0, in.rank() - 1);
      dimension_ = in.shape[axis];
      for (int64_t i = 0; i < axis; ++i) outer_ *= in.shape[i];
      for (int64_t i = axis + 1; i < in.rank(); ++i) inner_ *= in.shape[i];
      const Array& points = step.array("input_zero_points");
      require(points.count == dimension_, "there must be one zero point per position of the axis");
      for (int64_t i = 0; i < dimension_; ++i) zero_points_.push_back(points.integer(i));
    } else {
      inner_ = in.elements;
      zero_points_ = {step.integer("input_zero_point")};
    }
    for (const int64_t point : zero_points_) {
      require(point >= kLeastRounded && point <= kMostRounded, "a zero point is out of range");
    }
    requantize_ = step.requantize(dimension_);
    // Real differences beyond 64 bits become the last integer inside of them: by these multipliers both leave 32 bits.
    for (const rules::Multiplier& m : requantize_.multipliers) {
      require(!wide || center_ == rules::CenterRule::s32_wrap || m.factor >= 0x1p-30, "real products may fit 32 bits");
    }
  }

  void run(const Run& run) const override {
    constexpr int64_t kBlock = 2048;
    const int64_t elements = outer_ * dimension_ * inner_;
    run.pool.parallel((elements + kBlock - 1) / kBlock, [&](int64_t task, int) {
      const int64_t first = task * kBlock, last = std::min(elements, first + kBlock);
      int64_t values[kBlock];
      reader_.integers(run.inputs[0] + first * in_bytes_, values, last - first);
      for (int64_t i = first; i < last;) {
        const int64_t channel = i / inner_ % dimension_, end = std::min(last, (i / inner_ + 1) * inner_);
        for (; i < end; ++i) {
          const int64_t centered = rules::center(center_, values[i - first], zero_points_[channel]);
          values[i - first] = rules::requantize(requantize_, centered, channel);
        }
      }
      store_low_bits(values, out_bytes_, run.outputs[0] + first * out_bytes_, last - first);
    });
  }

 private:
  rules::CenterRule center_;
  AnyReader reader_;
  rules::Requantize requantize_;
  std::vector<int64_t> zero_points_;
  int64_t outer_ = 1, dimension_ = 1, inner_ = 1, in_bytes_ = 0, out_bytes_ = 0;
};

// Multipliers and zero points that only running tells: one, or one per position of an axis.
class LateRescaled final : public Kernel {
 public:
  explicit LateRescaled(const Step& step)
      : center_(center_of(step)), scales_(step), reader_(step.input(0).type), writer_(step.output().type) {
    const Operand &in = step.input(0), &out = step.output();
    require(is_integer(in.type) && type_bytes(in.type) <= 4 && type_bytes(out.type) <= 4,
            "no native kernel for these types");
    require(in.elements == out.elements && in.dense() && out.dense(), "both sides must be dense");
    inner_ = elements_ = in.elements;
    if (step.integers.count("axis") != 0) {
      const int64_t axis = step.integer("axis", 0, in.rank() - 1);
      dimension_ = in.shape[axis], inner_ = 1;
      for (int64_t i = axis + 1; i < in.rank(); ++i) inner_ *= in.shape[i];
    }
    for (size_t input = 1; input < 5; ++input) {
      require(step.has_input(input), "an operand is missing");
      numbers_.push_back(LateNumbers(step, input, input < 3 ? 1 : dimension_));
    }
  }
  int64_t scratch_bytes(int) const override { return dimension_ * static_cast<int64_t>(sizeof(Slice)); }

  void run(const Run& run) const override {
    auto* slices = reinterpret_cast<Slice*>(run.scratch);
    const double output = numbers_[0].at(run, 0);
    const auto zero_point = static_cast<int64_t>(numbers_[1].at(run, 0));
    for (int64_t i = 0; i < dimension_; ++i) {
      slices[i].zero_point = static_cast<int64_t>(numbers_[3].at(run, i));
      if (!scales_.prepare(numbers_[2].at(run, i), 1, output, &slices[i].multiplier)) throw Undefined();
    }
    constexpr int64_t kBlock = 1024;
    run.pool.parallel((elements_ + kBlock - 1) / kBlock, [&](int64_t task, int) {
      const int64_t first = task * kBlock, count = std::min(kBlock, elements_ - first);
      int64_t values[kBlock];
      reader_.integers(run.inputs[0] + first * reader_.bytes(), values, count);
      for (int64_t i = 0; i < count; ++i) {
        const Slice& slice = slices[(first + i) / inner_ % dimension_];
        values[i] = scales_.stored(rules::center(center_, values[i], slice.zero_point), slice.multiplier, zero_point);
      }
      writer_.store(values, run.outputs[0] + first * writer_.bytes(), count);
    });
  }

 private:
  struct Slice {
    LateScales::Multiplier multiplier;
    int64_t zero_point;
  };

  rules::CenterRule center_;
  LateScales scales_;
  AnyReader reader_;
  IntegerWriter writer_;
  std::vector<LateNumbers> numbers_;  // scale and zero point of the result, then of the input
  int64_t dimension_ = 1, inner_ = 1, elements_ = 0;
};

}  // namespace

AxisParameters axis_parameters(const Step& step, const Operand& operand) {
  const Array &scales = step.array("scales"), &zero_points = step.array("zero_points");
  require(scales.count == zero_points.count && scales.count >= 1 && scales.type == Type::f32,
          "there must be one zero point per scale");
  AxisParameters result;
  result.inner = operand.elements;
  if (scales.count > 1) {
    require(scales.shape.size() == operand.shape.size(), "scales must have an axis for each of the tensor's");
    size_t axis = 0;
    while (axis + 1 < scales.shape.size() && scales.shape[axis] == 1) ++axis;
    require(scales.shape[axis] == operand.shape[axis] && scales.count == scales.shape[axis],
            "there must be one scale per position of an axis");
    result.dimension = scales.count;
    for (size_t i = 0; i < axis; ++i) result.outer *= operand.shape[i];
    result.inner = 1;
    for (size_t i = axis + 1; i < operand.shape.size(); ++i) result.inner *= operand.shape[i];
  }
  for (int64_t i = 0; i < scales.count; ++i) {
    const int64_t zero_point = zero_points.integer(i);
    require(zero_point >= kLeastRounded && zero_point <= kMostRounded, "a zero point is out of range");
    result.scales.push_back(static_cast<float>(scales.real(i)));
    result.zero_points.push_back(static_cast<int32_t>(zero_point));
  }
  return result;
}

std::unique_ptr<Kernel> make_rescaled(const Step& step, const CoreSet& cores) {
  if (step.rules.count("lanes")) return make_lane_rescaled(step);
  if (step.integers.count("late") != 0 && step.integer("late") != 0) return std::make_unique<LateRescaled>(step);
  const bool words = step.input(0).type == Type::u16 || step.output().type == Type::u16;
  if (step.has_array("input_zero_points") || step.input(0).type == Type::s64 || words) {
    return std::make_unique<RescaledSlices>(step);
  }
  const int64_t zero_point = step.integer("input_zero_point", kLeastRounded, kMostRounded);
  const Rescaling rescale = any_rescaling(step, step.rule("rescale"), "");
  const rules::CenterRule center = center_of(step);
  if (rules::is_real(rescale.rule)) {
    rules::Requantize requantize = requantization(step, rescale, kMostRounded);
    requantize.flip = 0;
    return make_integer_map(
        step, cores, [=](int64_t q) { return rules::requantize(requantize, rules::center(center, q, zero_point), 0); });
  }
  const Storing store = storing(step);
  return make_integer_map(step, cores, [=](int64_t q) { return store(rescale(rules::center(center, q, zero_point))); });
}

static std::unique_ptr<Kernel> make_quantize(const Step& step, const CoreSet& cores) {
  if (step.integers.count("in_reals")) return make_quantize_in_reals(step);
  if (step.rules.count("levels")) return make_quantized_levels(step, cores);
  if (step.rules.count("quotient")) return make_quantize_by_operands(step, cores);
  if (step.rules.count("range_quantize") || step.rules.count("range_requantize"))
    return make_quantize_by_ranges(step, cores);
  if (!step.has_array("scales")) return make_rescaled(step, cores);
  const Type to = step.output().type;
  if (step.input(0).type != Type::f32) return nullptr;
  if (step.rules.count("lanes")) {
    if (to == Type::s16) return make_lane_quantize<int16_t>(step);
    return is_8bit(to) ? make_lane_quantize<uint8_t>(step) : nullptr;
  }
  const bool known = to == Type::s16 || to == Type::u16 || to == Type::s32 || is_byte(to) || type_bytes(to) == 1;
  return known ? std::make_unique<QuantizeReal>(step, cores) : nullptr;
}

BITTRUE_OPERATOR(quantize, make_quantize)

}  // namespace bittrue

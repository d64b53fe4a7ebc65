// quantize: from real numbers to stored integers, or from one scale and zero point to another.
#include "operators/quantization/quantize.h"

#include "operators/elementwise/logistic.h"

#include <limits>

#include "operators/core/lanes.h"
#include "operators/core/registry.h"
#include "operators/core/rescaling.h"
#include "rules/center.h"
#include "rules/quantize.h"

namespace bittrue {
namespace {

constexpr int64_t kLeastRounded = std::numeric_limits<int32_t>::min(),
                  kMostRounded = std::numeric_limits<int32_t>::max();

enum class QuantizeRule {
  divide_away,
  divide_away_limited,
  divide_away_sum,
  divide_even,
  reciprocal_away_sum,
  reciprocal_even,
  reciprocal_fused_even
};

// binary32 to integers; `dimension` scales, each for `inner` neighbours.
template <class Out, QuantizeRule kRule>
class QuantizeReal final : public Kernel {
 public:
  QuantizeReal(const Step& step, const CoreSet& cores)
      : parameters_(axis_parameters(step, step.output())), quantize_(cores.quantize_reals()) {
    if (kRule >= QuantizeRule::reciprocal_away_sum) {
      for (float& scale : parameters_.scales) scale = 1.0f / scale;
    }
    if (kRule == QuantizeRule::reciprocal_even || kRule == QuantizeRule::reciprocal_fused_even) {
      for (const int32_t zero_point : parameters_.zero_points) {
        require(zero_point >= -65536 && zero_point <= 65536, "a zero point is out of range");
      }
    }
    require(step.input(0).elements == step.output().elements && step.input(0).dense() && step.output().dense(),
            "both sides must be dense");
    low_ = static_cast<int32_t>(step.integer("low", kLeastRounded, kMostRounded));
    high_ = static_cast<int32_t>(step.integer("high", kLeastRounded, kMostRounded));
    flip_ = flip_of(step.output().type);
    bytes_ = is_8bit(step.output().type) && low_ >= -flip_ && low_ <= high_ && high_ <= 255 - flip_;
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const float*>(run.inputs[0]);
    auto* out = reinterpret_cast<Out*>(run.outputs[0]);
    const AxisParameters& p = parameters_;
    if (p.inner == 1) {
      for (int64_t o = 0; o < p.outer; ++o, in += p.dimension, out += p.dimension) {
        const float* scales = p.scales.data();
        const int32_t* zero_points = p.zero_points.data();
        for (int64_t i = 0; i < p.dimension; ++i) out[i] = stored(in[i], scales[i], zero_points[i]);
      }
      return;
    }
    constexpr int64_t kBlock = 8192;
    const int64_t per_row = (p.inner + kBlock - 1) / kBlock;
    run.pool.parallel(p.outer * p.dimension * per_row, [&](int64_t task, int) {
      const int64_t row = task / per_row, channel = row % p.dimension;
      const int64_t first = task % per_row * kBlock, last = std::min(p.inner, first + kBlock);
      const float* source = in + row * p.inner;
      Out* target = out + row * p.inner;
      const float scale = p.scales[channel];
      const int32_t zero_point = p.zero_points[channel];
      if (bytes_ && by_core(source + first, run.outputs[0] + row * p.inner + first, last - first, scale, zero_point)) {
        return;
      }
      for (int64_t i = first; i < last; ++i) target[i] = stored(source[i], scale, zero_point);
    });
  }

 private:
  // False where the core has no such rule, or not its bytes for these numbers.
  bool by_core(const float* in, uint8_t* out, int64_t count, float scale, int32_t zero_point) const {
    if (kRule != QuantizeRule::divide_even || zero_point < -65536 || zero_point > 65536) return false;
    // What does not fit 32 bits, or is no number, has a meaning of its own.
    const float most = scale * 1073741824.0f;
    int32_t usual = 1;
    for (int64_t i = 0; i < count; ++i) usual &= static_cast<int32_t>(std::fabs(in[i]) <= most);
    if (usual == 0) return false;
    quantize_(
        {scale, static_cast<float>(low_ - zero_point), static_cast<float>(high_ - zero_point), zero_point + flip_}, in,
        out, count);
    return true;
  }
  Out stored(float x, float scale, int32_t zero_point) const {
    // Unsigned, because a plan's limits may be those of 32 bits.
    return static_cast<Out>(static_cast<uint32_t>(quantized(x, scale, zero_point)) + static_cast<uint32_t>(flip_));
  }
  int32_t quantized(float x, float scale, int32_t zero_point) const {
    switch (kRule) {
      case QuantizeRule::divide_away: return rules::binary32_divide_away(x, scale, zero_point, low_, high_);
      case QuantizeRule::divide_away_limited:
        return rules::binary32_divide_away_limited(x, scale, zero_point, low_, high_);
      case QuantizeRule::divide_away_sum: return rules::binary32_divide_away_sum(x, scale, zero_point, low_, high_);
      case QuantizeRule::divide_even: return rules::binary32_divide_even(x, scale, zero_point, low_, high_);
      case QuantizeRule::reciprocal_away_sum:
        return rules::binary32_reciprocal_away_sum(x, scale, zero_point, low_, high_);
      case QuantizeRule::reciprocal_even: return rules::binary32_reciprocal_even(x, scale, zero_point, low_, high_);
      default: return rules::binary32_reciprocal_fused_even(x, scale, zero_point, low_, high_);
    }
  }

  AxisParameters parameters_;  // scales are reciprocals where the rule multiplies
  QuantizeReals quantize_;
  bool bytes_ = false;
  int32_t low_ = 0, high_ = 0, flip_ = 0;
};

template <class Out>
std::unique_ptr<Kernel> make_real_quantize(const Step& step, const CoreSet& cores) {
  const std::string& rule = step.rule("quantize");
  if (rule == "binary32_divide_away")
    return std::make_unique<QuantizeReal<Out, QuantizeRule::divide_away>>(step, cores);
  if (rule == "binary32_divide_away_limited") {
    return std::make_unique<QuantizeReal<Out, QuantizeRule::divide_away_limited>>(step, cores);
  }
  if (rule == "binary32_divide_away_sum") {
    return std::make_unique<QuantizeReal<Out, QuantizeRule::divide_away_sum>>(step, cores);
  }
  if (rule == "binary32_divide_even")
    return std::make_unique<QuantizeReal<Out, QuantizeRule::divide_even>>(step, cores);
  if (rule == "binary32_reciprocal_away_sum") {
    return std::make_unique<QuantizeReal<Out, QuantizeRule::reciprocal_away_sum>>(step, cores);
  }
  if (rule == "binary32_reciprocal_even")
    return std::make_unique<QuantizeReal<Out, QuantizeRule::reciprocal_even>>(step, cores);
  require(rule == "binary32_reciprocal_fused_even", "no native rule for this slot");
  return std::make_unique<QuantizeReal<Out, QuantizeRule::reciprocal_fused_even>>(step, cores);
}

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

// A multiplier and a zero point per position of one axis.
template <class In, class Out>
class RescaledSlices final : public Kernel {
 public:
  explicit RescaledSlices(const Step& step) : center_(center_of(step)) {
    const Operand &in = step.input(0), &out = step.output();
    require(in.elements == out.elements && in.dense() && out.dense(), "both sides must be dense");
    const int64_t axis = step.integer("axis", 0, in.rank() - 1);
    dimension_ = in.shape[axis];
    for (int64_t i = 0; i < axis; ++i) outer_ *= in.shape[i];
    for (int64_t i = axis + 1; i < in.rank(); ++i) inner_ *= in.shape[i];
    const Array& points = step.array("input_zero_points");
    require(points.count == dimension_, "there must be one zero point per position of the axis");
    in_flip_ = flip_of(in.type);
    for (int64_t i = 0; i < dimension_; ++i) {
      zero_points_.push_back(points.integer(i));
      require(zero_points_[i] >= kLeastRounded && zero_points_[i] <= kMostRounded, "a zero point is out of range");
    }
    requantize_ = step.requantize(dimension_);
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const In*>(run.inputs[0]);
    auto* out = reinterpret_cast<Out*>(run.outputs[0]);
    constexpr int64_t kBlock = 4096;
    const int64_t elements = outer_ * dimension_ * inner_;
    run.pool.parallel((elements + kBlock - 1) / kBlock, [&](int64_t task, int) {
      const int64_t last = std::min(elements, (task + 1) * kBlock);
      for (int64_t i = task * kBlock; i < last;) {
        const int64_t channel = i / inner_ % dimension_, end = std::min(last, (i / inner_ + 1) * inner_);
        for (; i < end; ++i) {
          const int64_t centered = rules::center(center_, int64_t{in[i]} - in_flip_, zero_points_[channel]);
          out[i] = static_cast<Out>(rules::requantize(requantize_, centered, channel));
        }
      }
    });
  }

 private:
  rules::CenterRule center_;
  rules::Requantize requantize_;
  std::vector<int64_t> zero_points_;
  int64_t outer_ = 1, dimension_ = 1, inner_ = 1;
  int32_t in_flip_ = 0;
};

template <class In>
std::unique_ptr<Kernel> rescaled_slices_from(const Step& step) {
  const Type to = step.output().type;
  if (is_8bit(to)) return std::make_unique<RescaledSlices<In, uint8_t>>(step);
  if (to == Type::s16) return std::make_unique<RescaledSlices<In, int16_t>>(step);
  return to == Type::s32 ? std::make_unique<RescaledSlices<In, int32_t>>(step) : nullptr;
}

std::unique_ptr<Kernel> make_rescaled_slices(const Step& step) {
  const Type from = step.input(0).type;
  if (is_8bit(from)) return rescaled_slices_from<uint8_t>(step);
  if (from == Type::s16) return rescaled_slices_from<int16_t>(step);
  return from == Type::s32 ? rescaled_slices_from<int32_t>(step) : nullptr;
}

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
  if (step.has_array("input_zero_points")) return make_rescaled_slices(step);
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
  if (step.rules.count("range_quantize") || step.rules.count("range_requantize")) return make_quantize_by_ranges(step);
  if (!step.has_array("scales")) return make_rescaled(step, cores);
  const Type to = step.output().type;
  if (step.input(0).type != Type::f32) return nullptr;
  if (step.rules.count("lanes")) {
    if (to == Type::s16) return make_lane_quantize<int16_t>(step);
    return is_8bit(to) ? make_lane_quantize<uint8_t>(step) : nullptr;
  }
  if (to == Type::s16 || to == Type::u16) return make_real_quantize<int16_t>(step, cores);
  if (to == Type::s32) return make_real_quantize<int32_t>(step, cores);
  if (is_byte(to) || type_bytes(to) == 1) return make_real_quantize<uint8_t>(step, cores);
  return nullptr;
}

BITTRUE_OPERATOR(quantize, make_quantize)

}  // namespace bittrue

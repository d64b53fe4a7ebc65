// dequantize: scale * (q - zero point) in binary32, with one scale or one per position of an axis.
#include "operators/core/lanes.h"
#include "operators/core/registry.h"
#include "operators/quantization/quantize.h"
#include "rules/quantize.h"

namespace bittrue {
namespace {

// One scale per position of an axis, each for `inner` neighbours. `narrow`: differences are numbers of 32 bits.
template <class In>
class DequantizeAxis final : public Kernel {
 public:
  DequantizeAxis(const Step& step, bool narrow) : parameters_(axis_parameters(step, step.input(0))), narrow_(narrow) {
    require(step.input(0).elements == step.output().elements && step.input(0).dense() && step.output().dense(),
            "both sides must be dense");
    for (int32_t& zero_point : parameters_.zero_points) {
      require(zero_point < std::numeric_limits<int32_t>::max() - 128, "a zero point is out of range");
      zero_point += flip_of(step.input(0).type);
    }
  }

  void run(const Run& run) const override {
    const auto* in = reinterpret_cast<const In*>(run.inputs[0]);
    auto* out = reinterpret_cast<float*>(run.outputs[0]);
    const AxisParameters& p = parameters_;
    for (int64_t o = 0; o < p.outer; ++o) {
      for (int64_t c = 0; c < p.dimension; ++c, in += p.inner, out += p.inner) {
        if (p.inner >= 64 || c % 1024 == 0) run.check();
        if (narrow_) {
          for (int64_t i = 0; i < p.inner; ++i) out[i] = rules::binary32_multiply(in[i], p.scales[c], p.zero_points[c]);
        } else {
          for (int64_t i = 0; i < p.inner; ++i) out[i] = rules::binary64_multiply(in[i], p.scales[c], p.zero_points[c]);
        }
      }
    }
  }

 private:
  AxisParameters parameters_;
  bool narrow_;
};

template <class In>
std::unique_ptr<Kernel> make_dequantize_from(const Step& step, bool narrow) {
  if (step.array("scales").count > 1) return std::make_unique<DequantizeAxis<In>>(step, narrow);
  const AxisParameters p = axis_parameters(step, step.input(0));
  const float scale = p.scales[0];
  const int32_t zero_point = p.zero_points[0];
  if (narrow) return make_map<In, float>(step, [=](In q) { return rules::binary32_multiply(q, scale, zero_point); });
  return make_map<In, float>(step, [=](In q) { return rules::binary64_multiply(q, scale, zero_point); });
}

// One scale: vectors multiply and add, the scalars behind them multiply differences.
std::unique_ptr<Kernel> make_lane_dequantize(const Step& step) {
  const bool fused = step.rule("dequantize") == "binary32_fused_multiply_add";
  require((fused || step.rule("dequantize") == "binary32_multiply_add") &&
              step.rule("dequantize_tail") == "binary64_multiply",
          "no native rule for this slot");
  const Type from = step.input(0).type;
  const AxisParameters p = axis_parameters(step, step.input(0));
  require(p.scales.size() == 1 && step.output().type == Type::f32, "there must be one scale");
  const float scale = p.scales[0];
  const int64_t zero_point = p.zero_points[0];
  const auto addend = static_cast<float>(-static_cast<double>(zero_point) * static_cast<double>(scale));
  const auto multiply_add = fused ? rules::binary32_fused_multiply_add : rules::binary32_multiply_add;
  if (from == Type::s16) {
    return make_lane_map<int16_t, float>(
        step, [=](int16_t q) { return multiply_add(q, scale, addend); },
        [=](int16_t q) { return rules::binary64_multiply(q, scale, zero_point); });
  }
  if (!is_byte(from)) return nullptr;
  std::array<float, 256> body, tail;
  for (int byte = 0; byte < 256; ++byte) {
    const int64_t q = value_of_byte(from, byte);
    body[byte] = multiply_add(q, scale, addend);
    tail[byte] = rules::binary64_multiply(q, scale, zero_point);
  }
  return make_lane_map<uint8_t, float>(
      step, [body](uint8_t q) { return body[q]; }, [tail](uint8_t q) { return tail[q]; });
}

std::unique_ptr<Kernel> make_dequantize(const Step& step, const CoreSet&) {
  if (step.integers.count("in_reals")) return make_dequantize_in_reals(step);
  if (step.rules.count("narrow")) return make_dequantize_by_operands(step);
  if (step.rules.count("range_dequantize")) return make_dequantize_by_ranges(step);
  if (step.rules.count("lanes")) return step.has_array("scales") ? make_lane_dequantize(step) : nullptr;
  const bool narrow = step.rules.count("dequantize") && step.rule("dequantize") == "binary32_multiply";
  if (!step.has_array("scales") || !(narrow || step.rule("dequantize") == "binary64_multiply")) return nullptr;
  const Type from = step.input(0).type;
  if (step.output().type != Type::f32) return nullptr;
  if (is_byte(from) && step.array("scales").count == 1) {
    const AxisParameters p = axis_parameters(step, step.input(0));
    const float scale = p.scales[0];
    const int32_t zero_point = p.zero_points[0];
    std::array<float, 256> table;
    for (int byte = 0; byte < 256; ++byte) {
      const auto q = static_cast<int32_t>(value_of_byte(from, byte));
      table[byte] =
          narrow ? rules::binary32_multiply(q, scale, zero_point) : rules::binary64_multiply(q, scale, zero_point);
    }
    return std::make_unique<WideTable<float>>(step, table);
  }
  switch (from) {
    case Type::s8:
    case Type::u8: return make_dequantize_from<uint8_t>(step, narrow);
    case Type::s4:
    case Type::s2: return make_dequantize_from<int8_t>(step, narrow);
    case Type::s16: return make_dequantize_from<int16_t>(step, narrow);
    case Type::u16: return make_dequantize_from<uint16_t>(step, narrow);
    case Type::s32: return make_dequantize_from<int32_t>(step, narrow);
    default: return nullptr;
  }
}

BITTRUE_OPERATOR(dequantize, make_dequantize)

}  // namespace
}  // namespace bittrue

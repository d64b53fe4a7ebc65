// quantize and dequantize of tensors with a range: real numbers, quantized values, and sums that have a range.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "arithmetic/floats.h"
#include "operators/core/blocks.h"
#include "operators/quantization/quantize.h"
#include "operators/quantization/ranges.h"

namespace bittrue {
namespace {

// Function(run) makes Out operator()(In) const for one run, of the ranges that its inputs hold, or one for many elements:
// void operator()(const In*, Out*, count) const.
template <class In, class Out, class Function>
class RangedMap final : public Kernel {
 public:
  RangedMap(const Step& step, Function function)
      : blocks_({&step.input(0)}, step.output()), function_(std::move(function)) {
    require(type_bytes(step.input(0).type) == sizeof(In) && type_bytes(step.output().type) == sizeof(Out),
            "no native kernel for these types");
    for (size_t i = 1; i < step.inputs.size(); ++i) require_end(step.input(i));
  }

  void run(const Run& run) const override {
    const auto function = function_(run);
    blocks_.run(run, [&](const uint8_t* const* in, uint8_t* out, int64_t count) {
      const auto* source = reinterpret_cast<const In*>(in[0]);
      auto* target = reinterpret_cast<Out*>(out);
      if constexpr (std::is_invocable_v<decltype(function), const In*, Out*, int64_t>) {
        function(source, target, count);
      } else {
        for (int64_t i = 0; i < count; ++i) target[i] = function(source[i]);
      }
    });
  }
  int64_t scratch_bytes(int threads) const override { return blocks_.scratch_bytes(threads); }

 private:
  Blocks blocks_;
  Function function_;
};

template <class In, class Out, class Function>
std::unique_ptr<Kernel> make_ranged_map(const Step& step, Function function) {
  return std::make_unique<RangedMap<In, Out, Function>>(step, std::move(function));
}

// f32(x * scale) to the nearest code, ties to even, as it is stored; NaN becomes 127 (s8) or 0 (u8).
template <bool kSigned, class In>
struct Scaled {
  float scale;
  uint8_t operator()(In x) const {
    constexpr float kLow = kSigned ? -128.0f : 0.0f, kHigh = kSigned ? 127.0f : 255.0f;
    float value = static_cast<float>(x) * scale;
    if (kSigned) {
      value = value < kHigh ? value : kHigh;
      value = value > kLow ? value : kLow;
    } else {
      value = value > kLow ? value : kLow;
      value = value < kHigh ? value : kHigh;
    }
    value += 12582912.0f;  // the unit in the last place is 1 there
    int32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<uint8_t>(bits - 0x4B400000 + (kSigned ? 128 : 0));
  }
};

// The same for many real numbers, by the core where all products are numbers.
template <bool kSigned>
struct ScaledReals {
  float scale;
  QuantizeReals quantize;

  void operator()(const float* in, uint8_t* out, int64_t count) const {
    int32_t usual = static_cast<int32_t>(scale > 0 && std::isfinite(scale));
    for (int64_t i = 0; i < count; ++i) usual &= static_cast<int32_t>(in[i] == in[i]);
    if (usual != 0) {
      const float low = kSigned ? -128.0f : 0.0f, high = kSigned ? 127.0f : 255.0f;
      quantize({scale, low, high, kSigned ? 128 : 0, true, 0.0f}, in, out, count);
      return;
    }
    const Scaled<kSigned, float> one{scale};
    for (int64_t i = 0; i < count; ++i) out[i] = one(in[i]);
  }
};

// sign(x) * min(f32(f32(|x| * scale) + 1/2), 127) without its fraction, as it is stored; NaN becomes 0.
inline uint8_t by_magnitude(float x, float scale) {
  const float moved = std::fabs(x) * scale + 0.5f;
  const auto size = static_cast<int32_t>(moved < 127.0f ? moved : 127.0f);
  return static_cast<uint8_t>((x > 0 ? size : x < 0 ? -size : 0) + 128);
}

float end(const Run& run, int position) { return *reinterpret_cast<const float*>(run.inputs[position]); }

// s8 as above; u8 from the low end on, ties up, and only the low bits of what is outside of the range.
std::unique_ptr<Kernel> make_plain_codes(const Step& step) {
  if (step.output().type == Type::s8) {
    return make_ranged_map<float, uint8_t>(step, [](const Run& run) {
      const float scale = 127.0f / reach(run, 1);
      return [=](float x) { return by_magnitude(x, scale); };
    });
  }
  require(step.output().type == Type::u8, "no native kernel for these types");
  return make_ranged_map<float, uint8_t>(step, [](const Run& run) {
    const float low = end(run, 1);
    const auto scale = static_cast<float>(255.0 / static_cast<double>(end(run, 2) - low));
    return [=](float x) {
      return static_cast<uint8_t>(arithmetic::truncate_to_s32(static_cast<double>((x - low) * scale) + 0.5));
    };
  });
}

// Levels of a result of 8 bits, a half more where a rule says so.
float levels_of_codes(Type type, float extra) {
  require(is_8bit(type), "no native kernel for these types");
  return (type == Type::s8 ? 127.0f : 255.0f) + extra;
}

// scale(run): the factor of one run.
template <class Scale>
std::unique_ptr<Kernel> make_codes_of_sums(const Step& step, Scale scale) {
  if (step.output().type == Type::s8) {
    return make_ranged_map<int32_t, uint8_t>(step, [=](const Run& run) { return Scaled<true, int32_t>{scale(run)}; });
  }
  return make_ranged_map<int32_t, uint8_t>(step, [=](const Run& run) { return Scaled<false, int32_t>{scale(run)}; });
}

template <class Scale>
std::unique_ptr<Kernel> make_codes_of_reals(const Step& step, const CoreSet& cores, Scale scale) {
  const QuantizeReals core = cores.quantize_reals();
  if (step.output().type == Type::s8) {
    return make_ranged_map<float, uint8_t>(step, [=](const Run& run) { return ScaledReals<true>{scale(run), core}; });
  }
  return make_ranged_map<float, uint8_t>(step, [=](const Run& run) { return ScaledReals<false>{scale(run), core}; });
}

}  // namespace

std::unique_ptr<Kernel> make_quantize_by_ranges(const Step& step, const CoreSet& cores) {
  if (step.rules.count("range_requantize")) {
    const std::string& rule = step.rule("range_requantize");
    require(step.inputs.size() == 5 && step.input(0).type == Type::s32, "no native kernel for these types");
    if (rule == "binary32_two_products_away") {
      require(step.output().type == Type::s8, "no native kernel for these types");
      return make_ranged_map<int32_t, uint8_t>(step, [](const Run& run) {
        const float unit = reach(run, 3) / 2147483648.0f, scale = 127.0f / reach(run, 1);
        return [=](int32_t acc) { return by_magnitude(static_cast<float>(acc) * unit, scale); };
      });
    }
    require(rule == "binary32_product_even", "no native rule for this slot");
    const float levels = levels_of_codes(step.output().type, 0.0f);
    return make_codes_of_sums(step,
                              [=](const Run& run) { return reach(run, 3) / 2147483648.0f * (levels / reach(run, 1)); });
  }
  const std::string& rule = step.rule("range_quantize");
  require(step.inputs.size() == 3 && step.input(0).type == Type::f32, "no native kernel for these types");
  if (rule == "binary32_symmetric_away_or_affine_up") return make_plain_codes(step);
  const bool half = rule == "binary32_half_levels_even";
  require(half || rule == "binary32_whole_levels_even", "no native rule for this slot");
  const float levels = levels_of_codes(step.output().type, half ? 0.5f : 0.0f);
  return make_codes_of_reals(step, cores, [=](const Run& run) { return levels / reach(run, 1); });
}

std::unique_ptr<Kernel> make_dequantize_by_ranges(const Step& step) {
  const std::string& rule = step.rule("range_dequantize");
  const Type type = step.input(0).type;
  require(step.inputs.size() == 3 && is_8bit(type) && step.output().type == Type::f32,
          "no native kernel for these types");
  const int32_t flip = flip_of(type);
  if (rule == "binary32_whole_level_step_or_affine" && type == Type::u8) {
    return make_ranged_map<uint8_t, float>(step, [](const Run& run) {
      const float low = end(run, 1), unit = (end(run, 2) - low) / 255.0f;
      return [=](uint8_t stored) { return static_cast<float>(stored) * unit + low; };
    });
  }
  const bool whole = rule == "binary32_whole_level_step_or_affine";
  require(whole || rule == "binary32_half_level_step", "no native rule for this slot");
  const float levels = whole ? 127.0f : type == Type::s8 ? 127.5f : 255.5f;
  return make_ranged_map<uint8_t, float>(step, [=](const Run& run) {
    const float unit = reach(run, 1) / levels;
    return [=](uint8_t stored) { return static_cast<float>(stored - flip) * unit; };
  });
}

}  // namespace bittrue

// Functions of two elements, with broadcasting.
#pragma once

#include <limits>
#include <memory>

#include "core/kernel.h"
#include "operators/core/blocks.h"
#include "rules/plain_range.h"

namespace bittrue {

// Function: Out operator()(In, In) const, on stored elements.
template <class In, class Out, class Function>
std::unique_ptr<Kernel> make_zip(const Step& step, const Function& function) {
  require(step.input(0).type == step.input(1).type, "no native kernel for these types");
  const auto block = [function](const uint8_t* const* in, uint8_t* out, int64_t count) {
    const auto* first = reinterpret_cast<const In*>(in[0]);
    const auto* second = reinterpret_cast<const In*>(in[1]);
    auto* target = reinterpret_cast<Out*>(out);
    const OwnFunction<Function> own = function;
    for (int64_t i = 0; i < count; ++i) target[i] = own(first[i], second[i]);
  };
  return make_blocks(step, {sizeof(In), sizeof(In)}, sizeof(Out), BlockFunction(block));
}

// Function: Out operator()(In, In, bool* defined) const; clearing `defined` leaves the whole step to the reference.
template <class In, class Out, class Function>
std::unique_ptr<Kernel> make_checked_zip(const Step& step, const Function& function) {
  require(step.input(0).type == step.input(1).type, "no native kernel for these types");
  const auto block = [function](const uint8_t* const* in, uint8_t* out, int64_t count) {
    const auto* first = reinterpret_cast<const In*>(in[0]);
    const auto* second = reinterpret_cast<const In*>(in[1]);
    auto* target = reinterpret_cast<Out*>(out);
    const OwnFunction<Function> own = function;
    bool all = true;
    for (int64_t i = 0; i < count; ++i) target[i] = own(first[i], second[i], &all);
    return all;
  };
  return make_checked_blocks(step, {sizeof(In), sizeof(In)}, sizeof(Out), CheckedBlockFunction(block));
}

namespace zip_detail {

// Integers wrap to their own width (`Wide` is unsigned and at least as wide as int), then the fused clamp.
template <class T, class Wide, class Operation>
std::unique_ptr<Kernel> plain_integers(const Step& step) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = std::numeric_limits<int64_t>::max();
  const auto low = static_cast<T>(step.integer("low", kLow, kHigh));
  const auto high = static_cast<T>(step.integer("high", kLow, kHigh));
  return make_zip<T, T>(step, [low, high](T a, T b) {
    const auto result = static_cast<T>(Operation()(static_cast<Wide>(a), static_cast<Wide>(b)));
    return rules::clamp(result, low, high);
  });
}

}  // namespace zip_detail

// The same for binary32: one rounding, then the clamp. NaN, which is rare, is looked for block by block and made anew.
template <class Operation>
class RealZip final : public BlockKernel {
 public:
  explicit RealZip(const Step& step)
      : BlockKernel(step, {sizeof(float), sizeof(float)}, sizeof(float)),
        low_(static_cast<float>(step.real("low"))),
        high_(static_cast<float>(step.real("high"))) {
    require(step.input(0).type == Type::f32 && step.input(1).type == Type::f32 && step.output().type == Type::f32,
            "no native kernel for these types");
    constexpr float kEnd = std::numeric_limits<float>::infinity();
    limited_ = !(low_ == -kEnd && high_ == kEnd);
    const unsigned singles = blocks_.keep_singles();
    first_step_ = singles & 1 ? 0 : 1, second_step_ = singles & 2 ? 0 : 1;
    apply_ = first_step_ == 0 ? apply<0, 1> : second_step_ == 0 ? apply<1, 0> : apply<1, 1>;
  }

 private:
  void block(const uint8_t* const* in, uint8_t* out, int64_t count) const override {
    const auto* first = reinterpret_cast<const float*>(in[0]);
    const auto* second = reinterpret_cast<const float*>(in[1]);
    auto* target = reinterpret_cast<float*>(out);
    if (limited_ || apply_(first, second, target, count) != 0) {
      for (int64_t i = 0; i < count; ++i) {
        const float a = first[i * first_step_], b = second[i * second_step_];
        target[i] = rules::clamp(rules::with_first_nan(Operation()(a, b), a, b), low_, high_);
      }
    }
  }
  // 0 where no result is NaN.
  template <int kFirst, int kSecond>
  static uint32_t apply(const float* first, const float* second, float* target, int64_t count) {
    uint32_t odd = 0;
    const float one = *first, two = *second;
    for (int64_t i = 0; i < count; ++i) {
      const float result = Operation()(kFirst ? first[i] : one, kSecond ? second[i] : two);
      odd |= result != result;
      target[i] = result;
    }
    return odd;
  }

  int64_t first_step_ = 1, second_step_ = 1;
  uint32_t (*apply_)(const float* first, const float* second, float* target, int64_t count);
  float low_, high_;
  bool limited_;
};

template <class Operation>
std::unique_ptr<Kernel> make_plain_zip_real(const Step& step) {
  return std::make_unique<RealZip<Operation>>(step);
}

// The same for binary64, whose NaNs are the reference's.
template <class Operation>
std::unique_ptr<Kernel> make_plain_zip_wide(const Step& step) {
  return make_checked_zip<double, double>(
      step, [low = step.real("low"), high = step.real("high")](double a, double b, bool* defined) {
        const double result = Operation()(a, b);
        if (result != result) *defined = false;
        return rules::clamp(result, low, high);
      });
}

// Numbers without scales: Operation in their own type, then the fused clamp.
template <class Operation>
std::unique_ptr<Kernel> make_plain_zip(const Step& step) {
  if (step.input(0).type != step.output().type) return nullptr;
  switch (step.input(0).type) {
    case Type::s16: return zip_detail::plain_integers<int16_t, uint32_t, Operation>(step);
    case Type::s32: return zip_detail::plain_integers<int32_t, uint32_t, Operation>(step);
    case Type::u32: return zip_detail::plain_integers<uint32_t, uint32_t, Operation>(step);
    case Type::s64: return zip_detail::plain_integers<int64_t, uint64_t, Operation>(step);
    case Type::f32: return make_plain_zip_real<Operation>(step);
    case Type::f64: return make_plain_zip_wide<Operation>(step);
    default: return nullptr;
  }
}

}  // namespace bittrue

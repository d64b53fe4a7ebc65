// neg, round_to_integer and sign: one exact operation on the stored numbers.
#include "arithmetic/fused.h"
#include "operators/core/map.h"
#include "operators/core/registry.h"
#include "operators/elementwise/real_loops.h"

namespace bittrue {
namespace {

std::unique_ptr<Kernel> make_neg(const Step& step, const CoreSet& cores) {
  const Type type = step.input(0).type;
  if (type != step.output().type) return nullptr;
  if (step.rules.count("real_function") != 0) {
    if (type != Type::f32 || step.rule("real_function") != "binary32_fused") return nullptr;
    return make_map<float, float>(step, [](float x) { return arithmetic::fused::neg(x); });
  }
  if (type == Type::f32) return make_map<float, float>(step, [](float x) { return -x; });
  if (type == Type::f64) return make_map<double, double>(step, [](double x) { return -x; });
  if (type == Type::s64) {
    return make_map<uint64_t, uint64_t>(step, [](uint64_t q) { return uint64_t{0} - q; });
  }
  return make_integer_map(step, cores, [](int64_t q) { return -q; });
}

std::unique_ptr<Kernel> make_round(const Step& step, const CoreSet& cores) {
  const std::string& direction = step.text("direction");
  if (direction == "down") return make_real_loop(step, cores, {RealLoop::round_down});
  if (direction == "up") return make_real_loop(step, cores, {RealLoop::round_up});
  require(direction == "even", "no native rounding of this name");
  return make_real_loop(step, cores, {RealLoop::round_even});
}

template <class T>
T sign(T x) {
  return x > 0 ? T{1} : x < 0 ? T{-1} : x != x ? x : T{0};
}

// NaN gives 0 in 16 bits.
std::unique_ptr<Kernel> make_sign(const Step& step, const CoreSet& cores) {
  const Type type = step.input(0).type;
  if (type != step.output().type) return nullptr;
  if (type == Type::s32) return make_integer_map(step, cores, [](int64_t q) { return int64_t{q > 0} - (q < 0); });
  if (type == Type::f32) return make_map<float, float>(step, sign<float>);
  if (type == Type::f64) return make_map<double, double>(step, sign<double>);
  if (type != Type::bytes2) return nullptr;
  const bool half = step.text("type") == "f16";
  const uint16_t infinity = half ? 0x7c00 : 0x7f80, one = half ? 0x3c00 : 0x3f80;
  return make_map<uint16_t, uint16_t>(step, [=](uint16_t x) {
    const auto size = static_cast<uint16_t>(x & 0x7fff);
    return static_cast<uint16_t>(size == 0 || size > infinity ? 0 : (x & 0x8000) | one);
  });
}

BITTRUE_OPERATOR(neg, make_neg)
BITTRUE_OPERATOR(round_to_integer, make_round)
BITTRUE_OPERATOR(sign, make_sign)

}  // namespace
}  // namespace bittrue

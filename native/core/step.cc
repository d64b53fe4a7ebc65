#include "core/step.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace bittrue {
namespace {

// Arrays come from files and may lie anywhere.
template <class T>
int64_t load(const void* data, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  if constexpr (std::is_same_v<T, uint64_t>) require(value <= INT64_MAX, "an integer does not fit 64 bits with a sign");
  return static_cast<int64_t>(value);
}

int64_t read_integer(Type type, const void* data, int64_t i) {
  switch (type) {
    case Type::s2:
    case Type::s4:
    case Type::s8: return load<int8_t>(data, i);
    case Type::u8:
    case Type::boolean: return load<uint8_t>(data, i);
    case Type::s16: return load<int16_t>(data, i);
    case Type::u16: return load<uint16_t>(data, i);
    case Type::s32: return load<int32_t>(data, i);
    case Type::u32: return load<uint32_t>(data, i);
    case Type::s64: return load<int64_t>(data, i);
    case Type::u64: return load<uint64_t>(data, i);
    default: throw NoKernel("an integer array is needed");
  }
}

}  // namespace

Step::Step() = default;
Step::Step(const Step&) = default;
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(const Step&) = default;
Step& Step::operator=(Step&&) noexcept = default;
Step::~Step() = default;

void no_kernel(const char* what) { throw NoKernel(what); }

int64_t Array::integer(int64_t i) const { return read_integer(type, data, i); }

double Array::real(int64_t i) const {
  float single;
  double wide;
  if (type == Type::f32) {
    std::memcpy(&single, static_cast<const char*>(data) + i * 4, 4);
    return single;
  }
  require(type == Type::f64, "a floating array is needed");
  std::memcpy(&wide, static_cast<const char*>(data) + i * 8, 8);
  return wide;
}

std::vector<int64_t> Operand::integers() const {
  require(constant != nullptr, "the operand must be constant");
  std::vector<int64_t> values(static_cast<size_t>(elements));
  for (int64_t i = 0; i < elements; ++i) values[i] = read_integer(type, constant, i);
  return values;
}

int64_t Step::integer(const char* key) const {
  const std::vector<int64_t>& values = list(key);
  if (values.size() != 1) throw NoKernel(std::string("one integer is needed: ") + key);
  return values[0];
}

double Step::real(const char* key) const {
  const auto found = reals.find(key);
  return found != reals.end() ? found->second : static_cast<double>(integer(key));
}

int64_t Step::integer(const char* key, int64_t low, int64_t high) const {
  const int64_t value = integer(key);
  if (value < low || value > high) throw NoKernel(std::string("out of range: ") + key);
  return value;
}

const std::vector<int64_t>& Step::list(const char* key) const {
  const auto found = integers.find(key);
  if (found == integers.end()) throw NoKernel(std::string("no integer parameter ") + key);
  return found->second;
}

const std::string& Step::text(const char* key) const {
  const auto found = texts.find(key);
  if (found == texts.end()) throw NoKernel(std::string("no text parameter ") + key);
  return found->second;
}

const std::string& Step::rule(const char* slot) const {
  const auto found = rules.find(slot);
  if (found == rules.end()) throw NoKernel(std::string("no rule for slot ") + slot);
  return found->second;
}

const Array& Step::array(const std::string& key) const {
  const auto found = arrays.find(key);
  if (found == arrays.end()) throw NoKernel("no array " + key);
  return found->second;
}

const Operand& Step::input(size_t i) const {
  if (!has_input(i)) throw NoKernel("an input is missing");
  return *inputs[i];
}

const Operand& Step::output(size_t i) const {
  if (i >= outputs.size() || outputs[i] == nullptr) throw NoKernel("an output is missing");
  return *outputs[i];
}

void rules::prefer_vector_form(Requantize& r) {
  if (r.wraps) return;
  const auto bound = static_cast<double>(r.bound);
  if (r.rescale == RescaleRule::q31_one_step_up_shift_wraps) {
    for (const Multiplier& m : r.multipliers) {
      if (m.exponent >= 0 && std::ldexp(bound, m.exponent + 1) >= 2147483648.0) return;
    }
    r.rescale = RescaleRule::q31_one_step_up;
    return;
  }
  const bool up = r.rescale == RescaleRule::q31_one_step_up_wrap || r.rescale == RescaleRule::q31_shift_or_one_step_up;
  if (!up && r.rescale != RescaleRule::q31_one_step_away) return;
  for (const Multiplier& m : r.multipliers) {
    // Scaled down, results fit 32 bits. What a shift adds in 32 bits must fit, too.
    if (m.exponent > 0 || m.exponent < -31) return;
    if (up && bound + std::ldexp(1.0, -m.exponent) >= 2147483648.0) return;
    // Exact products in binary64.
    if (!up && bound * static_cast<double>(m.multiplier) >= 9007199254740992.0) return;
  }
  r.rescale = up ? RescaleRule::q31_one_step_up : RescaleRule::binary64_multiply_away;
  if (up) return;
  for (Multiplier& m : r.multipliers) m.factor = std::ldexp(static_cast<double>(m.multiplier), m.exponent - 31);
}

bool rules::find_rule(const std::string& name, RescaleRule& found) {
  for (const RescaleRow& row : kRescale) {
    if (name != row.name) continue;
    found = static_cast<RescaleRule>(&row - kRescale);
    return true;
  }
  return false;
}

bool rules::find_rule(const std::string& name, StoreRule& found) {
#define BITTRUE_RULE(rule, real) \
  if (name == #rule) return found = StoreRule::rule, true;
  BITTRUE_STORE_RULES(BITTRUE_RULE)
#undef BITTRUE_RULE
  return false;
}

rules::RescaleRule Step::rescale_rule(const char* slot) const {
  rules::RescaleRule found{};
  if (!rules::find_rule(rule(slot), found)) throw NoKernel("no native rescale rule " + rule(slot));
  return found;
}

rules::Multiplier Step::multiplier(const std::string& prefix) const {
  rules::Multiplier result{};
  if (has_array(prefix + "factor")) {
    require(array(prefix + "factor").count == 1, "one factor is needed");
    result.factor = array(prefix + "factor").real(0);
    return result;
  }
  require(array(prefix + "multiplier").count == 1 && array(prefix + "exponent").count == 1, "one multiplier is needed");
  result.multiplier = array(prefix + "multiplier").integer(0);
  const int64_t exponent = array(prefix + "exponent").integer(0);
  require(exponent >= -1024 && exponent <= 1024, "an exponent is out of range");
  result.exponent = static_cast<int>(exponent);
  return result;
}

namespace {

// What some rules add to accumulators, and their second factors: one for all columns, or one per column.
void read_addends(const Step& step, const std::string& prefix, int64_t columns, rules::Requantize* requantize) {
  const rules::RescaleTraits& traits = rules::traits(requantize->rescale);
  if (!traits.has(rules::kAddend)) return;
  const Array& addend = step.array(prefix + "addend");
  const size_t count = requantize->multipliers.size(), addends = static_cast<size_t>(addend.count);
  require(count > 0 && (addends == 1 || static_cast<int64_t>(addends) == columns),
          "one addend, or one per column, is needed");
  if (addends > count) requantize->multipliers.resize(addends, requantize->multipliers[0]);
  float second = 1;
  if (traits.has(rules::kSecond)) {
    require(step.array(prefix + "second").count == 1, "one second factor is needed");
    second = static_cast<float>(step.array(prefix + "second").real(0));
  }
  for (size_t i = 0; i < requantize->multipliers.size(); ++i) {
    const auto value = static_cast<float>(addend.real(static_cast<int64_t>(addends == 1 ? 0 : i)));
    require(std::isfinite(value), "an addend is not finite");
    requantize->multipliers[i].addend = value;
    requantize->multipliers[i].second = second;
  }
}

}  // namespace

bool rules::takes(RescaleRule rule, const Multiplier& m) {
  const RescaleTraits& of = traits(rule);
  if (of.largest != 0 && !(std::abs(m.factor) <= of.largest)) return false;
  // Beyond these the scalar twins would shift by more than a register, or overflow; plans never hold them.
  const bool q15 = of.point == 15;
  return m.multiplier >= 0 && m.multiplier <= (q15 ? 32767 : INT32_MAX) && m.exponent >= (q15 ? -47 : -62) &&
         m.exponent <= (q15 ? 14 : 30);
}

rules::Requantize Step::requantize(int64_t columns, const std::string& prefix) const {
  rules::Requantize result;
  result.rescale = rescale_rule();
  const std::string& store = rule("store");
  if (!rules::find_rule(store, result.store)) throw NoKernel("no native store rule " + store);
  require(rules::is_real(result.rescale) == rules::is_real(result.store),
          "the store rule does not suit the rescale rule");
  constexpr int64_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
  result.zero_point = static_cast<int32_t>(integer("output_zero_point", kLow, kHigh));
  result.low = static_cast<int32_t>(integer("low", kLow, kHigh));
  result.high = static_cast<int32_t>(integer("high", kLow, kHigh));
  result.flip = flip_of(output().type);
  result.bound = magnitude;
  result.wraps = !bounded || wraps;

  const bool floating = has_array(prefix + "factor");
  require(floating == (rules::traits(result.rescale).point == 0), "the multiplier does not suit its rule");
  const Array& first = array(prefix + (floating ? "factor" : "multiplier"));
  require(first.count == 1 || first.count == columns, "one multiplier, or one per column, is needed");
  result.multipliers.resize(static_cast<size_t>(first.count));
  if (floating) {
    bool narrow = result.rescale == rules::RescaleRule::binary32_multiply_even_wide;
    for (int64_t i = 0; i < first.count; ++i) {
      const double factor = result.multipliers[i].factor = first.real(i);
      require(rules::takes(result.rescale, result.multipliers[i]), "the multiplier is out of range");
      narrow = narrow && !result.wraps && std::abs(factor) * static_cast<double>(result.bound) < 1 << 30;
    }
    // Products that fit 32 bits are those of the rule that cores know.
    if (narrow) result.rescale = rules::RescaleRule::binary32_multiply_even;
    read_addends(*this, prefix, columns, &result);
    return result;
  }
  const Array& exponent = array(prefix + "exponent");
  require(exponent.count == first.count, "as many exponents as multipliers are needed");
  for (int64_t i = 0; i < first.count; ++i) {
    const int64_t m = first.integer(i), e = exponent.integer(i);
    require(e >= -1024 && e <= 1024, "an exponent is out of range");
    result.multipliers[i].multiplier = m;
    result.multipliers[i].exponent = static_cast<int>(e);
    require(rules::takes(result.rescale, result.multipliers[i]), "the multiplier is out of range");
  }
  rules::prefer_vector_form(result);
  return result;
}

}  // namespace bittrue

#include "core/step.h"

#include <cmath>
#include <cstring>

namespace bittrue {
namespace {

// Arrays come from files and may lie anywhere.
template <class T>
int64_t load(const void* data, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
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

rules::RescaleRule Step::rescale_rule(const char* slot) const {
  const std::string& name = rule(slot);
  for (size_t i = 0; i < sizeof(rules::kRescale) / sizeof(rules::kRescale[0]); ++i) {
    if (name == rules::kRescale[i].name) return static_cast<rules::RescaleRule>(i);
  }
  throw NoKernel("no native rescale rule " + name);
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
  result.exponent = static_cast<int>(array(prefix + "exponent").integer(0));
  return result;
}

namespace {

// What the twin of a rule converts to an integer and multiplies; 0 where any factor is possible.
double largest_factor(rules::RescaleRule rule) {
  using rules::RescaleRule;
  switch (rule) {
    case RescaleRule::q8_one_step_up: return 1 << 24;
    case RescaleRule::binary64_multiply_even:
    case RescaleRule::binary32_multiply_even_wide:
    case RescaleRule::binary64_product_binary32_away: return 2147483647.0;
    case RescaleRule::binary64_two_step_away_away:
    case RescaleRule::binary32_two_step_away_away: return 1.0;
    default: return 0;
  }
}

}  // namespace

rules::Requantize Step::requantize(int64_t columns, const std::string& prefix) const {
  rules::Requantize result;
  result.rescale = rescale_rule();
  const std::string& store = rule("store");
  if (store == "zero_point_then_clamp") {
    result.store = rules::StoreRule::zero_point_then_clamp;
  } else if (store == "clamp_then_zero_point") {
    result.store = rules::StoreRule::clamp_then_zero_point;
  } else {
    throw NoKernel("no native store rule " + store);
  }
  constexpr int64_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
  result.zero_point = static_cast<int32_t>(integer("output_zero_point", kLow, kHigh));
  result.low = static_cast<int32_t>(integer("low", kLow, kHigh));
  result.high = static_cast<int32_t>(integer("high", kLow, kHigh));
  result.flip = flip_of(output().type);
  result.bound = magnitude;
  result.wraps = !bounded || wraps;

  const bool floating = has_array(prefix + "factor");
  const Array& first = array(prefix + (floating ? "factor" : "multiplier"));
  require(first.count == 1 || first.count == columns, "one multiplier, or one per column, is needed");
  result.multipliers.resize(static_cast<size_t>(first.count));
  if (floating) {
    bool narrow = result.rescale == rules::RescaleRule::binary32_multiply_even_wide;
    for (int64_t i = 0; i < first.count; ++i) {
      const double factor = result.multipliers[i].factor = first.real(i);
      // What the twin converts to an integer and multiplies.
      const double largest = largest_factor(result.rescale);
      require(largest == 0 || std::abs(factor) <= largest, "the multiplier is out of range");
      narrow = narrow && !result.wraps && std::abs(factor) * static_cast<double>(result.bound) < 1 << 30;
    }
    // Products that fit 32 bits are those of the rule that cores know.
    if (narrow) result.rescale = rules::RescaleRule::binary32_multiply_even;
    return result;
  }
  const Array& exponent = array(prefix + "exponent");
  require(exponent.count == first.count, "as many exponents as multipliers are needed");
  for (int64_t i = 0; i < first.count; ++i) {
    const int64_t m = first.integer(i), e = exponent.integer(i);
    // Beyond these the scalar twins would shift by more than a register, or overflow; plans never hold them.
    const bool q15 = result.rescale == rules::RescaleRule::q15_one_step_up ||
                     result.rescale == rules::RescaleRule::q15_one_step_even;
    require(m >= 0 && m <= (q15 ? 32767 : kHigh) && e >= (q15 ? -47 : -62) && e <= (q15 ? 14 : 30),
            "the multiplier is out of range");
    result.multipliers[i].multiplier = m;
    result.multipliers[i].exponent = static_cast<int>(e);
  }
  return result;
}

}  // namespace bittrue

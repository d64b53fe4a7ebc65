#include "operators/recurrent/gate_function.h"

#include <cmath>
#include <cstring>

#include "arithmetic/elementary.h"
#include "core/step.h"

namespace bittrue {
namespace {

using arithmetic::exp;

// By the exponential of -|x|; NaN keeps its sign.
float by_exponential(float x) {
  const float power = exp(x >= 0.0f ? -x : x);
  return (x >= 0.0f ? 1.0f : power) / (1.0f + power);
}

float twice_less_one(float x) { return 2.0f * by_exponential(2.0f * x) - 1.0f; }

float hard(float x, float alpha, float beta) {
  const float line = alpha * x + beta, raised = line > 0.0f ? line : 0.0f;
  return raised < 1.0f ? raised : 1.0f;
}

struct Named {
  const char* name;
  void (*loop)(float* x, int64_t count, float alpha, float beta);
};

// One function in a loop of its own.
#define BITTRUE_LOOP(value)                                   \
  [](float* values, int64_t count, float alpha, float beta) { \
    static_cast<void>(alpha), static_cast<void>(beta);        \
    for (int64_t i = 0; i < count; ++i) {                     \
      const float x = values[i];                              \
      values[i] = value;                                      \
    }                                                         \
  }

constexpr Named kNamed[] = {
    {"affine", BITTRUE_LOOP(alpha * x + beta)},
    {"elu", BITTRUE_LOOP(x >= 0.0f ? x : alpha * (exp(x) - 1.0f))},
    {"hardsigmoid", BITTRUE_LOOP(hard(x, alpha, beta))},
    {"leakyrelu", BITTRUE_LOOP(x >= 0.0f ? x : alpha * x)},
    {"relu", BITTRUE_LOOP(x > 0.0f ? x : 0.0f)},
    {"scaledtanh", BITTRUE_LOOP(alpha * (2.0f * by_exponential(2.0f * (beta * x)) - 1.0f))},
    {"softplus", BITTRUE_LOOP(arithmetic::log(1.0f + exp(x)))},
    {"softsign", BITTRUE_LOOP(x / (1.0f + std::fabs(x)))},
    {"thresholdedrelu", BITTRUE_LOOP(x > alpha ? x : 0.0f)},
};
constexpr Named kWholeLayer[] = {{"sigmoid", BITTRUE_LOOP(by_exponential(x))},
                                 {"tanh", BITTRUE_LOOP(twice_less_one(x))}};
// A vector maximum keeps -0.
constexpr Named kReluOfGates = {"relu", BITTRUE_LOOP(x < 0.0f ? 0.0f : x)};

#undef BITTRUE_LOOP

// A decimal number as binary32: through binary64, which is right unless the number is as near the middle between two
// binary32 numbers as the error of that.
float read_number(const std::string& text) {
  double value = 0;
  int64_t exponent = 0, digits = 0;
  size_t i = !text.empty() && text[0] == '-' ? 1 : 0;
  const size_t begin = i;
  bool fraction = false;
  for (; i < text.size() && (text[i] == '.' || (text[i] >= '0' && text[i] <= '9')); ++i) {
    if (text[i] == '.') {
      fraction = true;
      continue;
    }
    value = value * 10 + (text[i] - '0');
    digits += value > 0 ? 1 : 0;
    exponent -= fraction ? 1 : 0;
  }
  require(i > begin && digits <= 17, "a number of a function is not plain");
  if (i < text.size()) {
    require(text[i] == 'e' && i + 2 < text.size() && i + 6 > text.size(), "a number of a function is not plain");
    const bool negative = text[++i] == '-';
    if (negative || text[i] == '+') ++i;
    int64_t given = 0;
    for (; i < text.size(); ++i) {
      require(text[i] >= '0' && text[i] <= '9', "a number of a function is not plain");
      given = given * 10 + (text[i] - '0');
    }
    exponent += negative ? -given : given;
  }
  require(exponent > -60 && exponent < 60, "a number of a function is not plain");
  double power = 1;
  for (int64_t n = exponent < 0 ? -exponent : exponent; n > 0; --n) power *= 10;
  value = exponent < 0 ? value / power : value * power;
  const auto low = static_cast<float>(value * (1 - 0x1p-46)), high = static_cast<float>(value * (1 + 0x1p-46));
  require(low == high, "a number of a function is not plain");
  return begin == 1 ? -low : low;
}

std::string part(const std::string& text, char separator, int64_t which) {
  size_t begin = 0;
  for (; which > 0; --which) {
    begin = text.find(separator, begin);
    require(begin != std::string::npos, "there are too few functions");
    ++begin;
  }
  return text.substr(begin, text.find(separator, begin) - begin);
}

}  // namespace

GateFunction GateFunction::read(const std::string& text, int64_t which, GatePlace place, const CoreSet& cores) {
  std::string own = part(text, ',', which);
  if (!own.empty() && own[0] == ' ') own.erase(0, 1);
  const std::string name = part(own, ' ', 0);
  GateFunction found;
  found.alpha_ = read_number(part(own, ' ', 1));
  found.beta_ = read_number(part(own, ' ', 2));
  const bool tanh = name == "tanh";
  if ((tanh || name == "sigmoid") && place != GatePlace::whole_layer) {
    found.core_ = cores.real_function();
    found.function_ = place == GatePlace::merged
                          ? (tanh ? RealFunction::tanh_by_quotient : RealFunction::logistic_by_quotient)
                          : (tanh ? RealFunction::tanh : RealFunction::logistic);
    return found;
  }
  if (name == "relu" && place == GatePlace::gate) {
    found.loop_ = kReluOfGates.loop;
    return found;
  }
  for (const Named& each : kWholeLayer) {
    if (name == each.name) found.loop_ = each.loop;
  }
  for (const Named& each : kNamed) {
    if (name == each.name) found.loop_ = each.loop;
  }
  require(found.loop_ != nullptr, "no native function of this name");
  return found;
}

void GateFunction::apply(float* x, int64_t count) const {
  if (loop_ == nullptr) {
    core_(function_, x, x, count);
  } else {
    loop_(x, count, alpha_, beta_);
  }
}

}  // namespace bittrue

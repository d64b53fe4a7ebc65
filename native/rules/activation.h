// Scalar twins of src/bittrue/rules/activation.py.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "arithmetic/elementary.h"
#include "arithmetic/rational.h"

namespace bittrue::rules {

inline float scalar_logistic(float x) {
  const float e =
      arithmetic::exp(x > arithmetic::rational::kLogisticLargest ? arithmetic::rational::kLogisticLargest : x);
  return e / (1.0f + e);
}

// In place, for a vector whose first element stands `start` elements behind a boundary of four.
template <bool kFused = false>
inline void logistic_lanes_4(float* x, int64_t count, int64_t start) {
  const int64_t first = (4 - start % 4) % 4, head = first < count ? first : count;
  const int64_t tail = head + (count - head) / 4 * 4;
  for (int64_t i = 0; i < head; ++i) x[i] = scalar_logistic(x[i]);
  for (int64_t i = head; i < tail; ++i) x[i] = arithmetic::rational::logistic<kFused>(x[i]);
  for (int64_t i = tail; i < count; ++i) x[i] = scalar_logistic(x[i]);
}

// The activations of layers of real numbers, and what they make of x; NaN becomes the lower bound.
#define BITTRUE_ACTIVATIONS(RULE)                                                   \
  RULE(none, x)                                                                     \
  RULE(relu, x > 0.0f ? x : 0.0f)                                                   \
  RULE(relu_n1_to_1, (x > 1.0f ? 1.0f : x) > -1.0f ? (x > 1.0f ? 1.0f : x) : -1.0f) \
  RULE(relu6, (x > 6.0f ? 6.0f : x) > 0.0f ? (x > 6.0f ? 6.0f : x) : 0.0f)          \
  RULE(tanh, arithmetic::rational::tanh(x))                                         \
  RULE(fused_tanh, arithmetic::rational::tanh<true>(x))                             \
  RULE(sign_bit, std::signbit(x) ? 1.0f : 0.0f)

enum class Activation : uint8_t {
#define BITTRUE_RULE(name, result) name,
  BITTRUE_ACTIVATIONS(BITTRUE_RULE)
#undef BITTRUE_RULE
      unknown
};

inline Activation find_activation(const std::string& name) {
#define BITTRUE_RULE(rule, result) \
  if (name == #rule) return Activation::rule;
  BITTRUE_ACTIVATIONS(BITTRUE_RULE)
#undef BITTRUE_RULE
  return Activation::unknown;
}

inline float activate(Activation activation, float x) {
  switch (activation) {
#define BITTRUE_RULE(name, result) \
  case Activation::name: return result;
    BITTRUE_ACTIVATIONS(BITTRUE_RULE)
#undef BITTRUE_RULE
    default: return x;
  }
}

}  // namespace bittrue::rules

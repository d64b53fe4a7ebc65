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
inline void logistic_lanes_4(float* x, int64_t count, int64_t start) {
  const int64_t first = (4 - start % 4) % 4, head = first < count ? first : count;
  const int64_t tail = head + (count - head) / 4 * 4;
  for (int64_t i = 0; i < head; ++i) x[i] = scalar_logistic(x[i]);
  for (int64_t i = head; i < tail; ++i) x[i] = arithmetic::rational::logistic(x[i]);
  for (int64_t i = tail; i < count; ++i) x[i] = scalar_logistic(x[i]);
}

// The activation of a layer of real numbers.
enum class Activation : uint8_t { none, relu, relu_n1_to_1, relu6, tanh, sign_bit, unknown };

inline Activation find_activation(const std::string& name) {
  constexpr const char* names[] = {"none", "relu", "relu_n1_to_1", "relu6", "tanh", "sign_bit"};
  for (int i = 0; i < 6; ++i) {
    if (name == names[i]) return static_cast<Activation>(i);
  }
  return Activation::unknown;
}

// NaN becomes the lower bound.
inline float activate(Activation activation, float x) {
  switch (activation) {
    case Activation::relu: return x > 0.0f ? x : 0.0f;
    case Activation::relu_n1_to_1: return (x > 1.0f ? 1.0f : x) > -1.0f ? (x > 1.0f ? 1.0f : x) : -1.0f;
    case Activation::relu6: return (x > 6.0f ? 6.0f : x) > 0.0f ? (x > 6.0f ? 6.0f : x) : 0.0f;
    case Activation::tanh: return arithmetic::rational::tanh(x);
    case Activation::sign_bit: return std::signbit(x) ? 1.0f : 0.0f;
    default: return x;
  }
}

}  // namespace bittrue::rules

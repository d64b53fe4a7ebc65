// Two tensors of bytes, element by element: blocks of accumulators in the order that pack() undoes, then requantized.
#pragma once

#include <cstring>

#include "isa/avx2/requantize.h"
#include "isa/avx2/vectors.h"
#include "isa/cores.h"

namespace bittrue::BITTRUE_ISA {

// accumulate(first, second, count, offset, acc) gives `count` accumulators plus `offset`, for a multiple of 16 bytes.
template <class Accumulate>
class VectorElementwise final : public Elementwise {
 public:
  VectorElementwise(const Accumulate& accumulate, const rules::Requantize& requantize, const Choice& choice)
      : accumulate_(accumulate), requantizer_(requantize, choice, kFirstColumn, 1) {}

  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    const RoundingMode mode(requantizer_.form());
    with_form(requantizer_.form(), [&](auto form) {
      int64_t i = 0;
      for (; i + kBlock <= count; i += kBlock) block<form.value>(first + i, second + i, out + i, kBlock);
      const int64_t whole = (count - i) / 16 * 16;
      if (whole > 0) block<form.value>(first + i, second + i, out + i, whole);
      i += whole;
      if (i == count) return;
      uint8_t rest[3][16] = {};
      const auto size = static_cast<size_t>(count - i);
      std::memcpy(rest[0], first + i, size);
      std::memcpy(rest[1], second + i, size);
      block<form.value>(rest[0], rest[1], rest[2], 16);
      std::memcpy(out + i, rest[2], size);
    });
  }

 private:
  static constexpr int64_t kBlock = 256, kFirstColumn[16] = {};

  template <Form form>
  __attribute__((noinline)) void block(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const {
    alignas(32) int32_t acc[kBlock];
    accumulate_(first, second, count, _mm256_set1_epi32(static_cast<int32_t>(requantizer_.offset())), acc);
    requantize_rows<form>(requantizer_, requantizer_.group(0), requantizer_.store(), acc, static_cast<int>(count / 16),
                          out, 16, 16);
  }

  Accumulate accumulate_;
  Requantizer requantizer_;
};

}  // namespace bittrue::BITTRUE_ISA

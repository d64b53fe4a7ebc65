// Element-wise cores in plain C++.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "isa/portable/aligned_values.h"
#include "isa/portable/cores.h"
#include "isa/portable/requantize.h"

namespace bittrue::portable {
namespace {

class PortableAdd final : public Elementwise {
 public:
  explicit PortableAdd(const AddSpec& spec) : requantizer_(spec.requantize) { aligned_values(spec, first_, second_); }

  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    constexpr int64_t kBlock = 64;
    int32_t sums[kBlock];
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t size = std::min(kBlock, count - begin);
      for (int64_t i = 0; i < size; ++i) {
        sums[i] = static_cast<int32_t>(first_[first[begin + i]] + second_[second[begin + i]]);
      }
      requantizer_.run(sums, 0, size, out + begin);
    }
  }

 private:
  int64_t first_[256], second_[256];
  Requantizer requantizer_;
};

// Bytes minus their zero points are 16-bit numbers, so that products are exact in 32 bits.
class PortableMul final : public Elementwise {
 public:
  explicit PortableMul(const MulSpec& spec)
      : first_(static_cast<int16_t>(spec.first_zero_point)),
        second_(static_cast<int16_t>(spec.second_zero_point)),
        requantizer_(spec.requantize) {}

  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    constexpr int64_t kBlock = 256;
    int32_t products[kBlock];
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t size = std::min(kBlock, count - begin);
      for (int64_t i = 0; i < size; ++i) {
        const auto a = static_cast<int16_t>(first[begin + i] - first_),
                   b = static_cast<int16_t>(second[begin + i] - second_);
        products[i] = static_cast<int32_t>(a) * static_cast<int32_t>(b);
      }
      requantizer_.run(products, 0, size, out + begin);
    }
  }

 private:
  int16_t first_, second_;
  Requantizer requantizer_;
};

class PortableFusedSum final : public Elementwise {
 public:
  explicit PortableFusedSum(const FusedSumSpec& spec)
      : first_scale_(spec.first_scale),
        factor_(spec.factor),
        zero_point_(spec.zero_point),
        flip_(spec.is_signed ? 128 : 0) {
    for (int byte = 0; byte < 256; ++byte) {
      second_[byte] = std::fma(static_cast<float>(byte - flip_), spec.second_scale, spec.addend);
    }
  }

  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    const float low = static_cast<float>(-flip_), high = static_cast<float>(255 - flip_);
    for (int64_t i = 0; i < count; ++i) {
      const float real = std::fma(static_cast<float>(first[i] - flip_), first_scale_, second_[second[i]]);
      const float sum = std::nearbyint(std::fma(real, factor_, zero_point_));
      // Too large for 32 bits, or NaN: the lowest.
      const float stored = sum < 2147483648.0f ? std::min(std::max(sum, low), high) : low;
      out[i] = static_cast<uint8_t>(static_cast<int32_t>(stored) + flip_);
    }
  }

 private:
  float second_[256];
  float first_scale_, factor_, zero_point_;
  int32_t flip_;
};

class PortableScaledProduct final : public Elementwise {
 public:
  explicit PortableScaledProduct(const ScaledProductSpec& spec) : spec_(spec), flip_(spec.is_signed ? 128 : 0) {}

  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    const int32_t flip = flip_, a = static_cast<int32_t>(spec_.first_zero_point) + flip;
    const int32_t b = static_cast<int32_t>(spec_.second_zero_point) + flip;
    const float factor = spec_.factor, zero_point = spec_.zero_point;
    const float low = static_cast<float>(-flip), high = static_cast<float>(255 - flip);
    for (int64_t i = 0; i < count; ++i) {
      const float product = static_cast<float>((first[i] - a) * (second[i] - b)) * factor;
      float sum = product + zero_point;
      // What does not fit 32 bits, or is NaN, becomes the lowest; ends are integers, so clamps may come first.
      sum = sum < 2147483648.0f ? sum : low;
      sum = sum > low ? sum : low;
      sum = sum < high ? sum : high;
      // Rounds ties to even: the unit in the last place is 1 there.
      const float rounded = sum + 12582912.0f;
      int32_t bits;
      std::memcpy(&bits, &rounded, sizeof bits);
      out[i] = static_cast<uint8_t>(bits - 0x4B400000 + flip);
    }
  }

 private:
  ScaledProductSpec spec_;
  int32_t flip_;
};

}  // namespace

std::unique_ptr<Elementwise> make_scaled_product(const ScaledProductSpec& spec) {
  return std::make_unique<PortableScaledProduct>(spec);
}

std::unique_ptr<Elementwise> make_fused_sum(const FusedSumSpec& spec) {
  return std::make_unique<PortableFusedSum>(spec);
}

std::unique_ptr<Elementwise> make_mul(const MulSpec& spec) { return std::make_unique<PortableMul>(spec); }

std::unique_ptr<Elementwise> make_add(const AddSpec& spec) { return std::make_unique<PortableAdd>(spec); }

void max_rows(const uint8_t* const* taps, int64_t taps_count, uint8_t* out, int64_t count, int low, int high) {
  constexpr int64_t kBlock = 256;
  uint8_t kept[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    std::fill(kept, kept + size, uint8_t{0});
    for (int64_t k = 0; k < taps_count; ++k) {
      const uint8_t* tap = taps[k] + begin;
      for (int64_t i = 0; i < size; ++i) kept[i] = std::max(kept[i], tap[i]);
    }
    for (int64_t i = 0; i < size; ++i) {
      out[begin + i] = static_cast<uint8_t>(std::min(std::max(static_cast<int>(kept[i]), low), high));
    }
  }
}

void sum_rows(const uint8_t* const* taps, int64_t taps_count, int32_t* sums, int64_t count) {
  std::fill(sums, sums + count, 0);
  for (int64_t k = 0; k < taps_count; ++k) {
    for (int64_t i = 0; i < count; ++i) sums[i] += taps[k][i];
  }
}

void row_terms(const uint8_t* const* rows, int64_t capacity, int64_t segments, int64_t bytes, int64_t count,
               int32_t factor, int32_t* terms) {
  for (int64_t r = 0; r < count; ++r) {
    uint32_t sum = 0;
    for (int64_t s = 0; s < segments; ++s) {
      const uint8_t* row = rows[s * capacity + r];
      for (int64_t d = 0; d < bytes; ++d) sum += row[d];
    }
    terms[r] = static_cast<int32_t>(static_cast<uint32_t>(factor) * sum);
  }
}

void lookup(const uint8_t* table, const uint8_t* in, uint8_t* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = table[in[i]];
}

void quantize_reals(const QuantizeSpec& spec, const float* in, uint8_t* out, int64_t count) {
  const float scale = spec.scale, low = spec.low, high = spec.high, addend = spec.addend;
  const int32_t zero_point = spec.zero_point - 0x4B400000;
  const auto stored = [&](float value) {
    value = value > low ? value : low;
    value = value < high ? value : high;
    // Rounds ties to even: the unit in the last place is 1 there.
    value += 12582912.0f;
    int32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<uint8_t>(bits + zero_point);
  };
  if (!spec.multiplies) {
    for (int64_t i = 0; i < count; ++i) out[i] = stored(in[i] / scale);
  } else if (addend == 0) {
    for (int64_t i = 0; i < count; ++i) out[i] = stored(in[i] * scale);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = stored(std::fma(in[i], scale, addend));
  }
}

namespace {

// The product is exact in binary64, the sum nearly: rounding it once more to binary32 is one rounding of the real sum
// unless it was not exact and lies in the middle between two binary32 numbers. Blocks with such a sum are done again.
// Where binary32 numbers are subnormal or infinite, both ways lead to 0 and to the ends.
void layer_sums_block(const LayerSumSpec& spec, const int32_t* __restrict acc, const float* __restrict bias,
                      const float* __restrict factors, const uint8_t* __restrict other, uint8_t* __restrict out,
                      int32_t count) {
  const double factor = spec.factor;
  const int32_t other_flip = spec.other_flip, back = spec.out_flip - 0x4B400000;
  const float low = spec.low, high = spec.high, start = spec.start;
  uint64_t doubtful = 0;
  float sums[64];
  for (int32_t i = 0; i < count; ++i) {
    const float real = (static_cast<float>(acc[i]) + bias[i]) * factors[i];
    const float value = real > start ? real : start;
    const double product = static_cast<double>(other[i] - other_flip) * factor, addend = value;
    const double sum = product + addend, second = sum - product;
    const double lost = (product - (sum - second)) + (addend - second);
    uint64_t bits, missing;
    std::memcpy(&bits, &sum, sizeof bits);
    std::memcpy(&missing, &lost, sizeof missing);
    // The highest bit is set when the 29 bits that binary32 drops are 1 followed by zeros, and something was lost.
    const uint64_t apart = (bits & 0x1FFFFFFF) ^ 0x10000000;
    doubtful |= (apart - 1) & (0 - (missing & 0x7FFFFFFFFFFFFFFF));
    sums[i] = static_cast<float>(sum);
  }
  if ((doubtful >> 63) != 0) {
    for (int32_t i = 0; i < count; ++i) {
      const float real = (static_cast<float>(acc[i]) + bias[i]) * factors[i];
      sums[i] = std::fma(static_cast<float>(other[i] - other_flip), spec.factor, std::max(real, start));
    }
  }
  for (int32_t i = 0; i < count; ++i) {
    const float above = sums[i] > low ? sums[i] : low;
    // Rounds ties to even: the unit in the last place is 1 there.
    const float moved = (above < high ? above : high) + 12582912.0f;
    int32_t bits;
    std::memcpy(&bits, &moved, sizeof bits);
    out[i] = static_cast<uint8_t>(bits + back);
  }
}

}  // namespace

void layer_sums(const LayerSumSpec& spec, const int32_t* acc, const float* bias, const float* factors,
                const uint8_t* other, uint8_t* out, int64_t count) {
  for (int64_t i = 0; i < count; i += 64) {
    layer_sums_block(spec, acc + i, bias + i, factors + i, other + i, out + i,
                     static_cast<int32_t>(std::min<int64_t>(64, count - i)));
  }
}

void scale_bytes(const uint8_t* in, const float* factors, const float* summands, uint8_t* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float moved = static_cast<float>(in[i] - 128) * factors[i] + summands[i];
    const float above = moved > -128.0f ? moved : -128.0f;
    // Rounds ties to even: the unit in the last place is 1 there.
    const float rounded = (above < 127.0f ? above : 127.0f) + 12582912.0f;
    int32_t bits;
    std::memcpy(&bits, &rounded, sizeof bits);
    out[i] = static_cast<uint8_t>(bits - 0x4B400000 + 128);
  }
}

void gate_sums(const rules::Multiplier& by_first, const rules::Multiplier& by_second, const int32_t* first,
               const int32_t* second, int16_t* out, int64_t count) {
  const auto clamp = [](int64_t x) { return std::min<int64_t>(std::max<int64_t>(x, INT16_MIN), INT16_MAX); };
  for (int64_t i = 0; i < count; ++i) {
    const int64_t other = rules::q31_two_step_up_away(second[i], by_second);
    const int64_t sum = clamp(rules::q31_two_step_up_away(first[i], by_first)) + other;
    out[i] = static_cast<int16_t>(clamp(arithmetic::wrap_s32(sum)));
  }
}

void requantize_rows(const rules::Requantize& requantize, const int32_t* acc, int64_t rows, uint8_t* out,
                     int64_t columns) {
  if (requantize.multipliers.size() == 1) return Requantizer::run_once(requantize, acc, rows * columns, out);
  for (int64_t r = 0; r < rows; ++r) {
    Requantizer::run_once(requantize, acc + r * columns, columns, out + r * columns);
  }
}

#include "isa/average_rows.inc"

}  // namespace bittrue::portable

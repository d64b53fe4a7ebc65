// Addition of two 8-bit tensors: both operands aligned exactly, the sum requantized.
//
// An aligned operand is formed as portable::AlignedFormula says: one vpmaddwd multiplies q by a number below 2^22, as
// q * (number mod 128) + (q * 128) * (number / 128), for |q * 128| < 2^15. Where no constants give the rule's results, the
// sums are looked up byte by byte.
#if !defined(__AVXVNNI__)

#include <algorithm>
#include <cmath>

#include "isa/avx2/cores.h"
#include "isa/avx2/vector_elementwise.h"
#include "isa/portable/aligned_values.h"

namespace bittrue::BITTRUE_ISA {
namespace {

// What each of the 256 stored values of either operand adds to the sum.
struct AlignedOperands {
  int64_t first[256], second[256];
};

using portable::AlignedFormula;
using Shape = AlignedFormula::Shape;

struct Aligned {
  Shape shape = Shape::none;
  int32_t high = 0, low = 0;  // as pairs of 16-bit words
  int32_t half = 0;
  int16_t zero_point = 0;
  int32_t table[256];
};

void take_formula(const AlignedFormula& formula, const int64_t* values, int32_t zero_point, Aligned& aligned) {
  for (int q = 0; q < 256; ++q) aligned.table[q] = static_cast<int32_t>(values[q]);
  const auto pair = [](int64_t number) {
    return static_cast<int32_t>(static_cast<uint32_t>(number >> 7) << 16 | static_cast<uint32_t>(number & 127));
  };
  aligned.shape = formula.shape;
  aligned.zero_point = static_cast<int16_t>(zero_point);
  aligned.high = pair(formula.high);
  aligned.low = pair(formula.low);
  aligned.half = static_cast<int32_t>(formula.half);
}

// 8 aligned values of 8 pairs (q, q * 128).
template <Shape shape>
inline __m256i align8(__m256i pairs, __m256i high, __m256i low, __m256i half) {
  if constexpr (shape == Shape::exact) return _mm256_madd_epi16(pairs, high);
  const __m256i factor = shape == Shape::symmetric ? _mm256_abs_epi16(pairs) : pairs;
  const __m256i rounded =
      _mm256_srai_epi32(_mm256_add_epi32(_mm256_madd_epi16(factor, low), half), AlignedFormula::kFraction);
  const __m256i sum = _mm256_add_epi32(_mm256_madd_epi16(factor, high), rounded);
  // The pair's sign is that of q * 128.
  return shape == Shape::symmetric ? _mm256_sign_epi32(sum, pairs) : sum;
}

// Adds the aligned values of `count` bytes, a multiple of 16, to acc, in the order that pack() undoes.
template <Shape shape>
void accumulate(const Aligned& aligned, const uint8_t* in, int64_t count, int32_t* acc) {
  if constexpr (shape == Shape::none) {
    for (int64_t i = 0; i < count; ++i) {
      int32_t& sum = acc[i / 16 * 16 + accumulator_of_byte(static_cast<int>(i % 16))];
      sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(aligned.table[in[i]]));
    }
  } else {
    const __m256i zero_point = _mm256_set1_epi16(aligned.zero_point), half = _mm256_set1_epi32(aligned.half);
    const __m256i high = _mm256_set1_epi32(aligned.high), low = _mm256_set1_epi32(aligned.low);
    for (int64_t i = 0; i < count; i += 16) {
      const __m256i q = _mm256_sub_epi16(_mm256_cvtepu8_epi16(load16(in + i)), zero_point);
      const __m256i scaled = _mm256_slli_epi16(q, 7);
      const __m256i first = align8<shape>(_mm256_unpacklo_epi16(q, scaled), high, low, half);
      const __m256i second = align8<shape>(_mm256_unpackhi_epi16(q, scaled), high, low, half);
      store32(acc + i, _mm256_add_epi32(load32(acc + i), first));
      store32(acc + i + 8, _mm256_add_epi32(load32(acc + i + 8), second));
    }
  }
}

void accumulate_any(const Aligned& aligned, const uint8_t* in, int64_t count, int32_t* acc) {
  switch (aligned.shape) {
    case Shape::exact: return accumulate<Shape::exact>(aligned, in, count, acc);
    case Shape::symmetric: return accumulate<Shape::symmetric>(aligned, in, count, acc);
    case Shape::plain: return accumulate<Shape::plain>(aligned, in, count, acc);
    case Shape::none: return accumulate<Shape::none>(aligned, in, count, acc);
  }
}

// Sums of aligned operands, for VectorElementwise.
class Sums {
 public:
  Sums(const AddSpec& spec, const AlignedOperands& operands) {
    AlignedFormula formulas[2];
    portable::aligned_formulas(spec, operands.first, operands.second, formulas);
    take_formula(formulas[0], operands.first, spec.first_zero_point, first_);
    take_formula(formulas[1], operands.second, spec.second_zero_point, second_);
  }

  void operator()(const uint8_t* first, const uint8_t* second, int64_t count, __m256i offset, int32_t* acc) const {
    for (int64_t i = 0; i < count; i += 8) store32(acc + i, offset);
    accumulate_any(first_, first, count, acc);
    accumulate_any(second_, second, count, acc);
  }

 private:
  Aligned first_, second_;
};

int64_t largest(const int64_t* values) {
  int64_t result = 0;
  for (int q = 0; q < 256; ++q) result = std::max(result, std::abs(values[q]));
  return result;
}

}  // namespace

std::unique_ptr<Elementwise> make_add(const AddSpec& spec) {
  AlignedOperands operands;
  portable::aligned_values(spec, operands.first, operands.second);
  // Sums that leave 32 bits come back as anything.
  const int64_t greatest = std::min(largest(operands.first) + largest(operands.second), int64_t{1} << 31);
  const Choice choice(spec.requantize, static_cast<double>(greatest));
  return std::unique_ptr<Elementwise>(new VectorElementwise<Sums>(Sums(spec, operands), spec.requantize, choice));
}

}  // namespace bittrue::BITTRUE_ISA

#endif

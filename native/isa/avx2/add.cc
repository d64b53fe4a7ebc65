// Addition of two 8-bit tensors: both operands aligned exactly, the sum requantized.
//
// Where portable::SumLine gives all 65536 results, with the instructions that will run, sums are that: pairs (a, b) times both
// parts of the factors, by vpmaddwd. Else an aligned operand is formed as portable::AlignedFormula says: one vpmaddwd multiplies q by a number below 2^22, as
// q * (number mod 128) + (q * 128) * (number / 128), for |q * 128| < 2^15. Where no constants give the rule's results, the
// sums are looked up byte by byte.
#if !defined(__AVXVNNI__)

#include <algorithm>
#include <cmath>
#include <cstring>

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

class SumByLine final : public Elementwise {
 public:
  explicit SumByLine(const portable::SumLine& line) : constants_(line) {}

  void run(const uint8_t* first, const uint8_t* second, uint8_t* out, int64_t count) const override {
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) store32(out + i, constants_.sums(load32(first + i), load32(second + i)));
    if (i < count) sum_rest(first + i, second + i, out + i, static_cast<size_t>(count - i));
  }

 private:
  __attribute__((noinline)) void sum_rest(const uint8_t* first, const uint8_t* second, uint8_t* out,
                                          size_t count) const {
    uint8_t rest[3][32] = {};
    std::memcpy(rest[0], first, count);
    std::memcpy(rest[1], second, count);
    store32(rest[2], constants_.sums(load32(rest[0]), load32(rest[1])));
    std::memcpy(out, rest[2], count);
  }

  // Not in registers, of which there are too few.
  struct Constants {
    explicit Constants(const portable::SumLine& line)
        : shift(_mm_cvtsi32_si128(line.shift)),
          low(_mm256_set1_epi8(static_cast<char>(line.low))),
          high(_mm256_set1_epi8(static_cast<char>(line.high))) {
      for (int part = 0; part < 2; ++part) {
        factors[part] = _mm256_set1_epi32(line.factors[part]);
        offset[part] = _mm256_set1_epi32(line.offset[part]);
      }
    }

    // The unpacks and the packs undo each other's order. Words saturate past the clamp.
    __m256i sums(__m256i a, __m256i b) const {
      const __m256i words = two(_mm256_unpacklo_epi8(a, b)), others = two(_mm256_unpackhi_epi8(a, b));
      return _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(words, others), low), high);
    }
    __m256i two(__m256i bytes) const {
      const __m256i zero = _mm256_setzero_si256();
      return _mm256_packs_epi32(one(_mm256_unpacklo_epi8(bytes, zero)), one(_mm256_unpackhi_epi8(bytes, zero)));
    }
    __m256i one(__m256i pairs) const {
      const __m256i upper = _mm256_add_epi32(_mm256_madd_epi16(pairs, factors[0]), offset[0]);
      const __m256i lower = _mm256_add_epi32(_mm256_madd_epi16(pairs, factors[1]), offset[1]);
      return _mm256_sra_epi32(_mm256_add_epi32(upper, _mm256_srli_epi32(lower, portable::SumLine::kPart)), shift);
    }

    __m128i shift;
    __m256i factors[2], offset[2], low, high;
  };

  const Constants constants_;
};

// Runs an addition over all pairs of bytes, a row of 256 for each first one.
void sum_all(const Elementwise& sum, uint8_t* stored) {
  uint8_t bytes[256], same[256];
  for (int i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
  for (int a = 0; a < 256; ++a) {
    std::memset(same, a, sizeof same);
    sum.run(same, bytes, stored + 256 * a, 256);
  }
}

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
  std::unique_ptr<Elementwise> exact(new VectorElementwise<Sums>(Sums(spec, operands), spec.requantize, choice));
  AlignedArray<uint8_t> expected(65536), stored(65536);
  sum_all(*exact, expected.data());
  portable::SumLine line;
  if (!portable::find_sum_line(spec, expected.data(), &line)) return exact;
  std::unique_ptr<Elementwise> by_line(new SumByLine(line));
  sum_all(*by_line, stored.data());
  if (std::memcmp(stored.data(), expected.data(), 65536) != 0) return exact;
  return by_line;
}

}  // namespace bittrue::BITTRUE_ISA

#endif

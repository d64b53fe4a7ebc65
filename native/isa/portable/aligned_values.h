// What an addition reads its operands as, out of line for files of an instruction set: an inline function compiled
// there would be emitted with that set's instructions, and the linker might keep that copy for the whole program.
#pragma once

#include <cstdint>

namespace bittrue {
struct AddSpec;
}

namespace bittrue::portable {

// first[q] = A(q) and second[q] = sign * B(q) for every stored byte q.
void aligned_values(const AddSpec& spec, int64_t* first, int64_t* second);

// An aligned operand is a function of one byte, q * high + ((q * low + half) >> 22), q being the stored value minus the
// zero point, for most numbers.
struct AlignedFormula {
  enum class Shape : uint8_t {
    exact,      // low is 0: the product needs no rounding
    symmetric,  // of |q|, then with q's sign: rules that round ties away from zero
    plain,
    none,
  };
  static constexpr int kFraction = 22;

  Shape shape = Shape::none;
  int64_t high = 0, low = 0, half = 0;  // 0 <= low < 2^22, 0 <= half <= 2^22
};

// The formulas of both operands: constants that follow from the multipliers and give the rule's own result for all 256
// bytes of `values`, as above. Slopes are below 2^21, zero points bytes; `none` where that is not so, or nothing fits.
void aligned_formulas(const AddSpec& spec, const int64_t* first, const int64_t* second, AlignedFormula* formulas);

// Sums as floor((a * first + b * second + offset) / 2^(15 + shift)) of the stored bytes a and b, limited to [low, high].
// Factors and offset are cut into upper and lower parts of 15 bits; the factors of both are a pair of words. What the lower parts add up to, divided
// by 2^15, is added to the sum of the upper ones, which fits 32 bits.
struct SumLine {
  static constexpr int kPart = 15;
  int32_t factors[2], offset[2];
  int shift;
  uint8_t low, high;
};

// Looks for an offset that all 65536 results stored[a][b] allow; false where there is none. Whether results are those remains
// to be seen.
bool find_sum_line(const AddSpec& spec, const uint8_t* stored, SumLine* line);

}  // namespace bittrue::portable

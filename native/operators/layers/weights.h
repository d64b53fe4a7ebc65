// What 8-bit layers make of their weights and biases when they are packed.
#pragma once

#include <cstdint>
#include <vector>

#include "core/step.h"

namespace bittrue {

// Signed weights w with a zero point z: the plan's weight minus its zero point is w - z.
struct SignedWeights {
  const int8_t* data = nullptr;  // the plan's own memory where nothing had to be moved, else `moved`
  std::vector<int8_t> moved;
  int64_t zero_point = 0;

  SignedWeights() = default;
  SignedWeights(SignedWeights&&) = default;
  SignedWeights& operator=(SignedWeights&&) = default;
  SignedWeights(const SignedWeights&) = delete;
};

// Constant s8, s4 or u8 weights of one step, valid as long as these. z is 0 whenever all differences fit 8 bits. NoKernel for anything else.
// `as_stored`: signed weights are not moved, as what saturates follows from them.
SignedWeights signed_weights(const Operand& weights, int64_t zero_point, bool as_stored = false);

// The same for a matrix [depth][columns] (leading dimensions of 1 are left out), turned into [columns][depth]; one zero point,
// or one per column, which then must leave differences of 8 bits (and may not differ `as_stored`).
// `turned` ones are [columns][depth] already.
SignedWeights column_weights(const Operand& matrix, const std::vector<int64_t>& zero_points, bool turned = false,
                             bool as_stored = false);

// Whether a step adds products of values and weights, inputs 0 and 1, up in pairs of 16 bits (MatmulSpec::pairs): of values as
// native memory keeps them, and of weights as `signed_weights` has them `as_stored`.
// NoKernel where it does so with other types.
bool adds_in_pairs(const Step& step);

// The zero points of weights that are operands: parameter `weight_zero_point`, array `weight_zero_points`, or where the
// plan leaves them open the constant input `operand` (0 when it is absent).
std::vector<int64_t> weight_zero_points(const Step& step, size_t operand);

// The bias of every column (zeros when there is none). NoKernel unless it is a constant of `columns` integers.
std::vector<int64_t> biases(const Step& step, size_t input, int64_t columns);

// With zero points zx and zw, a column of K weights w folds into
//   sum (x - zx)(w - zw) + bias = sum x w + [bias + zx (K zw - sum w)] - zw sum x:
// what stands in brackets is the bias of its core. All is modulo 2^32, as biases of untrusted plans may have 64 bits.
[[gnu::hot]] int64_t sum_of(const int8_t* weights, int64_t count);
// The same of every row of a matrix [rows][count], and of every column of one [depth][columns].
std::vector<int64_t> sums_of_rows(const int8_t* weights, int64_t rows, int64_t count);
[[gnu::hot]] std::vector<int64_t> sums_of_columns(const int8_t* rows, int64_t depth, int64_t columns);

// K zw - sum w.
inline uint32_t zero_point_factor(int64_t count, int64_t weight_zero_point, int64_t sum) {
  return static_cast<uint32_t>(count) * static_cast<uint32_t>(weight_zero_point) - static_cast<uint32_t>(sum);
}

inline int32_t folded_bias(int64_t bias, int64_t zero_point, uint32_t factor) {
  return static_cast<int32_t>(static_cast<uint32_t>(bias) + static_cast<uint32_t>(zero_point) * factor);
}

// `rows` rows of `depth` bytes at `data`, each filled up to `packed_depth` bytes in `copy`; `data` itself where there is
// nothing to fill up. What fills up meets weights of zero.
const uint8_t* packed_rows(const uint8_t* data, int64_t rows, int64_t depth, int64_t packed_depth, uint8_t* copy);

// Whether a layer is one for the 8-bit cores: 8-bit activations, constant 8-bit (or narrower) weights, a constant bias or
// none, a zero point that can be stored, and an accumulator of 32 bits that wraps (or never needs more). `pairs`: whether
// it may add up pairs of 16 bits.
bool suits_matmul(const Step& step, size_t source = 0, size_t bias = 2, bool pairs = false);

// The zero point of the 8-bit input as native memory keeps it. NoKernel when it lies outside of the type, because then
// padding could not be stored.
uint8_t stored_zero_point(const Step& step, size_t source = 0);

// How many neighbouring groups of `filters` filters are worth one product: zeros between them cost nothing while filters
// are few.
int64_t joined_groups(int64_t groups, int64_t filters);

// Filters [out_c][taps][depth] of groups, as filters over the channels of `joined` groups with zeros where the others have
// theirs. The zero point fits 8 bits.
SignedWeights join_groups(const SignedWeights& weights, int64_t out_c, int64_t filters, int64_t taps, int64_t depth,
                          int64_t joined);

}  // namespace bittrue

// Matrices of recurrent layers of real numbers: real weights, or 8-bit weights that multiply rows quantized at run time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/step.h"
#include "rules/activation.h"
#include "rules/dot.h"
#include "rules/row_product.h"

namespace bittrue {

// Sums of this many products of two 8-bit numbers stay inside 32 bits.
constexpr int64_t kLongestRow = 100000;

// A constant's binary32 numbers. NoKernel when it is none, or not `count` of them.
std::vector<float> real_constant(const Operand& operand, int64_t count);
// The same of a prepared array.
std::vector<float> real_array(const Step& step, const std::string& key, int64_t count);
// 8-bit integers of either type, as two's complement.
std::vector<int8_t> byte_constant(const Operand& operand, int64_t count);
// The parameter `activation`.
rules::Activation activation_of(const Step& step, bool none);

// What kernels count as a vector of zeros: vectors of four compare |x| > 0, which NaN is not; the rest x != 0.
bool all_zero(const float* x, int64_t count);

// `count` rows of `n` numbers, quantized when 8-bit weights are to meet them. Memory is the kernel's scratch.
struct Rows {
  const float* x = nullptr;
  int64_t count = 0, n = 0;
  int8_t* q = nullptr;
  rules::QuantizedRow* row = nullptr;

  static int64_t bytes(int64_t count, int64_t n) {
    return (count * static_cast<int64_t>(sizeof(rules::QuantizedRow)) + count * n + 63) / 64 * 64;
  }
  // Takes `bytes(count, n)` of memory.
  Rows(const float* x_, int64_t count_, int64_t n_, uint8_t* memory)
      : x(x_),
        count(count_),
        n(n_),
        q(reinterpret_cast<int8_t*>(memory + count_ * sizeof(rules::QuantizedRow))),
        row(reinterpret_cast<rules::QuantizedRow*>(memory)) {}
  // False when a row has no defined conversion.
  bool quantize(bool asymmetric) const;
};

class RealMatrix {
 public:
  RealMatrix() = default;
  // Weights of the type of the operand; 8-bit ones have their scale in the array `scale`.
  RealMatrix(const Step& step, const Operand& operand, const std::string& scale, int64_t rows, int64_t columns);

  bool quantized() const { return quantized_; }
  // total[r] becomes total[r] plus row r times every row of x; total is [x.count, rows].
  void add(const Rows& x, float* total) const;

 private:
  bool quantized_ = false;
  rules::DotRule dot_ = rules::DotRule::unknown;
  std::vector<float> real_;
  rules::RowWeights bytes_;
  int64_t rows_ = 0, columns_ = 0;
};

}  // namespace bittrue

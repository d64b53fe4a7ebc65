// What becomes of the sums of a step of matmul: bytes, the sums as they are, or real numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/kernel.h"

namespace bittrue {

// The step without its slot `center`, where no difference of an operand and its zero points leaves the 16 bits that its rule
// keeps it in; zero points of 32 bits that only running tells are looked at then. NoKernel where one may.
[[gnu::cold]] Step without_center(const Step& step);

// Which operands of matmul hold what.
struct ProductOperands {
  static constexpr size_t kAddend = 2, kRowScale = 3, kRowPoint = 4, kColumnScales = 5, kColumnPoints = 6,
                          kResultScale = 7;
};

// Requantized sums are the core's.
struct IntegerFinish {
  enum class Result : uint8_t { bytes, sums, reals };
  static constexpr size_t kNone = SIZE_MAX;

  Result result = Result::sums;
  std::vector<float> factors;  // known ones: one per column
  // Operands that are read while running, kNone where there are none: binary32 scales of rows (one) and of columns (one, or
  // one per column), a binary32 addend per column.
  size_t row_scale = kNone, column_scales = kNone, addends = kNone;
  bool one_column_scale = false;
  // Addends and products are rounded once; `first_factor` is what sums are multiplied by before.
  bool fused = false;
  float first_factor = 1.0f;

  IntegerFinish() = default;
  // By the step's rules.
  IntegerFinish(const Step& step, int64_t columns);

  bool late() const { return result == Result::reals && factors.empty(); }
  bool reads(size_t input) const { return input == row_scale || input == column_scales || input == addends; }
  // One factor per column: the known ones, or those of this run, in `own`.
  const float* find_factors(const Run& run, int64_t columns, float* own) const {
    if (!late()) return factors.data();
    const float row = *reinterpret_cast<const float*>(run.inputs[row_scale]);
    const auto* scales = reinterpret_cast<const float*>(run.inputs[column_scales]);
    for (int64_t n = 0; n < columns; ++n) own[n] = row * scales[one_column_scale ? 0 : n];
    return own;
  }
  const float* find_addends(const Run& run) const {
    return addends == kNone ? nullptr : reinterpret_cast<const float*>(run.inputs[addends]);
  }
  // A row of real numbers from the sums `sum(n)`; it may lie where they do.
  template <class Sum>
  void reals(const Sum& sum, int64_t columns, const float* scales, const float* added, uint8_t* out) const {
    const bool once = fused;
    const float first = first_factor;
    for (int64_t n = 0; n < columns; ++n) {
      float real = static_cast<float>(static_cast<int32_t>(sum(n)));
      if (once) {
        real = std::fma(real * first, scales[n], added == nullptr ? 0.0f : added[n]);
      } else {
        real *= scales[n];
        if (added != nullptr) real += added[n];
      }
      std::memcpy(out + 4 * n, &real, 4);
    }
  }
};

}  // namespace bittrue
